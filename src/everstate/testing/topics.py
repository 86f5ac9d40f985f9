"""Topics in memory, partitioned as Kafka would."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass

import polars as pl

from everstate.schema.partitioner import partition_of_key


@dataclass(frozen=True)
class StoredRecord:
    """A record as bytes.

    Attributes:
        turn: How many records all topics together had before it: when it was appended.
    """

    key: bytes | None
    value: bytes | None
    ts: int
    partition: int
    offset: int
    headers: tuple[tuple[str, bytes], ...]
    turn: int


class Topics:
    """All topics of a driver.

    Args:
        partitions: Partitions of every topic.
    """

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self._records: dict[str, list[list[StoredRecord]]] = {}
        self.turn = 0
        self._published: dict[str, list[StoredRecord]] = {}
        self._nameless: Counter[str] = Counter()

    def copy(self) -> Topics:
        """The same records; what is appended to one does not show in the other."""
        other = Topics(self.partitions)
        other._records = {topic: [list(lane) for lane in lanes] for topic, lanes in self._records.items()}
        other._published = {topic: list(records) for topic, records in self._published.items()}
        other._nameless = self._nameless.copy()
        other.turn = self.turn
        return other

    def append(
        self,
        topic: str,
        *,
        key: bytes | None,
        value: bytes | None,
        ts: int,
        partition: int | None = None,
        headers: dict[str, bytes] | None = None,
    ) -> None:
        """Add a record; without a partition, where the key belongs, and in turn where there is no key."""
        if partition is None:
            partition = self._place(topic, key)
        lane = self._lanes(topic)[partition]
        record = StoredRecord(key, value, ts, partition, len(lane), tuple((headers or {}).items()), self.turn)
        self.turn += 1
        lane.append(record)
        self._published.setdefault(topic, []).append(record)

    def end(self, topic: str) -> list[int]:
        """The next offset of every partition."""
        return [len(lane) for lane in self._lanes(topic)]

    def end_at(self, topic: str, turn: int) -> list[int]:
        """The next offset of every partition as it was at that turn."""
        return [bisect_left(lane, turn, key=lambda record: record.turn) for lane in self._lanes(topic)]

    def read(self, topic: str, partition: int, start: int, end: int) -> pl.DataFrame:
        """A range of a partition as a records frame."""
        lane = self._lanes(topic)[partition][start:end]
        return pl.DataFrame(
            {
                "key": [record.key for record in lane],
                "value": [record.value for record in lane],
                "ts": [record.ts for record in lane],
                "offset": [record.offset for record in lane],
            },
            schema={"key": pl.Binary, "value": pl.Binary, "ts": pl.Int64, "offset": pl.Int64},
        )

    def latest(self, topic: str) -> pl.DataFrame:
        """The last record of every key, tombstones left out: key, value, ts, partition and offset."""
        last = {record.key: record for record in self.all(topic) if record.key is not None}
        rows = [(r.key, r.value, r.ts, r.partition, r.offset) for r in last.values() if r.value is not None]
        schema = {"key": pl.Binary, "value": pl.Binary, "ts": pl.Int64, "partition": pl.Int32, "offset": pl.Int64}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def count(self, topic: str) -> int:
        """How many records a topic has."""
        return len(self._published.get(topic, []))

    def all(self, topic: str) -> list[StoredRecord]:
        """Every record, in the order of publication."""
        return self._published.get(topic, [])

    def _lanes(self, topic: str) -> list[list[StoredRecord]]:
        return self._records.setdefault(topic, [[] for _ in range(self.partitions)])

    def _place(self, topic: str, key: bytes | None) -> int:
        if key is None:
            self._nameless[topic] += 1
            return (self._nameless[topic] - 1) % self.partitions
        return partition_of_key(key, self.partitions)
