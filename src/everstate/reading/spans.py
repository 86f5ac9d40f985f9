"""Which records of a topic are looked at: ranges of offsets and of time, the first or last of them, in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeAlias

import polars as pl

from everstate.errors import ConfigurationError
from everstate.log import records
from everstate.reading.times import milliseconds_since_1970

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from everstate.log.protocol import Log

#: Where a reading begins or ends: a time (a datetime, or text as `times` takes it), one offset for every partition, or
#: offsets by partition.
Bound: TypeAlias = datetime | str | int | Mapping[int, int] | None

#: The order of a stream's records over all partitions.
ORDER: Final = ("ts", "partition", "offset")
RECORDS_AT_A_TIME: Final = 50_000


@dataclass(frozen=True)
class Span:
    """A part of a topic, fixed when it was asked for: records that come later are not in it.

    Attributes:
        topic: The topic.
        begins: The first offset, by partition.
        ends: The offset after the last one, by partition.
        since_ms: Records before this time are left out; None for no limit.
        until_ms: Records at this time or after it are left out; None for no limit.
    """

    topic: str
    begins: dict[int, int]
    ends: dict[int, int]
    since_ms: int | None = None
    until_ms: int | None = None

    @property
    def offsets(self) -> int:
        """How many offsets it covers; on a compacted topic that is more than there are records."""
        return sum(end - self.begins[partition] for partition, end in self.ends.items())

    @property
    def timed(self) -> bool:
        """Whether records are chosen by time, too."""
        return self.since_ms is not None or self.until_ms is not None

    def within(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Those records of a frame whose time is in the span."""
        if self.since_ms is not None:
            frame = frame.filter(pl.col("ts") >= self.since_ms)
        if self.until_ms is not None:
            frame = frame.filter(pl.col("ts") < self.until_ms)
        return frame


def span(log: Log, topic: str, start: Bound = None, end: Bound = None) -> Span:
    """The part of a topic between two bounds, as far as it is there now.

    Raises:
        ConfigurationError: If a bound is not one.
        TopicNotFoundError: If there is no such topic.
    """
    begins, ends = log.begin_offsets([topic])[topic], log.end_offsets([topic])[topic]
    since_ms = milliseconds_since_1970(start) if isinstance(start, (datetime, str)) else None
    until_ms = milliseconds_since_1970(end) if isinstance(end, (datetime, str)) else None
    first = {**begins, **_offsets("start", start, begins)}
    last = {**ends, **{p: min(offset, ends[p]) for p, offset in _offsets("end", end, ends).items()}}
    # A range that is the wrong way round holds nothing; the log would have to refuse it.
    return Span(topic, {p: min(first[p], max(last[p], begins[p])) for p in begins}, last, since_ms, until_ms)


def _offsets(name: str, bound: Bound, known: dict[int, int]) -> dict[int, int]:
    if bound is None or isinstance(bound, (datetime, str)):
        return {}
    given = dict.fromkeys(known, bound) if isinstance(bound, int) else bound
    if not isinstance(given, Mapping) or not all(_is_offset(part) for pair in given.items() for part in pair):
        raise ConfigurationError(
            f"{name}={bound!r} is neither a time nor an offset",
            hint=f"Write {name}='2024-05-01 10:00', an offset such as {name}=100, or offsets by partition: "
            f"{name}={{0: 100}}",
        )
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise ConfigurationError(
            f"{name}={bound!r}: there is no partition {unknown[0]}",
            hint=f"The topic has {len(known)}, numbered 0 to {len(known) - 1}.",
        )
    return {int(partition): int(offset) for partition, offset in given.items()}


def _is_offset(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def frames(log: Log, part: Span) -> Iterator[pl.DataFrame]:
    """The records of a span, partition by partition in the order of their offsets, some at a time."""
    for partition, end in part.ends.items():
        for split in log.splits(part.topic, partition, part.begins[partition], end, max_records=RECORDS_AT_A_TIME):
            yield part.within(log.read_split(split))


def first(found: Iterable[pl.DataFrame], count: int) -> pl.DataFrame:
    """The first records by time, partition and offset; holds little more than these."""
    return _reduced(found, count, lambda frame: frame.head(count))


def last(found: Iterable[pl.DataFrame], count: int) -> pl.DataFrame:
    """The last records by time, partition and offset; holds little more than these."""
    return _reduced(found, count, lambda frame: frame.tail(count))


def _reduced(found: Iterable[pl.DataFrame], count: int, chosen: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
    kept, fresh = records.empty(), 0
    waiting: list[pl.DataFrame] = []
    for frame in found:
        waiting.append(frame)
        fresh += frame.height
        if fresh > max(count, RECORDS_AT_A_TIME):
            kept, waiting, fresh = chosen(pl.concat([kept, *waiting]).sort(ORDER)), [], 0
    return chosen(pl.concat([kept, *waiting]).sort(ORDER))


def tail(log: Log, part: Span, count: int) -> pl.DataFrame:
    """The last records of a span, without reading what lies before them where that can be helped."""
    if part.timed:
        return last(frames(log, part), count)
    return last((_tail_of(log, part, partition, count) for partition in part.ends), count)


def _tail_of(log: Log, part: Span, partition: int, count: int) -> pl.DataFrame:
    """So many of a partition's last records: offsets have gaps where the topic was compacted."""
    begin, end = part.begins[partition], part.ends[partition]
    width = max(1, count)
    while True:
        start = max(begin, end - width)
        one = Span(part.topic, {partition: start}, {partition: end})
        found = pl.concat([records.empty(), *frames(log, one)])
        if found.height >= count or start == begin:
            return found.tail(count)
        width *= 4
