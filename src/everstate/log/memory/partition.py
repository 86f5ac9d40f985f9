"""One partition in memory: chunks of records that are never changed, and what becomes of it when some are added.

Records stay in the frames in which they came. An expression of Polars costs more than all else that a small append or
read does, so frames are only put side by side, sliced and stacked.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from everstate.log import records
from everstate.log.arrival import Appends
from everstate.log.records import APPENDED

if TYPE_CHECKING:
    from collections.abc import Sequence

#: So many chunks become one, as long as that is small: an append costs the same however many there were.
_CHUNKS: Final = 64
_SMALL: Final = 4096
#: Stacking frames one by one costs less than `concat` for a few.
_FEW: Final = 16
_LAST: Final = (1 << 63) - 1


@dataclass(frozen=True)
class Chunk:
    """Records with the offsets of a range, or some of them where compaction has been.

    Attributes:
        base: The first offset of the range.
        end: One after the last.
        frame: The records, with their offsets and partition.
        appended: When the log got them: all, or each.
    """

    base: int
    end: int
    frame: pl.DataFrame
    appended: int | pl.Series

    def within(self, start: int, end: int) -> Chunk:
        """The part that lies in a range."""
        if start <= self.base and end >= self.end:
            return self
        first, last = (self._row(max(self.base, min(self.end, offset))) for offset in (start, end))
        times = self.appended if isinstance(self.appended, int) else self.appended.slice(first, last - first)
        return Chunk(max(self.base, start), min(self.end, end), self.frame.slice(first, last - first), times)

    def _row(self, offset: int) -> int:
        if self.frame.height == self.end - self.base:
            return offset - self.base
        return int(self.frame.get_column("offset").search_sorted(offset, side="left"))

    def times(self) -> pl.Series:
        """When the log got each record."""
        if isinstance(self.appended, int):
            return pl.Series(APPENDED, [self.appended], pl.Int64).new_from_index(0, self.frame.height)
        return self.appended

    def arrived(self) -> int:
        """When the last of the records came."""
        return self.appended if isinstance(self.appended, int) else int(self.appended.max() or 0)  # type: ignore[arg-type]

    def timed(self) -> pl.DataFrame:
        """The records with the column `appended`."""
        return self.frame.hstack([self.times()])


@dataclass(frozen=True)
class Partition:
    """The records of one partition.

    Attributes:
        number: Which one it is.
        begin: The first offset.
        end: The next one to be written.
        chunks: The records, in order.
        clean_to: Up to where there is one record per key.
        dropped_ms: When compaction has last dropped tombstones.
        dropped_to: One after the last of these; 0 if there were none.
    """

    number: int
    begin: int = 0
    end: int = 0
    chunks: tuple[Chunk, ...] = ()
    clean_to: int = 0
    dropped_ms: int = 0
    dropped_to: int = 0

    @property
    def records(self) -> int:
        """How many there are."""
        return sum(chunk.frame.height for chunk in self.chunks)

    @property
    def size_bytes(self) -> int:
        """How much memory they take."""
        return sum(int(chunk.frame.estimated_size()) for chunk in self.chunks)

    def extended(self, content: pl.DataFrame, now_ms: int, *, merging: bool) -> Partition:
        """With these records after the others; small chunks are merged unless they have to expire on their own."""
        end = self.end + content.height
        offsets = pl.int_range(self.end, end, eager=True).alias("offset")
        frame = content.hstack([offsets, _number(self.number).new_from_index(0, content.height)])
        chunks = (*self.chunks, Chunk(self.end, end, frame, now_ms))
        return replace(self, end=end, chunks=_merged(chunks) if merging and len(chunks) % _CHUNKS == 0 else chunks)

    def range(self, start: int, end: int = _LAST, *, limit: int | None = None) -> list[Chunk]:
        """The chunks of a range of offsets, at most so many records of it."""
        first = bisect_right(self.chunks, start, key=lambda chunk: chunk.end)
        found: list[Chunk] = []
        room = limit
        for chunk in self.chunks[first:]:
            if chunk.base >= end or room == 0:
                break
            part = chunk.within(start, end)
            if room is not None:
                if part.frame.height > room:
                    part = replace(part, frame=part.frame.head(room), appended=_head(part.appended, room))
                room -= part.frame.height
            found.append(part)
        return found

    def appends(self) -> Appends:
        """When its records came."""
        if all(isinstance(chunk.appended, int) for chunk in self.chunks):
            times = np.array([chunk.appended for chunk in self.chunks], np.int64)
            return Appends(self.begin, times, np.array([chunk.end for chunk in self.chunks], np.int64))
        rows = stacked([chunk.timed() for chunk in self.chunks])
        return Appends(self.begin, rows[APPENDED].to_numpy(), rows["offset"].to_numpy() + 1)


@cache
def _number(partition: int) -> pl.Series:
    return pl.Series("partition", [partition], pl.Int32)


def _head(appended: int | pl.Series, rows: int) -> int | pl.Series:
    return appended if isinstance(appended, int) else appended.head(rows)


def stacked(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Frames of the same columns as one."""
    if not frames:
        return records.empty()
    if len(frames) > _FEW:
        return pl.concat(frames)
    whole = frames[0].clone()
    for frame in frames[1:]:
        whole.vstack(frame, in_place=True)
    return whole


def joined(chunks: Sequence[Chunk]) -> Chunk:
    """Neighbours as one chunk."""
    if len(chunks) == 1:
        return chunks[0]
    frame = pl.concat([chunk.frame for chunk in chunks], rechunk=True)
    times = {chunk.appended if isinstance(chunk.appended, int) else -1 for chunk in chunks}
    appended = times.pop() if len(times) == 1 else -1
    whole = pl.concat([chunk.times() for chunk in chunks]) if appended < 0 else appended
    return Chunk(chunks[0].base, chunks[-1].end, frame, whole)


def _merged(chunks: tuple[Chunk, ...]) -> tuple[Chunk, ...]:
    """The small ones at the end as one."""
    first = len(chunks)
    while first and chunks[first - 1].frame.height < _SMALL:
        first -= 1
    return (*chunks[:first], joined(chunks[first:])) if first < len(chunks) - 1 else chunks
