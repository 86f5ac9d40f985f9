"""One output under the test driver: its shards' pages, how far it has read, and its micro-batches."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from everstate.kernels.ledger import Ledger
from everstate.kernels.output import dead_letter_records
from everstate.kernels.pages import MemoryPages
from everstate.kernels.parcel import COUNTS, DEAD_LETTERS, MARKS, OUT, RECORDS, Parcel, by_shard
from everstate.kernels.shard import Shard
from everstate.kernels.stage import farewell, ingest, run_stage
from everstate.kernels.stream_time import mark

if TYPE_CHECKING:
    from everstate.testing.topics import Topics
    from everstate.topology.unit import Unit


#: Topic and partition to the next offset to read.
Position: TypeAlias = dict[tuple[str, int], int]


class UnitRun:
    """Runs one unit.

    Args:
        unit: The unit.
        on_error: The service's policy for records that cannot be processed.
        shards: How many shards.
        generation: Which version of the output it is.
    """

    def __init__(self, unit: Unit, on_error: str, shards: int, generation: int = 1) -> None:
        self.unit = unit
        self.generation = generation
        self.counts: Counter[str] = Counter()
        self.order: list[Position] = []
        self._on_error = on_error
        self._pages = [MemoryPages() for _ in range(shards)]
        self._bookkeeping: list[bytes | None] = [None] * shards
        self.position: Position = {}

    def micro_batch(self, topics: Topics, *, target: Topics | None = None, limit: Position | None = None) -> None:
        """Read what is new, run all stages, publish; if a step raises, nothing is published and the state stays.

        Args:
            topics: Where the sources are.
            target: Where results go; by default to the same topics.
            limit: Source partitions that are read no further than this.
        """
        parcels, ends = self._ingest(topics, limit or {})
        if not ends:
            return
        before = [dict(pages.blocks) for pages in self._pages]
        try:
            published, bookkeeping = self._run(parcels)
        except BaseException:
            for pages, blocks in zip(self._pages, before, strict=True):
                pages.blocks = blocks
            raise
        self.position.update(ends)
        self.order.append(dict(self.position))
        self._bookkeeping = bookkeeping
        self._publish(published, topics if target is None else target)

    def advance(self, ts: int, partitions: int) -> None:
        """Move the stream time of all source partitions."""
        marks = [
            Parcel(1, MARKS, 0, mark(place, partition, end, end, ts))
            for place, topic in enumerate(self.unit.topics)
            for partition in range(partitions)
            for end in [self.position.get((topic, partition), 0)]
        ]
        _, self._bookkeeping = self._run(marks)

    def _ingest(self, topics: Topics, limit: Position) -> tuple[list[Parcel], Position]:
        ledger = Ledger(self.unit.topics, self._on_error)
        parcels: list[Parcel] = []
        ends: Position = {}
        for topic in self.unit.topics:
            for partition, available in enumerate(topics.end(topic)):
                start = self.position.get((topic, partition), 0)
                end = min(available, limit.get((topic, partition), available))
                if start < end:
                    records = topics.read(topic, partition, start, end)
                    parcels += ingest(self.unit, topic, partition, records, ledger)
                    ends[topic, partition] = end
        return parcels + farewell(self.unit, ledger), ends

    def _run(self, parcels: list[Parcel]) -> tuple[list[Parcel], list[bytes | None]]:
        """All stages, one after the other, each on every shard that gets a parcel."""
        bookkeeping = list(self._bookkeeping)
        for stage in range(1, self.unit.depth + 1):
            waiting = [parcel for parcel in parcels if parcel.stage == stage]
            parcels = [parcel for parcel in parcels if parcel.stage != stage]
            lots: dict[int, list[Parcel]] = {}
            for parcel in waiting:
                for number, frame in by_shard(parcel, len(self._pages)).items():
                    lots.setdefault(number, []).append(Parcel(stage, parcel.node, parcel.port, frame))
            for number, lot in sorted(lots.items()):
                ledger = Ledger(self.unit.topics, self._on_error)
                shard = Shard(self._pages[number], bookkeeping[number], ledger)
                parcels += run_stage(self.unit, stage, lot, shard)
                bookkeeping[number] = shard.close()
                parcels += farewell(self.unit, ledger)
        return parcels, bookkeeping

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
            append_records(topics, f"{output}.dlq", records, self.unit.service, self.generation)


def append_records(topics: Topics, topic: str, records: pl.DataFrame, service: str, generation: int) -> None:
    """Put the records of an output on its topic."""
    headers = {"es-service": service.encode(), "es-generation": str(generation).encode()}
    for key, value, ts in records.select("key", "value", "ts").iter_rows():
        topics.append(topic, key=key, value=value, ts=ts, headers=headers)
