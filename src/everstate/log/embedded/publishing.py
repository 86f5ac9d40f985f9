"""Publishing: staging records into files, and the one transaction that makes them part of their topics."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from everstate.errors import LogError, TopicNotFoundError
from everstate.log import records
from everstate.log.checks import check_keys
from everstate.log.crash import crash_point
from everstate.log.descriptions import Ranges, Staged
from everstate.log.digest import content_digest
from everstate.log.embedded import staging
from everstate.log.embedded.manifest import catalogue
from everstate.log.embedded.segments import Segment
from everstate.log.embedded.upkeep import retention

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    import polars as pl

    from everstate.log.embedded.manifest.catalogue import Topic
    from everstate.log.embedded.store import Store


def append(store: Store, topic: str, frame: pl.DataFrame) -> None:
    """Append records to a topic, all or none."""
    staged = stage_all(store, topic, frame)
    crash_point("log.append.before_transaction")
    try:
        with store.manifest.writing() as database:
            publish(store, database, staged)
            crash_point("log.append.inside_transaction")
    except BaseException:
        abort(store, staged)
        raise
    crash_point("log.append.after_transaction")


def stage(store: Store, topic: str, partition: int, frame: pl.DataFrame) -> Staged:
    """Store records of one partition in a file of their own."""
    with store.manifest.reading() as database:
        found = catalogue.topic_named(database, topic)
        catalogue.bounds(database, found, partition)
    content = _checked(found, records.content(frame, now_ms=store.clock()))
    return _write(store, found, [(partition, content)])[0]


def stage_all(store: Store, topic: str, frame: pl.DataFrame) -> list[Staged]:
    """Store records of any partitions in one file, so that they cost one sync together."""
    with store.manifest.reading() as database:
        found = catalogue.topic_named(database, topic)
        written = sum(catalogue.offsets(database, found)[1].values())
    content = _checked(found, records.content(frame, now_ms=store.clock()))
    if not len(content):
        return []
    chosen = content
    if "partition" in frame.columns:
        chosen = content.with_columns(frame["partition"])
    partitions = records.partitions_for(chosen, found.config.partitions, turn=written)
    if found.config.partitions == 1:
        return _write(store, found, [(0, content)])
    groups = content.with_columns(partitions.alias("partition")).partition_by(
        "partition", maintain_order=True, include_key=False, as_dict=True
    )
    return _write(store, found, [(int(place[0]), group) for place, group in sorted(groups.items())])


def _checked(topic: Topic, content: pl.DataFrame) -> pl.DataFrame:
    check_keys(topic.name, topic.config, content)
    return content


def _write(store: Store, topic: Topic, groups: Sequence[tuple[int, pl.DataFrame]]) -> list[Staged]:
    """One file with a segment for each group that has rows."""
    if not any(len(content) for _, content in groups):
        return [Staged(topic.name, partition, 0, "0" * 32, "") for partition, _ in groups]
    writer = staging.begin(store, topic)
    try:
        written: list[tuple[int, Segment, str]] = []
        for partition, content in groups:
            writer.add(content)
            written.append((partition, writer.segment(), content_digest(content)))
        size = writer.finish()
    except BaseException:
        writer.close()
        staging.discard(store, [writer.file])
        raise
    return [
        Staged(topic.name, partition, segment.records, digest, replace(segment, file_bytes=size).to_json())
        for partition, segment, digest in written
    ]


def publish(
    store: Store, database: sqlite3.Connection, staged: Sequence[Staged], *, commit_id: int | None = None
) -> Ranges:
    """Give staged records their offsets, inside the caller's transaction.

    Raises:
        LogError: If the staged files are not what they were, or were published before.
    """
    offsets: Ranges = {}
    now_ms = store.clock()
    parts = [(part, Segment.from_json(part.location)) for part in staged if part.rows]
    for file in {segment.file: segment for _, segment in parts}.values():
        _check_file(store, database, file)
    topics = {name: catalogue.topic_named(database, name) for name in {part.topic for part, _ in parts}}
    for part, segment in parts:
        topic = topics[part.topic]
        if not segment.file.startswith(topic.folder + "/"):
            raise TopicNotFoundError(part.topic)  # it was deleted after the staging; this one only has its name
        base = catalogue.bounds(database, topic, part.partition)[1]
        end = base + segment.end
        placed = replace(segment, base=base, end=end, appended_ms=now_ms, max_ts=min(segment.max_ts, now_ms))
        catalogue.insert_segment(database, topic, part.partition, placed, commit_id=commit_id)
        database.execute(
            "UPDATE partitions SET end_offset = ? WHERE topic_id = ? AND partition = ?", (end, topic.id, part.partition)
        )
        ranges = offsets.setdefault(part.topic, {})
        ranges[part.partition] = (ranges.get(part.partition, (base, base))[0], end)
    staging.arrived(database, (segment.file for _, segment in parts))
    for topic in topics.values():
        retention.expire(database, topic, now_ms=now_ms)
    return offsets


def _check_file(store: Store, database: sqlite3.Connection, segment: Segment) -> None:
    path = store.root / segment.file
    if catalogue.is_named(database, segment.file):
        raise LogError(f"the staged file {path} was already published", hint="Stage the records again.")
    if not path.is_file() or path.stat().st_size != segment.file_bytes:
        raise LogError(
            f"the staged file {path} is gone, or its length is not the one it was written with",
            hint="Nothing was published; run the batch again.",
        )


def abort(store: Store, staged: Sequence[Staged]) -> None:
    """Delete staged files that no commit has named."""
    staging.discard(store, (Segment.from_json(part.location).file for part in staged if part.rows))
