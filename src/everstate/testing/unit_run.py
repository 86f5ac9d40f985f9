"""One output under the test driver: its shards' pages, how far it has read, and its micro-batches."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import polars as pl

from everstate.errors import EverstateError
from everstate.kernels.evaluation import StepDigests, asks_outside, evaluated, unsettled
from everstate.kernels.output import dead_letter_records
from everstate.kernels.pages.page_store import MemoryPages
from everstate.kernels.parcel import COUNTS, DEAD_LETTERS, MARKS, OUT, RECORDS, Parcel
from everstate.kernels.pipeline import Books, ShardStages, ingested, run_stages
from everstate.kernels.stream_time import mark
from everstate.plan.facts import Mismatch
from everstate.schema.topic_names import dead_letter_topic
from everstate.topology.names import node_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.fingerprints.prints import UnitPrint
    from everstate.kernels.migration.convert import Migration
    from everstate.kernels.pipeline import Piece
    from everstate.kernels.stage import Witness
    from everstate.testing.topics import Topics
    from everstate.topology.unit import Unit

#: So many records of an output are kept to compare another version of it with.
_RECORDED: Final = 500
#: Topic and partition to the next offset to read.
Position: TypeAlias = dict[tuple[str, int], int]


@dataclass(frozen=True)
class Stop:
    """Where a micro-batch ended.

    Attributes:
        position: In the topics that the output read then.
        turn: When that was; it tells where the batch would have ended in other topics.
    """

    position: Position
    turn: int

    def limit(self, topics: Topics, names: Sequence[str]) -> Position:
        """The end of the batch in all partitions of these topics."""
        known = {topic for topic, _ in self.position}
        ends = {
            topic: [self.position.get((topic, partition), 0) for partition in range(topics.partitions)]
            if topic in known
            else topics.end_at(topic, self.turn)
            for topic in names
        }
        return {(topic, partition): end for topic in names for partition, end in enumerate(ends[topic])}


@dataclass(frozen=True)
class Recording:
    """The first micro-batches of an output, with what its steps made of them.

    Attributes:
        digests: Of the steps.
        batches: What was read.
    """

    digests: StepDigests
    batches: tuple[Sequence[Piece], ...] = ()

    @property
    def records(self) -> int:
        """How many records it has."""
        return sum(records.height for batch in self.batches for _, _, records in batch)

    def copy(self, unit: Unit) -> Recording:
        """The same for a version of the same fingerprint; what is added to one does not show in the other."""
        return Recording(self.digests.copy(unit), self.batches)

    def following(self, pieces: Sequence[Piece]) -> Recording | None:
        """A recording that goes on with these records; None if it has enough."""
        if self.records + sum(records.height for _, _, records in pieces) > _RECORDED:
            return None
        return Recording(self.digests.copy(), (*self.batches, pieces))


class UnitRun:
    """Runs one unit.

    Args:
        unit: The unit.
        on_error: The service's policy for records that cannot be processed.
        shards: How many shards.
        generation: Which version of the output it is.
        described: What the output was when it was deployed, since what its code reads may change afterwards; or why
            that cannot be seen.
    """

    def __init__(
        self, unit: Unit, on_error: str, shards: int, generation: int = 1, *, described: UnitPrint | EverstateError
    ) -> None:
        self.unit = unit
        self._described = described
        self.generation = generation
        self.counts: Counter[str] = Counter()
        self.order: list[Stop] = []
        self.on_error = on_error
        self._pages = [MemoryPages() for _ in range(shards)]
        self._books: list[Books] = [{} for _ in range(shards)]
        self.position: Position = {}
        self._recording: Recording | None = Recording(StepDigests(unit))

    @property
    def described(self) -> UnitPrint:
        """What the output was when it was deployed.

        Raises:
            EverstateError: If that cannot be seen.
        """
        if isinstance(self._described, EverstateError):
            raise self._described
        return self._described

    def deployed(self, unit: Unit, described: UnitPrint, on_error: str) -> UnitRun:
        """A copy that goes on with other code on the same state."""
        other = self.copy(described, unit)
        other.unit, other.on_error = unit, on_error
        return other

    def mismatch(self, unit: Unit) -> Mismatch | None:
        """What an output of the same fingerprint makes of the first records that this one did not; None if nothing.

        Where it differs it is asked again: a step that contradicts itself says nothing about the code.
        """
        known = self._recording
        if known is None or not known.batches or asks_outside(unit):
            return None
        before = known.digests.found().steps
        once = evaluated(unit, known.batches, policy=self.on_error, shards=len(self._pages))
        differing = [name for name, digest in before.items() if once.steps.get(name) != digest]
        if not differing:
            return None
        again = evaluated(unit, known.batches, policy=self.on_error, shards=len(self._pages))
        changing = unsettled(unit, once, again)
        step = next((name for name in differing if name not in changing), None)
        if step is None:
            return None
        places = dict(zip(node_names(unit), unit.nodes, strict=True))
        what = f"a sample of {known.records} records gives a different result"
        return Mismatch(what, step, str(places[step].location or "") if step in places else "")

    def copy(self, described: UnitPrint | None = None, unit: Unit | None = None) -> UnitRun:
        """The same output at the same point; what happens to one does not show in the other."""
        known = self._described
        if described is not None and described.fingerprint != self.described.fingerprint:
            known = described
        other = UnitRun(self.unit, self.on_error, len(self._pages), self.generation, described=known)
        other.counts = self.counts.copy()
        other.order = list(self.order)
        other.position = dict(self.position)
        other._books = [dict(books) for books in self._books]
        for pages, mine in zip(other._pages, self._pages, strict=True):
            pages.blocks = dict(mine.blocks)
        if self._recording is None or known is not self._described:
            other._recording = None  # what other code made of earlier records is no evidence against this one
        else:
            other._recording = self._recording.copy(unit or self.unit)
        return other

    def micro_batch(self, topics: Topics, *, target: Topics | None = None, limit: Position | None = None) -> bool:
        """Read what is new, run all stages, publish; if a step raises, nothing is published and the state stays.

        Args:
            topics: Where the sources are.
            target: Where results go; by default to the same topics.
            limit: Source partitions that are read no further than this.

        Returns:
            Whether there was something to read.
        """
        pieces, ends = self._read(topics, limit or {})
        if not ends:
            return False
        before = [dict(pages.blocks) for pages in self._pages]
        recording = self._recording.following(pieces) if self._recording is not None else None
        witness = recording.digests.witness if recording is not None else None
        try:
            published, books = self._run(ingested(self.unit, pieces, self.on_error, witness), witness=witness)
        except BaseException:
            for pages, blocks in zip(self._pages, before, strict=True):
                pages.blocks = blocks
            raise
        if recording is not None:
            recording.digests.end_batch(published)
            self._recording = recording
        self.position.update(ends)
        self.order.append(Stop(dict(self.position), topics.turn))
        self._books = books
        self._publish(published, topics if target is None else target)
        return True

    def migrate(self, migration: Migration, target: Topics) -> None:
        """Convert the state of an earlier version; what is stored becomes the table on these topics.

        Raises:
            MigrationError: If that fails; this run is of no use then.
        """
        self._recording = None
        published, self._books = self._run([], migration)
        self._publish(published, target)

    def advance(self, ts: int, partitions: int) -> None:
        """Move the stream time of all source partitions."""
        marks = [
            Parcel(1, MARKS, 0, mark(place, partition, end, end, ts))
            for place, topic in enumerate(self.unit.topics)
            for partition in range(partitions)
            for end in [self.position.get((topic, partition), 0)]
        ]
        self._recording = None  # the records alone do not tell any more how the state came about
        _, self._books = self._run(marks)

    def _read(self, topics: Topics, limit: Position) -> tuple[list[Piece], Position]:
        pieces = []
        ends: Position = {}
        for topic in self.unit.topics:
            for partition, available in enumerate(topics.end(topic)):
                start = self.position.get((topic, partition), 0)
                end = min(available, limit.get((topic, partition), available))
                if start < end:
                    pieces.append((topic, partition, topics.read(topic, partition, start, end)))
                    ends[topic, partition] = end
        return pieces, ends

    def _run(
        self, parcels: list[Parcel], migration: Migration | None = None, witness: Witness | None = None
    ) -> tuple[list[Parcel], list[Books]]:
        """All stages on every shard; the books are what the next micro-batch begins with."""
        shards = [
            ShardStages(self.unit, pages, books, policy=self.on_error, share=(number, len(self._pages)))
            for number, (pages, books) in enumerate(zip(self._pages, self._books, strict=True))
        ]
        stages = range(1, self.unit.depth + 1)
        sent = run_stages(shards, stages, parcels, due=lambda _: migration, witness=witness)
        return sent, [shard.books for shard in shards]

    def _publish(self, parcels: list[Parcel], topics: Topics) -> None:
        output = self.unit.output.topic
        out = [parcel for parcel in parcels if parcel.stage == OUT]
        for parcel in out:
            if parcel.port == RECORDS:
                append_records(topics, output, parcel.frame, self.unit.service, self.generation)
            elif parcel.port == COUNTS:
                self.counts.update(dict(parcel.frame.iter_rows()))
        letters = [parcel.frame for parcel in out if parcel.port == DEAD_LETTERS]
        if letters:
            records = dead_letter_records(self.unit, pl.concat(letters))
            append_records(topics, dead_letter_topic(output), records, self.unit.service, self.generation)


def append_records(topics: Topics, topic: str, records: pl.DataFrame, service: str, generation: int) -> None:
    """Put the records of an output on its topic; without a partition, where their keys belong."""
    headers = {"es-service": service.encode(), "es-generation": str(generation).encode()}
    for record in records.iter_rows(named=True):
        place = record.get("partition")
        topics.append(
            topic, key=record["key"], value=record["value"], ts=record["ts"], partition=place, headers=headers
        )
