"""Reading ranges of partitions: what was committed, in frames.

The end of a range is known before it is read, and need not be the offset of a record: transactions, compaction and
what was undone leave gaps. A partition has been read when a record at or beyond the end comes, or the client says that
there is nothing more.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError, TopicPartition

from everstate.errors import LogUnavailableError, TopicNotFoundError, TopicRecreatedError
from everstate.log.checks import check_range, check_split_size, unknown_partition
from everstate.log.descriptions import Split, TopicConfig
from everstate.log.kafka.failures import UNKNOWN_TOPIC, named
from everstate.log.last_records import last_of_each_key, table_of
from everstate.log.records import APPENDED, SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from confluent_kafka import Message

    from everstate.log.kafka.clients import Clients
    from everstate.log.kafka.topics import Topics

#: As many messages are taken from the client at once, and make a frame together.
_AT_ONCE: Final = 50_000
#: A broker that gives nothing for so long is taken for unreachable.
_PATIENCE_S: Final = 60.0
_PASSING: Final = (
    KafkaError._TRANSPORT,  # noqa: SLF001 - the client's own names begin so
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.GROUP_AUTHORIZATION_FAILED,  # the client looks for a group by itself; none is ever joined
    *UNKNOWN_TOPIC,
)
_TIMED: Final = {**SCHEMA, APPENDED: pl.Int64()}


@dataclass(frozen=True)
class Reader:
    """Reads topics of a cluster."""

    clients: Clients
    topics: Topics

    def read(
        self, topic: str, partition: int, start: int, end: int | None = None, *, limit: int | None = None
    ) -> pl.DataFrame:
        """The records of a range, in order, with the time they were appended where the log knows it."""
        until = self.checked(topic, partition, start, end)
        frames: list[pl.DataFrame] = []
        count = 0
        for frame in self.scan(topic, {partition: start}, {partition: until}) if limit != 0 else ():
            frames.append(frame)
            count += len(frame)
            if limit is not None and count >= limit:
                break
        whole = pl.concat(frames) if frames else pl.DataFrame(schema=_TIMED)
        return whole if limit is None else whole.head(limit)

    def checked(self, topic: str, partition: int, start: int, end: int | None = None) -> int:
        """Where a range ends, if the partition has it.

        Raises:
            OffsetOutOfRangeError: If it has not.
            LogError: If there is no such partition.
        """
        begins, ends = self.topics.begins([topic])[topic], self.topics.ends([topic])[topic]
        if partition not in ends:
            raise unknown_partition(topic, TopicConfig(partitions=len(ends)), partition)
        check_range(topic, partition, (begins[partition], ends[partition]), start, end)
        return ends[partition] if end is None else end

    def scan(self, topic: str, starts: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[pl.DataFrame]:
        """The records of ranges, of each partition in order; a frame has records of one partition."""
        left = {number: end for number, end in ends.items() if starts[number] < end}
        if not left:
            return
        with self.clients.consumer() as consumer:
            self.clients.introduce(consumer, topic)
            consumer.assign([TopicPartition(topic, number, starts[number]) for number in left])
            patience = time.monotonic() + _PATIENCE_S
            while left:
                found = consumer.consume(_AT_ONCE, timeout=0) or consumer.consume(1, timeout=1.0)
                good = self._taken(topic, found, left)
                if found:
                    patience = time.monotonic() + _PATIENCE_S if good else patience
                if not good:
                    self.clients.require_access()
                if time.monotonic() > patience:
                    if not self.topics.exists(topic):
                        raise TopicNotFoundError(topic)
                    raise LogUnavailableError(
                        f"topic {topic!r} could not be read: the brokers gave nothing for {_PATIENCE_S:.0f} s",
                        hint="Nothing is lost: make sure that the brokers run, then run it again.",
                    )
                for number in sorted(good):
                    if good[number]:
                        yield _frame(good[number], number)

    def _taken(self, topic: str, found: Sequence[Message], left: dict[int, int]) -> dict[int, list[Message]]:
        """The messages that belong to the ranges, by partition; ranges that are at their end are taken from `left`."""
        good: dict[int, list[Message]] = {}
        for message in found:
            error = message.error()
            number = int(message.partition())
            if error is None:
                if number in left and message.offset() < left[number]:
                    good.setdefault(number, []).append(message)
                    if message.offset() == left[number] - 1:
                        del left[number]
                else:
                    left.pop(number, None)
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - the client's name
                left.pop(number, None)
                good.setdefault(number, [])
            elif error.code() == KafkaError._AUTO_OFFSET_RESET or error.code() == KafkaError.OFFSET_OUT_OF_RANGE:  # noqa: SLF001
                self.checked(topic, number, int(message.offset() or 0))
                raise named(error, f"topic {topic!r} cannot be read", topic=topic)
            elif error.code() not in _PASSING:
                raise named(error, f"topic {topic!r} cannot be read", topic=topic)
        return good

    def splits(self, topic: str, partition: int, start: int, end: int, *, max_records: int) -> list[Split]:
        """Cut a range by offsets."""
        check_split_size(max_records)
        identity = self.topics.ids([topic])[topic]
        self.checked(topic, partition, start, end)
        return [
            Split(topic, partition, at, min(end, at + max_records), identity) for at in range(start, end, max_records)
        ]

    def read_split(self, split: Split) -> pl.DataFrame:
        """The records of a split.

        Raises:
            TopicRecreatedError: If the topic is not the one that it was made of.
            OffsetOutOfRangeError: If records of it are gone.
        """
        if self.topics.ids([split.topic])[split.topic] != split.location:
            raise TopicRecreatedError(split.topic)
        return self.read(split.topic, split.partition, split.start, split.end).select(*SCHEMA)

    def latest(self, topic: str) -> pl.DataFrame:
        """The last record of every key, without tombstones."""
        begins, ends = self.topics.begins([topic])[topic], self.topics.ends([topic])[topic]
        last: dict[int, pl.DataFrame] = {}
        for number in sorted(ends):
            if begins[number] < ends[number]:
                part = self.scan(topic, {number: begins[number]}, {number: ends[number]})
                last[number] = last_of_each_key(frame.select(*SCHEMA) for frame in part)
        return table_of(list(last.values()), len(ends))


def _frame(messages: Sequence[Message], partition: int) -> pl.DataFrame:
    times = [message.timestamp() for message in messages]
    headers = [message.headers() for message in messages]
    appended = bool(times) and times[0][0] == TIMESTAMP_LOG_APPEND_TIME
    return pl.DataFrame(
        {
            "key": [message.key() for message in messages],
            "value": [message.value() for message in messages],
            "ts": [time for _, time in times],
            "headers": [_headers(found) for found in headers] if any(headers) else [None] * len(headers),
            "offset": [message.offset() for message in messages],
            "partition": [partition] * len(messages),
            APPENDED: [time if appended else None for _, time in times],
        },
        schema=_TIMED,
    )


def _headers(found: Any) -> list[dict[str, Any]] | None:
    return [{"name": name, "value": value} for name, value in found] if found else None
