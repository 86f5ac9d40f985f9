"""Retention by time: whole segments at the beginning of a partition go when all their records are too old."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from everstate.log.embedded import catalogue

if TYPE_CHECKING:
    import sqlite3

    from everstate.log.embedded.catalogue import Topic

#: What has just been appended stays for so long even if its timestamps are old: consumers that follow must see it.
#: Kafka behaves alike, since it looks for old segments only so often.
GRACE_MS: Final = 300_000


def expire(database: sqlite3.Connection, topic: Topic, *, now_ms: int) -> None:
    """Remove what is older than the topic's retention and move the beginning of its partitions on."""
    retention_ms = topic.config.retention_ms
    if retention_ms is None:
        return
    for partition in range(topic.config.partitions):
        rows = database.execute(
            "SELECT id, base_offset, max_ts, appended_ms FROM segments WHERE topic_id = ? AND partition = ? "
            "ORDER BY base_offset",
            (topic.id, partition),
        )
        expired: list[int] = []
        begin: int | None = None
        for row in rows:
            if row["max_ts"] >= now_ms - retention_ms or row["appended_ms"] > now_ms - GRACE_MS:
                begin = row["base_offset"]
                break
            expired.append(row["id"])
        if not expired:
            continue
        if begin is None:
            begin = catalogue.bounds(database, topic, partition)[1]
        catalogue.remove_segments(database, expired, now_ms=now_ms)
        database.execute(
            "UPDATE partitions SET begin_offset = ? WHERE topic_id = ? AND partition = ?", (begin, topic.id, partition)
        )
