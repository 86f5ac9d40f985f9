"""Topics, partitions and segments as rows of the manifest. Every function runs inside a transaction of the caller."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from everstate.errors import TopicExistsError, TopicNotFoundError
from everstate.log import checks
from everstate.log.checks import check_config, unknown_partition
from everstate.log.descriptions import TopicConfig, TopicInfo
from everstate.log.embedded.segments import Block, Segment
from everstate.log.embedded.upkeep.merging import tier_of
from everstate.schema.topic_names import check_topic_name, is_internal

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

TOPICS_FOLDER: Final = "topics"
#: Enough of the name to be recognised; with the number in front, folders stay apart where case does not count.
_NAME_IN_FOLDER: Final = 100
LAST: Final = (1 << 63) - 1


@dataclass(frozen=True)
class Topic:
    """A topic's row.

    Attributes:
        id: Of the row.
        identity: What others remember it by; see `TopicInfo.id`.
    """

    id: int
    name: str
    identity: str
    folder: str
    config: TopicConfig


@dataclass(frozen=True)
class StoredSegment:
    """A segment with the number of its row."""

    id: int
    segment: Segment


def create(database: sqlite3.Connection, name: str, config: TopicConfig, *, exist_ok: bool, now_ms: int) -> Topic:
    """Add a topic, or return the one that is there."""
    check_topic_name(name)
    check_config(name, config)
    if exists(database, name):
        if exist_ok:
            return topic_named(database, name)
        raise TopicExistsError(name)
    # What batches say of an earlier topic of this name is told from what they say of this one by time.
    read_ms = database.execute(
        "SELECT max(committed_ms) FROM commits WHERE instr(end_vector, ?)", (json.dumps(name),)
    ).fetchone()[0]
    cursor = database.execute(
        "INSERT INTO topics (name, identity, folder, partitions, compact, retention_ms, delete_retention_ms, "
        "created_ms) VALUES (?, ?, '', ?, ?, ?, ?, ?)",
        (
            name,
            uuid4().hex,
            config.partitions,
            config.compact,
            config.retention_ms,
            config.delete_retention_ms,
            now_ms if read_ms is None else max(now_ms, read_ms + 1),
        ),
    )
    topic_id = cursor.lastrowid
    folder = f"{TOPICS_FOLDER}/{topic_id:06d}-{name[:_NAME_IN_FOLDER]}"
    database.execute("UPDATE topics SET folder = ? WHERE id = ?", (folder, topic_id))
    database.executemany(
        "INSERT INTO partitions (topic_id, partition) VALUES (?, ?)",
        [(topic_id, number) for number in range(config.partitions)],
    )
    return topic_named(database, name)


def creations(database: sqlite3.Connection, names: Iterable[str]) -> list[int]:
    """When those of these topics that are there were created."""
    found = (database.execute("SELECT created_ms FROM topics WHERE name = ?", (name,)).fetchone() for name in names)
    return [row["created_ms"] for row in found if row is not None]


def topic_named(database: sqlite3.Connection, name: str) -> Topic:
    """The topic of that name.

    Raises:
        TopicNotFoundError: If there is none.
    """
    check_topic_name(name)
    row = database.execute("SELECT * FROM topics WHERE name = ?", (name,)).fetchone()
    if row is None:
        raise TopicNotFoundError(name)
    config = TopicConfig(
        partitions=row["partitions"],
        compact=bool(row["compact"]),
        retention_ms=row["retention_ms"],
        delete_retention_ms=row["delete_retention_ms"],
    )
    return Topic(row["id"], name, row["identity"], row["folder"], config)


def exists(database: sqlite3.Connection, name: str) -> bool:
    """Whether there is a topic of that name."""
    return database.execute("SELECT 1 FROM topics WHERE name = ?", (name,)).fetchone() is not None


def names(database: sqlite3.Connection, *, internal: bool = False) -> list[str]:
    """The names of all topics, sorted; those that Everstate keeps for itself are left out, or are all."""
    found = (str(row["name"]) for row in database.execute("SELECT name FROM topics"))
    return sorted(name for name in found if is_internal(name) is internal)


def delete(database: sqlite3.Connection, name: str) -> list[str]:
    """Remove a topic; gives its files, which may go at once, since nothing can read them any more."""
    topic = topic_named(database, name)
    files = [
        row["file"] for row in database.execute("SELECT DISTINCT file FROM segments WHERE topic_id = ?", (topic.id,))
    ]
    database.execute("DELETE FROM topics WHERE id = ?", (topic.id,))
    retire_files(database, files, now_ms=0)
    return files


def describe(database: sqlite3.Connection, name: str) -> TopicInfo:
    """Configuration, offsets and size of a topic."""
    topic = topic_named(database, name)
    start, end = offsets(database, topic)
    size = database.execute(
        "SELECT coalesce(sum(records), 0) AS records, coalesce(sum(bytes), 0) AS bytes "
        "FROM segments WHERE topic_id = ?",
        (topic.id,),
    ).fetchone()
    return TopicInfo(name, topic.identity, topic.config, start, end, size["records"], size["bytes"])


def offsets(database: sqlite3.Connection, topic: Topic) -> tuple[dict[int, int], dict[int, int]]:
    """The first offset of every partition, and the next one to be written."""
    rows = database.execute("SELECT * FROM partitions WHERE topic_id = ? ORDER BY partition", (topic.id,)).fetchall()
    return (
        {row["partition"]: row["begin_offset"] for row in rows},
        {row["partition"]: row["end_offset"] for row in rows},
    )


def bounds(database: sqlite3.Connection, topic: Topic, partition: int) -> tuple[int, int]:
    """The first offset of a partition and the next one to be written."""
    row = database.execute(
        "SELECT * FROM partitions WHERE topic_id = ? AND partition = ?", (topic.id, partition)
    ).fetchone()
    if row is None:
        raise unknown_partition(topic.name, topic.config, partition)
    return row["begin_offset"], row["end_offset"]


def check_range(database: sqlite3.Connection, topic: Topic, partition: int, start: int, end: int | None = None) -> None:
    """Refuse offsets that the partition does not have.

    Raises:
        OffsetOutOfRangeError: If records from `start` on have been deleted, or do not exist yet.
    """
    checks.check_range(topic.name, partition, bounds(database, topic, partition), start, end)


def dropped_tombstones(database: sqlite3.Connection, topic: Topic, partition: int) -> tuple[int, int]:
    """When compaction last dropped tombstones, and one after the last of them; (0, 0) if it never did."""
    row = database.execute(
        "SELECT * FROM dropped_tombstones WHERE topic_id = ? AND partition = ?", (topic.id, partition)
    ).fetchone()
    return (0, 0) if row is None else (row["dropped_ms"], row["end_offset"])


def segments(
    database: sqlite3.Connection, topic: Topic, partition: int, *, start: int = 0, end: int | None = None
) -> list[StoredSegment]:
    """The segments of a partition that hold offsets of a range, in order."""
    rows = database.execute(
        # The index knows where segments begin: without `coalesce`, each read would go through all that came before.
        "SELECT * FROM segments WHERE topic_id = ?1 AND partition = ?2 AND end_offset > ?3 AND base_offset < ?4 "
        "AND base_offset >= coalesce((SELECT max(base_offset) FROM segments "
        "WHERE topic_id = ?1 AND partition = ?2 AND base_offset <= ?3), 0) ORDER BY base_offset",
        (topic.id, partition, start, LAST if end is None else end),
    )
    return [StoredSegment(row["id"], segment_of(row)) for row in rows]


def last_segments(
    database: sqlite3.Connection, topic: Topic, partition: int, *, start: int, end: int, count: int
) -> list[StoredSegment]:
    """So many segments at the end of those that begin in a range, in order."""
    rows = database.execute(
        "SELECT * FROM segments WHERE topic_id = ? AND partition = ? AND base_offset >= ? AND base_offset < ? "
        "ORDER BY base_offset DESC LIMIT ?",
        (topic.id, partition, start, end, count),
    ).fetchall()
    return [StoredSegment(row["id"], segment_of(row)) for row in reversed(rows)]


def segments_of_commit(database: sqlite3.Connection, commit_id: int) -> list[tuple[str, int, Segment]]:
    """What a commit published: topic, partition and segment, in order."""
    rows = database.execute(
        "SELECT * FROM segments WHERE commit_id = ? ORDER BY topic_id, partition, base_offset", (commit_id,)
    ).fetchall()
    names = {row["id"]: row["name"] for row in database.execute("SELECT * FROM topics")} if rows else {}
    return [(names[row["topic_id"]], row["partition"], segment_of(row)) for row in rows]


def segment_of(row: sqlite3.Row) -> Segment:
    """The segment that a row describes."""
    return Segment(
        row["base_offset"],
        row["end_offset"],
        row["file"],
        row["file_bytes"],
        bool(row["sparse"]),
        row["max_ts"],
        row["appended_ms"],
        tuple(Block(*block) for block in json.loads(row["blocks"])),
    )


def insert_segment(
    database: sqlite3.Connection, topic: Topic, partition: int, segment: Segment, *, commit_id: int | None = None
) -> None:
    """Make a segment's records part of its partition."""
    database.execute(
        "INSERT INTO segments (topic_id, partition, base_offset, end_offset, file, file_bytes, sparse, records, bytes, "
        "max_ts, appended_ms, tier, commit_id, blocks) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            topic.id,
            partition,
            segment.base,
            segment.end,
            segment.file,
            segment.file_bytes,
            segment.sparse,
            segment.records,
            segment.size,
            segment.max_ts,
            segment.appended_ms,
            tier_of(segment.records, segment.size),
            commit_id,
            json.dumps(segment.blocks, separators=(",", ":")),
        ),
    )


def remove_segments(database: sqlite3.Connection, ids: Sequence[int], *, now_ms: int) -> None:
    """Take segments out; files that no segment names any more are noted for deletion."""
    files: set[str] = set()
    for number in ids:
        row = database.execute("DELETE FROM segments WHERE id = ? RETURNING file", (number,)).fetchone()
        if row is not None:
            files.add(row["file"])
    retire_files(database, files, now_ms=now_ms)


def retire_files(database: sqlite3.Connection, files: Iterable[str], *, now_ms: int) -> None:
    """Note files for deletion, except those that a segment still names."""
    for file in files:
        if not is_named(database, file):
            database.execute(
                "INSERT OR IGNORE INTO retired_files (file, retired_ms) VALUES (?, ?)",
                (file, now_ms),
            )


def has_segment(database: sqlite3.Connection, number: int) -> bool:
    """Whether the segment with that number still counts."""
    return database.execute("SELECT 1 FROM segments WHERE id = ?", (number,)).fetchone() is not None


def is_named(database: sqlite3.Connection, file: str) -> bool:
    """Whether any segment is in this file."""
    return database.execute("SELECT 1 FROM segments WHERE file = ? LIMIT 1", (file,)).fetchone() is not None
