"""Merging: many small segments become few large ones, in tiers.

A segment counts by its records, or by its bytes if it has large ones. Sixteen neighbours of a tier are merged into one
of the next, so a record is rewritten at most once per tier however it arrived, and a partition has at most some dozen
segments that are not full. Merging whatever is small again and again would rewrite each record hundreds of times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from everstate.log.embedded.segments import BLOCK_BYTES, BLOCK_RECORDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from everstate.log.embedded.manifest.catalogue import StoredSegment

FANOUT: Final = 16
_LIMITS: Final = (16, 256, 4096, BLOCK_RECORDS)
#: The tier of a segment that is large enough to stay as it is.
FULL: Final = len(_LIMITS)
_RECORD_BYTES: Final = BLOCK_BYTES // BLOCK_RECORDS
#: Retention removes whole segments, so none may span more than this share of it.
_RETENTION_SHARE: Final = 8


def size_of(records: int, size_bytes: int) -> int:
    """What a segment counts for."""
    return max(records, size_bytes // _RECORD_BYTES)


def tier_of(records: int, size_bytes: int) -> int:
    """How full a segment is.

    Example:
        >>> [tier_of(records, 0) for records in (1, 16, 300, 65_536)], tier_of(1, 8 << 20)
        ([0, 1, 2, 4], 4)
    """
    size = size_of(records, size_bytes)
    return next((tier for tier, limit in enumerate(_LIMITS) if size < limit), FULL)


def runs(
    stored: Sequence[StoredSegment], *, at_least: int = FANOUT, retention_ms: int | None = None
) -> list[list[StoredSegment]]:
    """Which neighbours to merge: those of the lowest tier that has enough of them, cut where one becomes full.

    Args:
        stored: Segments of a partition, in order, without a gap.
        at_least: How many of a tier are enough.
        retention_ms: How long the topic keeps records.
    """
    span_ms = None if retention_ms is None else max(1, retention_ms // _RETENTION_SHARE)
    for tier in range(FULL):
        found = [
            part
            for group in _neighbours(stored, tier)
            for part in _cut(group, span_ms)
            if len(part) > 1 and (_total(part) >= BLOCK_RECORDS or _enough(part, tier, at_least))
        ]
        if found:
            return found
    return []


def _enough(part: Sequence[StoredSegment], tier: int, at_least: int) -> bool:
    """Whether a part has enough segments, and not only ones that are worth merging among themselves."""
    return len(part) >= at_least and sum(_tier(item) == tier for item in part) >= at_least // 2


def _neighbours(stored: Sequence[StoredSegment], tier: int) -> Iterator[list[StoredSegment]]:
    """Stretches of segments that are no fuller than this."""
    group: list[StoredSegment] = []
    for item in stored:
        if _tier(item) <= tier:
            group.append(item)
        else:
            yield group
            group = []
    yield group


def _cut(group: Sequence[StoredSegment], span_ms: int | None) -> Iterator[list[StoredSegment]]:
    """Parts of a stretch that make one full segment, and that do not span too much time."""
    part: list[StoredSegment] = []
    for item in group:
        apart = part and span_ms is not None and abs(item.segment.appended_ms - part[0].segment.appended_ms) > span_ms
        if apart or _total(part) >= BLOCK_RECORDS:
            yield part
            part = []
        part.append(item)
    yield part


def _total(part: Sequence[StoredSegment]) -> int:
    return sum(size_of(item.segment.records, item.segment.size) for item in part)


def _tier(item: StoredSegment) -> int:
    return tier_of(item.segment.records, item.segment.size)
