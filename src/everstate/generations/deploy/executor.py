"""What runs an output: the one thing that a deployment does not do itself.

A deployment decides, writes the registry, compares and publishes. Whatever keeps the state of a generation and calls
its kernels is an `Executor`: Spark is one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection

    from everstate.generations.deploy.outputs import PreparedOutput
    from everstate.generations.generation import Generation
    from everstate.generations.state.folder import StateFolder
    from everstate.kernels.migration.convert import Migration
    from everstate.log.descriptions import Batch, Commit, Lease, Vector
    from everstate.topology.unit import Unit


@dataclass
class Tally:
    """What an output has done since it was started.

    Attributes:
        batches: Micro-batches committed.
        read: Records read.
        written: Records published.
        counts: Dead letters and dropped rows by name.
        last_ms: How long the last batch took, from its results to the commit.
        position: Where in its sources the output is.
        times: The stream times that it has reached there; see `Batch`.
    """

    batches: int = 0
    read: int = 0
    written: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    last_ms: float = 0.0
    position: Vector = field(default_factory=dict)
    times: Vector = field(default_factory=dict)


class Execution(Protocol):
    """One generation while it runs."""

    @property
    def output(self) -> PreparedOutput:
        """What runs."""

    @property
    def name(self) -> str:
        """The output's name."""

    @property
    def tally(self) -> Tally:
        """What it has done so far."""

    @property
    def position(self) -> Vector:
        """Where it had got to before it was started."""

    def start(self, *, once: bool) -> None:
        """Begin to process micro-batches; with `once`, what is there when it begins.

        Raises:
            EverstateError: If it cannot.
        """

    def active(self) -> bool:
        """Whether it runs, or is about to be started again.

        Raises:
            EverstateError: If it has failed, and trying again has not helped or cannot help.
        """

    def coming_up(self) -> bool:
        """Whether it has been started, and has neither done its first batch nor found that there is nothing to do.

        Raises:
            EverstateError: If it has failed.
        """

    def announce_stop(self) -> None:
        """A batch that begins from now on need not be waited for."""

    def stop(self, deadline: float) -> None:
        """Let the batch in progress finish, then stop.

        Raises:
            EverstateError: If it has failed meanwhile.
        """

    def state_bytes(self) -> int:
        """The size of its state."""


class Executor(Protocol):
    """Runs generations, and keeps what each needs to be run again.

    Attributes:
        pause: Seconds between two looks at what runs.
    """

    pause: float

    @property
    def startup(self) -> float | None:
        """Seconds until it can run something, as it was measured the last time; None if that is not known."""

    def cores(self) -> int:
        """How many tasks it runs at once; the shards of an output that is new, where nothing else is said."""

    def execution(
        self,
        output: PreparedOutput,
        lease: Lease,
        *,
        closed: bool = False,
        effects: bool = False,
        end: Vector | None = None,
        migration: Migration | None = None,
    ) -> Execution:
        """A generation that can be started.

        Args:
            output: What to run.
            lease: Under which it commits.
            closed: It is being built: its results go to topics of its own, side effects do not happen.
            effects: Side effects happen all the same.
            end: Where it stops reading; None for never.
            migration: What its shards do to the state of an earlier version; None for nothing.
        """

    def folder(self, output: str, generation: Generation) -> StateFolder:
        """What is kept of a generation beside its state."""

    def sweep(self, output: str, numbers: Collection[int]) -> None:
        """Delete what is there of generations that no longer exist: a replaced process may have written again."""

    def inspect(self, unit: Unit, generation: Generation, last: Commit | None) -> None:
        """Make sure that a generation's state is whole and belongs to what the log holds.

        Args:
            unit: What computes it.
            generation: Whose it is.
            last: The last batch that the log has of it; None for none.

        Raises:
            StateError: If it is not.
        """

    def last_batch(self, output: str, generation: Generation) -> int | None:
        """The last batch that is complete in a generation's state; the log may have one more. None for none."""

    def batch_end(self, output: str, generation: Generation, batch_id: int) -> Vector:
        """Where a batch of a generation ended.

        Raises:
            StateError: If that is not known.
        """

    def clone(self, output: str, source: Generation, target: Generation) -> Batch:
        """Give a generation state of its own that begins where that of another one was, with a batch to run on it.

        Args:
            output: Whose generations they are.
            source: The one whose state it is.
            target: The one that gets it.

        Returns:
            The last batch that the state holds now, under an id of its own.

        Raises:
            MigrationError: If there is no batch to begin after.
        """

    def archive(self, output: str, generation: Generation, unit: Unit) -> str:
        """Keep the code of a generation; returns its digest."""

    def restored(self, output: str, generation: Generation) -> Unit:
        """The code of a generation as it was kept.

        Raises:
            StateError: If it is gone or damaged.
        """
