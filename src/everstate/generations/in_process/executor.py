"""Runs generations in the caller's process; what is kept of them lives as long as this object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everstate.errors import CheckpointMissingError
from everstate.generations.in_process.execution import Course, InProcessExecution
from everstate.generations.in_process.kept import Kept
from everstate.generations.in_process.times import Times
from everstate.log.timing import wall_clock

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from everstate.generations.deploy.outputs import PreparedOutput
    from everstate.generations.deploy.settings import Settings
    from everstate.generations.generation import Generation
    from everstate.kernels.migration.convert import Migration
    from everstate.log.descriptions import Batch, Commit, Lease, Vector
    from everstate.log.protocol import Log
    from everstate.log.timing import Clock
    from everstate.topology.unit import Unit


class InProcessExecutor:
    """An `Executor` without Spark.

    Args:
        log: The log.
        home: The folder of the service's state; only archives of sources are looked for in it.
        settings: Operational settings.
        kept: What an earlier one has kept, by output and generation: a process that died, for a simulation.
        ordered: Note the order of arrival of every output, also of those that do not depend on it.
        recorded: Take down the first micro-batches of each generation as its sample.
        times: Where stream time was moved by hand, by an earlier one.
        clock: The wall clock.
    """

    def __init__(
        self,
        log: Log,
        home: Path,
        settings: Settings,
        kept: dict[tuple[str, str], Kept] | None = None,
        *,
        ordered: bool = False,
        recorded: bool = False,
        times: Times | None = None,
        clock: Clock = wall_clock,
    ) -> None:
        self.pause = 0.0  # whoever looks does the work
        self.startup = 0.0
        self._log = log
        self._home = home
        self._settings = settings
        self._kept = {} if kept is None else kept
        self._ordered = ordered
        self._recorded = recorded
        self._times = Times() if times is None else times
        self._clock = clock

    def cores(self) -> int:
        """As many as Spark would have here."""
        return self._settings.used_cores

    def execution(
        self,
        output: PreparedOutput,
        lease: Lease,
        *,
        closed: bool = False,
        effects: bool = False,
        end: Vector | None = None,
        migration: Migration | None = None,
    ) -> InProcessExecution:
        """A generation that can be started; see `Executor`."""
        course = Course(
            lease=lease,
            closed=closed,
            effects=effects,
            end=end,
            migration=migration,
            ordered=self._ordered,
            recorded=self._recorded,
            times=self._times,
            clock=self._clock,
        )
        kept = self.folder(output.name, output.generation)
        return InProcessExecution(output, kept, self._log, self._settings, course)

    def folder(self, output: str, generation: Generation) -> Kept:
        """What is kept of a generation."""
        return self._kept.setdefault((output, generation.name), Kept(self._home))

    def sweep(self, output: str, numbers: Collection[int]) -> None:
        """Forget what is kept of generations that no longer exist."""
        for (name, generation), kept in self._kept.items():
            if name == output and int(generation) in numbers:
                kept.delete()

    def inspect(self, unit: Unit, generation: Generation, last: Commit | None) -> None:
        """Make sure that state and log belong together; see `Executor`.

        Raises:
            CheckpointMissingError: If the log has batches that the state has not seen.
        """
        kept = self.folder(unit.output.topic, generation)
        newest = kept.last if kept.planned is None else kept.planned
        if last is not None and (newest is None or newest < last.batch_id):
            raise CheckpointMissingError(
                f"the state of output {unit.output.topic!r}, which has published batch {last.batch_id}, is missing",
                hint="Recalculate the output.",
            )

    def last_batch(self, output: str, generation: Generation) -> int | None:
        """The last batch that is complete."""
        return self.folder(output, generation).last

    def batch_end(self, output: str, generation: Generation, batch_id: int) -> Vector:
        """Where a batch ended.

        Raises:
            CheckpointMissingError: If that is no longer known.
        """
        return self.folder(output, generation).end(batch_id)

    def clone(self, output: str, source: Generation, target: Generation) -> Batch:
        """State of its own that begins where that of another generation was; see `Executor`.

        Raises:
            MigrationError: If there is no batch to begin after.
        """
        return self.folder(output, source).clone_into(self.folder(output, target), source.initial)

    def archive(self, output: str, generation: Generation, unit: Unit) -> str:
        """Keep the code of a generation: the objects themselves, since they stay in this process."""
        self.folder(output, generation).keep_code(unit)
        return ""

    def restored(self, output: str, generation: Generation) -> Unit:
        """The code of a generation.

        Raises:
            CheckpointMissingError: If it was deployed by another process.
        """
        return self.folder(output, generation).code(generation)
