"""Retention by time: whole segments at the beginning of a partition go when all their records are too old.

No record counts as younger than its arrival: one that is dated seventy years ahead must not keep all after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from everstate.log.embedded.manifest import catalogue
from everstate.log.embedded.upkeep import timing
from everstate.log.timing import GRACE_MS

if TYPE_CHECKING:
    import sqlite3

    from everstate.log.embedded.manifest.catalogue import Topic


def expire(database: sqlite3.Connection, topic: Topic, *, now_ms: int) -> None:
    """Remove what is older than the topic's retention and move the beginning of its partitions on."""
    if topic.config.retention_ms is None:
        return
    clock_ms = timing.age_clock(database, now_ms)
    for partition in range(topic.config.partitions):
        expired, begin = _expired(database, topic, partition, clock_ms)
        if expired:
            catalogue.remove_segments(database, expired, now_ms=now_ms)
            database.execute(
                "UPDATE partitions SET begin_offset = ? WHERE topic_id = ? AND partition = ?",
                (begin, topic.id, partition),
            )


def _expired(database: sqlite3.Connection, topic: Topic, partition: int, now_ms: int) -> tuple[list[int], int]:
    """The rows that go, and the offset with which the rest begins."""
    expired: list[int] = []
    rows = database.execute(
        "SELECT * FROM segments WHERE topic_id = ? AND partition = ? ORDER BY base_offset", (topic.id, partition)
    )
    for row in rows:
        appended_ms = row["appended_ms"]
        if appended_ms > now_ms:
            appended_ms = _arrived_by(database, row)
        age_ms = now_ms - min(row["max_ts"], appended_ms)
        if age_ms <= (topic.config.retention_ms or 0) or appended_ms > now_ms - GRACE_MS:
            return expired, row["base_offset"]
        expired.append(row["id"])
    return expired, catalogue.bounds(database, topic, partition)[1]


def _arrived_by(database: sqlite3.Connection, row: sqlite3.Row) -> int:
    """When a segment had arrived that a wrong clock has dated ahead: no later than any that came after it."""
    return int(
        database.execute(
            "SELECT min(appended_ms) FROM segments WHERE topic_id = ? AND partition = ? AND base_offset >= ?",
            (row["topic_id"], row["partition"], row["base_offset"]),
        ).fetchone()[0]
    )
