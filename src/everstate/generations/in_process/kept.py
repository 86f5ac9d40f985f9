"""What outlives an execution in one process: planned and completed batches, and the state that each has left.

The same as a checkpoint of Spark's holds, and with the same meaning: a batch that was planned and not completed is run
again, with the same end, on the state of the one before.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from everstate.errors import CheckpointDamagedError, CheckpointMissingError, FencedError, MigrationError
from everstate.generations.state.samples import document
from everstate.log.descriptions import Batch

if TYPE_CHECKING:
    from pathlib import Path

    from everstate.generations.generation import Generation
    from everstate.generations.in_process.recording import Recording
    from everstate.generations.state.folder import OutputRecord
    from everstate.kernels.pipeline import Books
    from everstate.log.descriptions import Vector
    from everstate.topology.unit import Unit

#: So many states are kept: a batch that was committed may be run again on the one before it.
_STATES: Final = 2
#: What comes before the first batch.
_BEFORE: Final = -1


@dataclass(frozen=True)
class ShardState:
    """One shard after a batch.

    Attributes:
        blocks: Its pages.
        books: What its stages must remember.
        converted: The marks of migrations that its state has been through.
    """

    blocks: dict[tuple[int, int], bytes] = field(default_factory=dict)
    books: Books = field(default_factory=dict)
    converted: frozenset[str] = frozenset()


class Kept:
    """All that is kept of one generation; complete after every call.

    Args:
        home: The folder of the service's state, where archives of sources are.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self._clear()

    def _clear(self) -> None:
        self.query_id = str(uuid.uuid4())
        self._record: OutputRecord | None = None
        self._code: Unit | None = None
        self._migration: dict[str, int] = {}
        self._sample: tuple[int, dict[str, Any]] | None = None
        self._sources: dict[str, Any] | None = None
        self.recording: Recording | None = None
        self._ends: dict[int, Vector] = {}
        self._states: dict[int, tuple[ShardState, ...]] = {}

    # -- beside the state: see `StateFolder` --------------------------------------------------------------------------

    def exists(self) -> bool:
        """Whether there is anything."""
        return any((self._record, self._code, self._migration, self._sample, self._ends, self._states))

    def size(self) -> int:
        """The bytes of its pages."""
        states = self._states[max(self._states)] if self._states else ()
        return sum(len(block) for state in states for block in state.blocks.values())

    def delete(self) -> None:
        """Forget all of it."""
        self._clear()

    def write_record(self, record: OutputRecord) -> None:
        """Remember what the state belongs to."""
        self._record = record

    @property
    def migrated(self) -> bool:
        """Whether it begins with the state of another generation."""
        return bool(self._migration)

    def read_migration(self) -> dict[str, Any]:
        """Whose state it begins with, and from which batch on."""
        return dict(self._migration)

    def write_migration(self, **known: int) -> None:
        """Remember whose state it begins with."""
        self._migration = dict(known)

    def sample_stamp(self) -> int | None:
        """How many samples there have been, or how much of one there is; None without one."""
        if self.recording is not None:
            return self.recording.stamp
        return self._sample[0] if self._sample is not None else None

    def read_sample(self) -> dict[str, Any] | None:
        """Some of its inputs, and what it made of them; None without them."""
        if self.recording is not None:
            recorded = self.recording.sample()
            return None if recorded is None else document(recorded)
        return dict(self._sample[1]) if self._sample is not None else None

    def write_sample(self, document: dict[str, Any]) -> None:
        """Keep a sample in the place of the one that is there."""
        self._sample = ((self.sample_stamp() or 0) + 1, document)

    def read_sources(self) -> dict[str, Any] | None:
        """What the text of its service said; None where that was not kept."""
        return self._sources

    def write_sources(self, document: dict[str, Any]) -> None:
        """Keep what the text of its service says."""
        self._sources = document

    def copy(self) -> Kept:
        """The same at this moment, apart: what happens to one does not show in the other."""
        other = Kept(self.home)
        vars(other).update({name: dict(it) if isinstance(it, dict) else it for name, it in vars(self).items()})
        other.recording = None if self.recording is None else self.recording.copy()
        return other

    # -- code ---------------------------------------------------------------------------------------------------------

    def keep_code(self, unit: Unit) -> None:
        """Remember what computes it."""
        self._code = unit

    def code(self, generation: Generation) -> Unit:
        """What computes it.

        Raises:
            CheckpointMissingError: If nobody has said so.
        """
        if self._code is None:
            raise CheckpointMissingError(
                f"generation {generation.number} has left no code in this process",
                hint="Run the version of the file that it was deployed from.",
            )
        return self._code

    # -- batches ------------------------------------------------------------------------------------------------------

    @property
    def last(self) -> int | None:
        """The last batch that is complete."""
        return max(self._states, default=None)

    @property
    def planned(self) -> int | None:
        """The batch that was planned and not completed; None if there is none."""
        newest = max(self._ends, default=_BEFORE)
        return newest if newest > (_BEFORE if self.last is None else self.last) else None

    def end(self, batch_id: int) -> Vector:
        """Where a batch ends.

        Raises:
            CheckpointMissingError: If that is no longer known.
        """
        if batch_id not in self._ends:
            raise CheckpointMissingError(f"batch {batch_id} is no longer known", hint="Recalculate the output.")
        return self._ends[batch_id]

    def start(self, batch_id: int, initial: Vector) -> Vector:
        """Where a batch begins; the first one where the generation does."""
        return initial if batch_id == 0 else self.end(batch_id - 1)

    def plan(self, batch_id: int, end: Vector) -> None:
        """Decide where a batch ends, once.

        Raises:
            FencedError: If another process has done so meanwhile.
        """
        if self._ends.setdefault(batch_id, end) != end:
            raise FencedError(f"another process has planned batch {batch_id}", hint="Start the service again.")

    def states(self, batch_id: int, shards: int) -> tuple[ShardState, ...]:
        """The shards before a batch.

        Raises:
            CheckpointDamagedError: If the state is not that of the batch before.
        """
        if batch_id == 0:
            return tuple(ShardState() for _ in range(shards))
        if batch_id - 1 not in self._states or len(self._states[batch_id - 1]) != shards:
            raise CheckpointDamagedError(f"there is no state before batch {batch_id}", hint="Recalculate the output.")
        return self._states[batch_id - 1]

    def complete(self, batch_id: int, states: tuple[ShardState, ...]) -> None:
        """Note that a batch is done, with what it has left."""
        self._states[batch_id] = states
        for old in [number for number in self._states if number <= batch_id - _STATES]:
            del self._states[old]
        for old in [number for number in self._ends if number < batch_id - _STATES]:
            del self._ends[old]

    def clone_into(self, target: Kept, initial: Vector) -> Batch:
        """Let another generation begin where the last batch has ended; it converts its state in an empty one.

        Raises:
            MigrationError: If there is no such batch.
        """
        last = self.last
        if last is None:
            raise MigrationError("the active generation has not completed a micro-batch yet")
        target.query_id = str(uuid.uuid4())
        target._states = {last: self._states[last]}
        target._ends = {
            **{number: end for number, end in self._ends.items() if number <= last},
            last + 1: self.end(last),
        }
        return Batch(target.query_id, last, self.start(last, initial), self.end(last))
