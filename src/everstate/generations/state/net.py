"""The second net under the fingerprints: what the samples of an output's generations say of today's code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from everstate.errors import EverstateError
from everstate.fingerprints.prints import UnitPrint

if TYPE_CHECKING:
    from collections.abc import Callable

    from everstate.generations.generation import Generation
    from everstate.generations.state.folder import StateFolder
    from everstate.generations.state.samples import Sample
    from everstate.plan.facts import Mismatch
    from everstate.topology.unit import Unit


@dataclass(frozen=True)
class Finding:
    """What the sample of one generation says.

    Attributes:
        mismatch: What is calculated otherwise; None if nothing, or if the sample is no evidence.
        warnings: What whoever deploys the output should know.
    """

    mismatch: Mismatch | None = None
    warnings: tuple[str, ...] = ()


@dataclass
class Net:
    """Evaluates samples with the code of one process, each once: a start plans several times.

    Attributes:
        folder: Where the state of an output's generation is.
        code: The code that an output's generation was deployed with.
    """

    folder: Callable[[str, Generation], StateFolder]
    code: Callable[[str, Generation], Unit]
    _known: dict[tuple[str, str, int], Finding] = field(default_factory=dict)

    def check(self, unit: Unit, described: UnitPrint, generation: Generation, *, carried: bool = False) -> Finding:
        """What a generation's sample says of an output as it is today.

        Args:
            unit: The output.
            described: Its print.
            generation: The generation.
            carried: The output has a different fingerprint and shall go on with the generation's state all the same:
                under other libraries, the generation's own code is looked at.
        """
        output = unit.output.topic
        folder = self.folder(output, generation)
        stamp = folder.sample_stamp()
        if stamp is None:
            return Finding()
        same = generation.fingerprint == described.fingerprint
        other_libraries = UnitPrint.from_json(generation.description).libraries != described.libraries
        if not same and not (carried and other_libraries):
            return Finding()
        place = (output, generation.name, stamp)
        if place not in self._known:
            self._known[place] = _finding(
                output, folder, unit if same else None, generation, lambda: self._archived(output, generation)
            )
        return self._known[place]

    def _archived(self, output: str, generation: Generation) -> Unit | None:
        """The code that a generation was deployed with; None if it cannot be loaded."""
        try:
            return self.code(output, generation)
        except EverstateError:
            return None


def _finding(
    output: str,
    folder: StateFolder,
    unit: Unit | None,
    generation: Generation,
    archived: Callable[[], Unit | None],
) -> Finding:
    from everstate.generations.state import samples  # noqa: PLC0415 - loads the kernels, which planning seldom needs

    sample = samples.read(folder)
    if sample is None or sample.fingerprint != generation.fingerprint:
        return Finding()
    subject = unit or archived()
    found = samples.mismatch(sample, subject) if subject is not None else None
    if found is None or found.libraries or found.step != generation.missed:
        return Finding(found, _unsettled(sample, subject))
    # The generation was made because of this very step. If its own code, unchanged for certain, gives another result
    # as well, then the step depends on something else than code, and a recalculation would follow every start.
    own = archived()
    if own is None or samples.mismatch(sample, own) is None:
        return Finding(found, _unsettled(sample, subject))
    place = f" ({found.location})" if found.location else ""
    warning = (
        f"The step {found.step}{place} gives different results for the same records again, so it is not "
        "recalculated again: it seems to depend on something that changes on its own. Let it depend on its arguments "
        "alone, or declare what it reads with es.declare(...). If you changed it on purpose, recalculate the output: "
        f"--recalculate {output}"
    )
    return Finding(None, (warning,))


def _unsettled(sample: Sample, unit: Unit | None) -> tuple[str, ...]:
    if not sample.contradicts or unit is None:
        return ()
    from everstate.generations.state.samples import place_of  # noqa: PLC0415 - as above

    first = sample.contradicts
    warning = (
        f"The step {first} ({place_of(unit, first)}) may give different results for the same records: changes to it "
        "that its fingerprint misses cannot be found."
    )
    return (warning,)
