"""A manifest of the format before this one becomes one of this format, in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import uuid4

from everstate.errors import ManifestDamagedError
from everstate.log.embedded import commits, order_log
from everstate.log.embedded.manifest import schema
from everstate.log.embedded.upkeep.merging import tier_of

if TYPE_CHECKING:
    import sqlite3

FROM: Final = 1
_NUMBERED: Final = ("topics", "segments", "commits")
#: Those that refer to others first, since dropping a table deletes what refers to it.
_OLD_TABLES: Final = (
    "dropped_tombstones",
    "segments",
    "partitions",
    "topics",
    "retired_files",
    "commits",
    "leases",
    "documents",
)


def upgrade(database: sqlite3.Connection, *, now_ms: int) -> None:
    """Take over all that the old tables hold.

    Raises:
        ManifestDamagedError: If they are damaged.
    """
    report = database.execute("PRAGMA integrity_check").fetchone()[0]
    if report != "ok":
        raise ManifestDamagedError(f"the log's manifest is damaged: {report}", hint=schema.RESTORE)
    for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL").fetchall():
        database.execute(f"DROP INDEX {row['name']}")
    for table in _OLD_TABLES:
        database.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    numbers = dict(database.execute("SELECT name, seq FROM sqlite_sequence").fetchall())
    schema.create(database)
    database.execute(
        "INSERT INTO log (id, identity, writes, seen_ms, trusted_ms, held_until_ms) VALUES (1, ?, 0, ?, ?, 0)",
        (uuid4().hex, now_ms, now_ms),
    )
    _take_topics(database)
    _take_segments(database)
    _take_commits(database)
    for table in ("retired_files", "leases", "documents"):
        columns = ", ".join(row["name"] for row in database.execute(f"PRAGMA table_info(old_{table})").fetchall())
        database.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM old_{table}")  # noqa: S608 - our own
    for table in _OLD_TABLES:
        database.execute(f"DROP TABLE old_{table}")
    for table in _NUMBERED:
        database.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
        database.execute(
            "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, numbers.get(f"old_{table}", 0))
        )


def _take_topics(database: sqlite3.Connection) -> None:
    database.execute(
        "INSERT INTO topics (id, name, identity, folder, partitions, compact, retention_ms, delete_retention_ms, "
        "created_ms) SELECT id, name, lower(hex(randomblob(16))), folder, (SELECT count(*) FROM old_partitions WHERE "
        "topic_id = old_topics.id), compact, retention_ms, delete_retention_ms, created_ms FROM old_topics"
    )
    database.execute(
        "INSERT INTO partitions (topic_id, partition, begin_offset, end_offset, clean_to) "
        "SELECT topic_id, partition, begin_offset, end_offset, clean_to FROM old_partitions"
    )
    database.execute(
        "INSERT INTO dropped_tombstones (topic_id, partition, dropped_ms, end_offset) "
        "SELECT topic_id, partition, max(dropped_ms), max(end_offset) FROM old_dropped_tombstones GROUP BY 1, 2"
    )


def _take_segments(database: sqlite3.Connection) -> None:
    database.create_function("tier_of", 2, tier_of, deterministic=True)
    columns = (
        "id, topic_id, partition, base_offset, end_offset, file, file_bytes, sparse, records, bytes, appended_ms, "
        "commit_id, blocks"
    )
    database.execute(
        f"INSERT INTO segments ({columns}, max_ts, tier) "  # noqa: S608 - our own
        f"SELECT {columns}, min(max_ts, appended_ms), tier_of(records, bytes) FROM old_segments"
    )


def _take_commits(database: sqlite3.Connection) -> None:
    """Keep the order in which the old commits were made; which of the outputs needed it was not known then."""
    for row in database.execute("SELECT *, 1 AS ordered FROM old_commits ORDER BY id").fetchall():
        batch = commits.commit_of(row)
        order_log.add(database, batch, now_ms=row["committed_ms"])
        commits.keep(database, batch, now_ms=row["committed_ms"], number=row["id"])
