"""Cutovers: the difference between two generations, the documents that say so and the leases, in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everstate.log.crash import crash_point
from everstate.log.descriptions import CommitResult, Cutover, Staged, Vector
from everstate.log.embedded import commits, documents, leases, publishing
from everstate.log.embedded.manifest import catalogue
from everstate.log.embedded.upkeep import garbage

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from everstate.log.embedded.store import Store


def cutover(store: Store, request: Cutover, staged: Sequence[Staged]) -> CommitResult | None:
    """Publish the difference, once; None if a topic has grown since it was made."""
    crash_point("log.cutover.before_transaction")
    commit = request.commit
    result: CommitResult | None = None
    with store.manifest.writing() as database:
        for lease in request.leases:
            leases.check(database, lease.name, lease.token)
        if _as_expected(database, request.expected):
            for name, kept in request.copies.items():
                copy(database, kept.original, name, now_ms=store.clock())
            number = commits.follow(database, commit, now_ms=store.clock())
            result = CommitResult("committed", publishing.publish(store, database, staged, commit_id=number))
            for name in request.drops:
                if catalogue.exists(database, name):
                    catalogue.delete(database, name)
            documents.write(database, commit.service, request.documents)
            crash_point("log.cutover.inside_transaction")
    crash_point("log.cutover.after_transaction")
    if result is None:
        publishing.abort(store, staged)
    else:
        garbage.collect(store)
    return result


def _as_expected(database: sqlite3.Connection, expected: Vector) -> bool:
    return all(
        catalogue.offsets(database, catalogue.topic_named(database, topic))[1] == ends
        for topic, ends in expected.items()
    )


def copy(database: sqlite3.Connection, original: str, name: str, *, now_ms: int) -> None:
    """A topic with the records of another, at the same offsets; both name the same files, so nothing is written."""
    source = catalogue.topic_named(database, original)
    if catalogue.exists(database, name):
        catalogue.delete(database, name)
    target = catalogue.create(database, name, source.config, exist_ok=False, now_ms=now_ms)
    database.execute(
        "UPDATE partitions SET (begin_offset, end_offset, clean_to) = (SELECT begin_offset, end_offset, clean_to "
        "FROM partitions AS other WHERE other.topic_id = ?2 AND other.partition = partitions.partition) "
        "WHERE topic_id = ?1",
        (target.id, source.id),
    )
    for partition in range(source.config.partitions):
        for stored in catalogue.segments(database, source, partition):
            catalogue.insert_segment(database, target, partition, stored.segment)
