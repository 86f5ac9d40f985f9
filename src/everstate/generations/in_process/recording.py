"""The first micro-batches of a generation with what its steps made of them, taken down while they are processed.

It serves as the generation's sample (`everstate.generations.state.samples`) where the whole past is at hand: nothing
has to be evaluated for it, and it shows what the code did at that time, whatever the code reads today.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from everstate.fingerprints import libraries
from everstate.generations.state.samples import Sample
from everstate.kernels.evaluation import StepDigests, asks_outside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.generations.generation import Generation
    from everstate.kernels.parcel import Parcel
    from everstate.kernels.pipeline import Piece
    from everstate.kernels.stage import Witness
    from everstate.topology.unit import Unit

#: So many records are taken down.
RECORDS: Final = 500


class Recording:
    """Takes down micro-batches from the first one on, until one of them cannot be.

    Args:
        generation: Whose micro-batches.
        unit: What computes them.
    """

    def __init__(self, generation: Generation, unit: Unit) -> None:
        self._generation = generation
        self._digests = StepDigests(unit)
        self._batches: tuple[Sequence[Piece], ...] = ()
        self._records = 0
        self._open = not asks_outside(unit)

    @property
    def fingerprint(self) -> str:
        """Of the version whose micro-batches it has."""
        return self._generation.fingerprint

    def copy(self) -> Recording:
        """The same between two micro-batches; what is added to one does not show in the other."""
        other = Recording.__new__(Recording)
        vars(other).update(vars(self), _digests=self._digests.copy())
        return other

    def end(self) -> None:
        """The records alone do not tell any more how the state comes about."""
        self._open = False

    def witness(self, batch_id: int, unit: Unit, pieces: Sequence[Piece]) -> Witness | None:
        """What has to see the rows of a micro-batch; None if it is not taken down.

        Args:
            batch_id: Its number.
            unit: What computes it: of the same meaning as before, but perhaps with other side effects.
            pieces: What it reads.
        """
        read = sum(records.height for _, _, records in pieces)
        if batch_id != len(self._batches) or self._records + read > RECORDS:
            self._open = False
        if not self._open:
            return None
        # Of the same digests: a batch that failed half-way has left rows in these.
        self._digests = self._digests.copy(unit)
        return self._digests.witness

    def complete(self, pieces: Sequence[Piece], leaving: Sequence[Parcel]) -> None:
        """The micro-batch that was witnessed last is done."""
        self._digests.end_batch(leaving)
        self._batches = (*self._batches, pieces)
        self._records += sum(records.height for _, _, records in pieces)

    def sample(self) -> Sample | None:
        """As the generation's sample; None if nothing was taken down."""
        if not self._batches:
            return None
        return Sample(
            fingerprint=self.fingerprint,
            libraries=dict(libraries()),
            seen=self._records,
            batches=self._batches,
            steps=self._digests.found().steps,
            unsettled=[],
            policy=self._generation.policy,
            shards=self._generation.shards,
            tried=False,
        )

    @property
    def stamp(self) -> int | None:
        """How many micro-batches it has; None without any."""
        return len(self._batches) or None
