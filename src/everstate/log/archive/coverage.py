"""How much of a topic's past can be read from topic and archive together; plain arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from everstate.log.archive.archive import joined

if TYPE_CHECKING:
    from collections.abc import Callable

    from everstate.log.archive.archive import Archive, PartitionArchive, Range
    from everstate.log.descriptions import TopicInfo


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """What can be read.

    Attributes:
        start: The first offset, by partition.
        records: Records that a step reads which goes by the latest record of each key.
        archived: Those of them that only the archive has.
        kept: Further records that compaction has removed and the archive has, for steps that need every record.
        superseded: Records that compaction has removed and the archive does not have.
        gaps: What is gone after `start`, by partition.
    """

    start: dict[int, int]
    records: int
    archived: int
    kept: int
    superseded: int | None
    gaps: dict[int, tuple[Range, ...]]

    @property
    def missing(self) -> int:
        """How many offsets neither topic nor archive has, but for those that compaction has removed."""
        return sum(self.start.values()) + sum(last - first for gaps in self.gaps.values() for first, last in gaps)


def coverage(info: TopicInfo, archive: Archive, count: Callable[[int, int], int]) -> Coverage:
    """What topic and archive have together.

    Args:
        info: The topic.
        archive: Its archive.
        count: Partition and offset to the number of records that the topic has from there on.
    """
    parts = {number: archive.partition(number) for number in info.end}
    start = {number: _first(parts[number], info.start[number]) for number in info.end}
    found = {number: _gaps(parts[number], info.start[number], info.config.compact) for number in info.end}
    gaps = {number: ranges for number, ranges in found.items() if ranges}
    available = sum(info.end.values()) - sum(info.start.values())
    if info.config.compact and any(part.files for part in parts.values()):
        every, superseded = _every(info, parts, count)
        needed = start != info.start
        more = max(0, every - info.most_records)
        return Coverage(
            start=start,
            records=every if needed else info.most_records,
            archived=more if needed else 0,
            kept=0 if needed else more,
            superseded=superseded,
            gaps=gaps,
        )
    archived = sum(_before(parts[number], info.start[number]) for number in info.end)
    return Coverage(
        start=start,
        records=info.most_records + archived,
        archived=archived,
        kept=0,
        superseded=_superseded(info, available),
        gaps=gaps,
    )


def _superseded(info: TopicInfo, available: int) -> int | None:
    """How many records newer ones of the same key have replaced; None where nobody counts."""
    if info.records is not None:
        return available - info.records
    return None if info.config.compact else 0


def _every(info: TopicInfo, parts: dict[int, PartitionArchive], count: Callable[[int, int], int]) -> tuple[int, int]:
    """All records that a compacted topic and its archive have, and how many offsets have none."""
    ends = {number: max(part.end or 0, info.start[number]) for number, part in parts.items()}
    # Where compaction has removed nothing, nothing need be counted.
    whole = info.records == sum(info.end.values()) - sum(info.start.values())
    tails = sum(info.end[number] - end if whole else count(number, end) for number, end in ends.items())
    every = sum(part.records for part in parts.values()) + tails
    superseded = -every
    for number, part in parts.items():
        first, begin = _first(part, info.start[number]), info.start[number]
        superseded += info.end[number] - first - sum(last - start for start, last in part.gaps(first, begin))
    return every, superseded


def _first(part: PartitionArchive, begin: int) -> int:
    return begin if part.begin is None else min(part.begin, begin)


def _gaps(part: PartitionArchive, begin: int, compacted: bool) -> tuple[Range, ...]:  # noqa: FBT001 - a fact, not a mode
    """What is gone of a partition whose archive is needed, since its topic begins later."""
    first = part.begin
    if first is None or first >= begin or part.end is None:
        return ()
    # On a compacted topic the archive alone knows of deletions, so it has to be whole up to its own end.
    until = max(begin, part.end) if compacted else begin
    lost = [(max(start, first), min(end, until)) for start, end in part.lost]
    return joined([*part.gaps(first, until), *((start, end) for start, end in lost if start < end)])


def _before(part: PartitionArchive, offset: int) -> int:
    """Records before an offset; in a file that reaches beyond it, as if they were spread evenly."""
    return sum(
        file.records if file.end <= offset else file.records * (offset - file.start) // (file.end - file.start)
        for file in part.files
        if file.start < offset
    )
