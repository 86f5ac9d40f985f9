"""One output under the test driver: its shards' pages, how far it has read, and its micro-batches."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

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


class UnitRun:
    """Runs one unit.

    Args:
        unit: The unit.
        on_error: The service's policy for records that cannot be processed.
        shards: How many shards.
    """

    def __init__(self, unit: Unit, on_error: str, shards: int) -> None:
        self.unit = unit
        self.counts: Counter[str] = Counter()
        self._on_error = on_error
        self._pages = [MemoryPages() for _ in range(shards)]
        self._bookkeeping: list[bytes | None] = [None] * shards
        self._position: dict[tuple[str, int], int] = {}

    def micro_batch(self, topics: Topics) -> None:
        """Read what is new, run all stages, publish; if a step raises, nothing is published and the state stays."""
        parcels, ends = self._ingest(topics)
        if not ends:
            return
        before = [dict(pages.blocks) for pages in self._pages]
        try:
            published, bookkeeping = self._run(parcels)
        except BaseException:
            for pages, blocks in zip(self._pages, before, strict=True):
                pages.blocks = blocks
            raise
        self._position.update(ends)
        self._bookkeeping = bookkeeping
        self._publish(published, topics)

    def advance(self, ts: int, partitions: int) -> None:
        """Move the stream time of all source partitions."""
        marks = [
            Parcel(1, MARKS, 0, mark(place, partition, end, end, ts))
            for place, topic in enumerate(self.unit.topics)
            for partition in range(partitions)
            for end in [self._position.get((topic, partition), 0)]
        ]
        _, self._bookkeeping = self._run(marks)

    def _ingest(self, topics: Topics) -> tuple[list[Parcel], dict[tuple[str, int], int]]:
        ledger = Ledger(self.unit.topics, self._on_error)
        parcels: list[Parcel] = []
        ends: dict[tuple[str, int], int] = {}
        for topic in self.unit.topics:
            for partition, end in enumerate(topics.end(topic)):
                start = self._position.get((topic, partition), 0)
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
                _append(topics, output, parcel.frame, self.unit.service)
            elif parcel.port == COUNTS:
                self.counts.update(dict(parcel.frame.iter_rows()))
        letters = [parcel.frame for parcel in out if parcel.port == DEAD_LETTERS]
        if letters:
            _append(topics, f"{output}.dlq", dead_letter_records(self.unit, pl.concat(letters)), self.unit.service)


def _append(topics: Topics, topic: str, records: pl.DataFrame, service: str) -> None:
    headers = {"es-service": service.encode()}
    for key, value, ts in records.select("key", "value", "ts").iter_rows():
        topics.append(topic, key=key, value=value, ts=ts, headers=headers)
