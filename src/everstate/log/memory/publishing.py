"""Publishing in memory: what is staged, and the draft in which it becomes part of its topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everstate.errors import LogError, TopicNotFoundError
from everstate.log import records
from everstate.log.checks import check_keys
from everstate.log.descriptions import Ranges, Staged
from everstate.log.digest import content_digest
from everstate.log.memory import upkeep
from everstate.log.memory.store import Extent, StagedContent, State, Topic

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl


def content_of(topic: Topic, frame: pl.DataFrame, now_ms: int) -> pl.DataFrame:
    """Records as they are stored, if the topic takes them."""
    content = records.content(frame, now_ms=now_ms)
    check_keys(topic.name, topic.config, content)
    return content


def spread(topic: Topic, frame: pl.DataFrame, now_ms: int) -> list[tuple[int, pl.DataFrame]]:
    """Records as they are stored, by the partition to which they go."""
    content = content_of(topic, frame, now_ms)
    if not content.height:
        return []
    count = len(topic.partitions)
    named = "partition" in frame.columns
    if count == 1 and not named:
        return [(0, content)]
    chosen = content.hstack([frame.get_column("partition")]) if named else content
    turn = sum(partition.end for partition in topic.partitions)
    places = records.partitions_for(chosen, count, turn=turn).to_list()
    rows: dict[int, list[int]] = {}
    for row, place in enumerate(places):
        rows.setdefault(place, []).append(row)
    return [(place, content if len(rows) == 1 else content[rows[place]]) for place in sorted(rows)]


def stage(state: State, topic: Topic, parts: Sequence[tuple[int, pl.DataFrame]]) -> list[Staged]:
    """Keep records in a draft without making them visible."""
    staged = []
    for partition, content in parts:
        location = f"staged-{state.next_number()}" if content.height else ""
        if location:
            state.staged[location] = StagedContent(topic.id, content)
        digest = content_digest(content) if content.height else "0" * 32
        staged.append(Staged(topic.name, partition, content.height, digest, location))
    return staged


def contents(state: State, staged: Sequence[Staged]) -> list[tuple[Staged, StagedContent]]:
    """What was staged.

    Raises:
        LogError: If it was already published or given up.
    """
    found = []
    for part in staged:
        if part.rows:
            content = state.staged.get(part.location)
            if content is None:
                raise LogError(
                    f"records for topic {part.topic!r} were already published or discarded ({part.location})",
                    hint="Nothing was published; run the batch again.",
                )
            found.append((part, content))
    return found


def publish(state: State, staged: Sequence[Staged], *, now_ms: int) -> tuple[Ranges, tuple[Extent, ...]]:
    """Give staged records their offsets, in a draft.

    Raises:
        LogError: If they are not there any more.
    """
    offsets: Ranges = {}
    extents: list[Extent] = []
    for part, found in contents(state, staged):
        topic = state.topic(part.topic)
        if topic.id != found.topic_id:
            raise TopicNotFoundError(part.topic)  # it was deleted after the staging; this one only has its name
        base = topic.partition(part.partition).end
        extend(state, topic, [(part.partition, found.content)], now_ms=now_ms)
        del state.staged[part.location]
        ranges = offsets.setdefault(part.topic, {})
        ranges[part.partition] = (ranges.get(part.partition, (base, base))[0], base + part.rows)
        extents.append(Extent(topic.id, part.partition, base, base + part.rows))
    for name in offsets:
        upkeep.expire(state, name, now_ms=now_ms)
    return offsets, tuple(extents)


def extend(state: State, topic: Topic, parts: Sequence[tuple[int, pl.DataFrame]], *, now_ms: int) -> None:
    """Put records after those of a topic, in a draft."""
    merging = topic.config.retention_ms is None
    for number, content in parts:
        topic = topic.with_partition(topic.partition(number).extended(content, now_ms, merging=merging))
    state.topics[topic.name] = topic


def give_up(state: State, staged: Sequence[Staged]) -> None:
    """Forget staged records, in a draft."""
    for part in staged:
        state.staged.pop(part.location, None)
