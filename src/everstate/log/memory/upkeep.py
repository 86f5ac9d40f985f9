"""Compaction and retention in memory; see `everstate.log.protocol` for what goes and what stays."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from everstate.log.memory.partition import Chunk, Partition, joined
from everstate.log.timing import GRACE_MS
from everstate.log.upkeep import worth_compacting

if TYPE_CHECKING:
    import polars as pl

    from everstate.log.descriptions import Vector
    from everstate.log.memory.store import State, Topic


def expire(state: State, name: str, *, now_ms: int) -> None:
    """Drop what is older than a topic's retention, in a draft: whole chunks at the beginning of its partitions."""
    topic = state.topic(name)
    if topic.config.retention_ms is None:
        return
    clock_ms = state.sight.age_clock(now_ms)
    for partition in topic.partitions:
        count = _expired(partition, topic.config.retention_ms, clock_ms)
        if count:
            begin = partition.chunks[count].base if count < len(partition.chunks) else partition.end
            topic = topic.with_partition(replace(partition, begin=begin, chunks=partition.chunks[count:]))
    state.topics[name] = topic


def _expired(partition: Partition, retention_ms: int, now_ms: int) -> int:
    """How many chunks go."""
    for number, chunk in enumerate(partition.chunks):
        arrived_ms = chunk.arrived()
        if arrived_ms > now_ms:
            # A wrong clock has dated it ahead: it had arrived no later than any that came after it.
            arrived_ms = min(later.arrived() for later in partition.chunks[number:])
        youngest = int(chunk.frame.get_column("ts").max() or 0) if chunk.frame.height else arrived_ms  # type: ignore[arg-type]
        # No record counts as younger than its arrival, and what has just come stays for a while.
        if now_ms - min(youngest, arrived_ms) <= retention_ms or arrived_ms > now_ms - GRACE_MS:
            return number
    return len(partition.chunks)


def _stretches(state: State, topic: Topic, number: int) -> list[tuple[int, int]]:
    """The offsets between those of outputs' last batches, which stay for their correction; the first begins it all."""
    extents = (extent for published in state.commits.values() for extent in published.extents)
    kept = sorted(
        (extent.base, extent.end) for extent in extents if (extent.topic_id, extent.partition) == (topic.id, number)
    )
    partition = topic.partition(number)
    starts = [partition.begin, *(end for _, end in kept)]
    ends = [*(base for base, _ in kept), partition.end]
    return [(start, max(start, end)) for start, end in zip(starts, ends, strict=True)]


def is_due(state: State, topic: Topic, number: int) -> bool:
    """Whether enough records came after the last compaction."""
    if not topic.config.compact:
        return False
    partition = topic.partition(number)
    total = dirty = 0
    for start, end in _stretches(state, topic, number):
        total += sum(chunk.frame.height for chunk in partition.range(start, end))
        dirty += sum(chunk.frame.height for chunk in partition.range(max(start, partition.clean_to), end))
    return worth_compacting(dirty, total)


def compacted(state: State, topic: Topic, number: int, *, now_ms: int) -> Partition | None:
    """A partition with the last record of each key, and tombstones until they are old enough; None if it is that."""
    limit_ms = state.sight.age_clock(now_ms) - topic.config.delete_retention_ms
    found, done = topic.partition(number), False
    for place, (start, end) in enumerate(_stretches(state, topic, number)):
        # What a later stretch deletes may be in one before it, so its tombstones stay.
        clean = _compacted(found, start, end, limit_ms=limit_ms if place == 0 else None, now_ms=now_ms)
        found, done = clean or found, done or clean is not None
    return found if done else None


def _compacted(partition: Partition, start: int, end: int, *, limit_ms: int | None, now_ms: int) -> Partition | None:
    inside = partition.range(start, end)
    if not inside:
        return None
    whole = joined(inside)
    kept, dropped = _survivors(whole, limit_ms)
    if len(kept) == whole.frame.height:
        return None
    offsets = whole.frame.get_column("offset")
    dropped_to = max((offsets[row] + 1 for row in dropped), default=0)
    chunk = Chunk(whole.base, whole.end, whole.frame[kept], whole.times().gather(kept))
    return replace(
        partition,
        chunks=(*partition.range(0, start), *((chunk,) if kept else ()), *partition.range(end)),
        clean_to=whole.end,
        dropped_ms=max(partition.dropped_ms, now_ms) if dropped else partition.dropped_ms,
        dropped_to=max(partition.dropped_to, dropped_to),
    )


def _survivors(whole: Chunk, limit_ms: int | None) -> tuple[list[int], list[int]]:
    """The rows that stay, and those that are tombstones whose time is over."""
    rows = last_rows(whole.frame)
    values = whole.frame.get_column("value")
    if limit_ms is None or not values.null_count():
        return rows, []
    outdated = (values.is_null() & (whole.times() <= limit_ms)).to_list()
    return [row for row in rows if not outdated[row]], [row for row in rows if outdated[row]]


def last_rows(frame: pl.DataFrame) -> list[int]:
    """The rows with the last record of each key, in order; records without a key are none."""
    last = {key: row for row, key in enumerate(frame.get_column("key").to_list()) if key is not None}
    return sorted(last.values())


def tombstones_dropped(state: State, positions: Vector, *, since_ms: int) -> Vector:
    """Where compaction has dropped tombstones that a consumer at these positions has not seen."""
    missed: Vector = {}
    for name, offsets in positions.items():
        topic = state.topic(name)
        for number, position in offsets.items():
            partition = topic.partition(number)
            if position <= partition.begin:
                continue  # it has read nothing yet, so there is nothing that it should have deleted
            if partition.dropped_ms > since_ms and partition.dropped_to > position:
                missed.setdefault(name, {})[number] = partition.dropped_to
    return missed
