"""Atomic commits of micro-batches: what is new, what was there before, and what does not fit.

A batch is known by all that identifies it, not by its number alone: a lost checkpoint, one restored from a copy, or a
second query would count the same numbers again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from everstate.log import vectors
from everstate.log.crash import crash_point
from everstate.log.descriptions import Commit, CommitResult, Ranges, Staged
from everstate.log.embedded import corrections, leases, order_log, overtaken, publishing
from everstate.log.embedded.manifest import catalogue
from everstate.log.succession import conflict, judge

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from everstate.log.embedded.store import Store


#: Beside where a batch ends, its row has the stream times of partitions, under the topic's name after this.
_TIMES: Final = "$times:"


def commit(store: Store, batch: Commit, staged: Sequence[Staged]) -> CommitResult:
    """Publish a batch unless the log has it; publish the difference if the log has it with different content."""
    crash_point("log.commit.before_transaction")
    overtakable = batch.may_be_overtaken(staged)
    result = None if overtakable else _published(store, batch, staged)
    while result is None:  # or records have come for keys of which the batch says something
        with overtaken.standing(store, batch, staged) as known:
            result = _published(store, batch, known.staged, known)
    crash_point("log.commit.after_transaction")
    if result.status != "committed" or overtakable:
        publishing.abort(store, staged)  # of a batch that was published, nothing that belongs to it
    return result


def _published(
    store: Store, batch: Commit, staged: Sequence[Staged], known: overtaken.Standing | None = None
) -> CommitResult | None:
    """What became of a batch; None, and nothing was done, if less of it counts by now than is known."""
    with store.manifest.writing() as database:
        leases.check(database, batch.lease_name, batch.token)
        last_id, last = _before(database, batch)
        verdict = judge(last, batch)
        if verdict == "new":
            if known is not None and not overtaken.still(store, database, batch, known):
                return None
            commit_id = follow(database, batch, now_ms=store.clock())
            offsets = publishing.publish(store, database, staged, commit_id=commit_id)
            crash_point("log.commit.inside_transaction")
            return CommitResult("committed", offsets, 0 if known is None else known.left_out)
        if last_id is not None and verdict == "same":
            return CommitResult("skipped", _ranges(database, last_id))
    assert last_id is not None
    return _correct(store, batch, staged, last_id)


def follow(database: sqlite3.Connection, batch: Commit, *, now_ms: int) -> int:
    """Record a commit after the one before it; returns its number."""
    last_id, _ = _before(database, batch)
    if last_id is not None:
        # Only the last batch can come again, so only its segments need to be known as its own.
        database.execute("UPDATE segments SET commit_id = NULL WHERE commit_id = ?", (last_id,))
    order_log.add(database, batch, now_ms=now_ms)
    return keep(database, batch, now_ms=now_ms)


def _correct(store: Store, batch: Commit, staged: Sequence[Staged], commit_id: int) -> CommitResult:
    """Publish what the batch has now and the log does not; the files are compared outside the transaction."""
    difference = corrections.difference(store, batch, staged, commit_id)
    try:
        with store.manifest.writing() as database:
            leases.check(database, batch.lease_name, batch.token)
            current_id, current = _before(database, batch)
            if current_id != commit_id or judge(current, batch) != "differs":
                raise conflict(batch, "another process committed for it at the same moment")  # noqa: TRY301 - undone below
            database.execute(
                "UPDATE commits SET digest = ?, token = ?, committed_ms = ? WHERE id = ?",
                (batch.digest, batch.token, store.clock(), commit_id),
            )
            offsets = publishing.publish(store, database, difference, commit_id=commit_id)
            crash_point("log.commit.inside_transaction")
    except BaseException:
        publishing.abort(store, difference)
        raise
    return CommitResult("corrected", offsets)


def last_commit(
    database: sqlite3.Connection, service: str, output: str, generation: str | None = None
) -> Commit | None:
    """The last batch that an output has published, or the last one of a generation."""
    return _last(database, service, output, generation)[1]


def _before(database: sqlite3.Connection, batch: Commit) -> tuple[int | None, Commit | None]:
    """The commit that a batch has to follow: while a generation is built, its own last one."""
    return _last(database, batch.service, batch.output, batch.generation if batch.kind == "closed" else None)


def _last(
    database: sqlite3.Connection, service: str, output: str, generation: str | None
) -> tuple[int | None, Commit | None]:
    if generation is None:
        row = database.execute(
            "SELECT * FROM commits WHERE service = ? AND output = ? AND kind <> 'closed' ORDER BY id DESC LIMIT 1",
            (service, output),
        ).fetchone()
    else:
        row = database.execute(
            "SELECT * FROM commits WHERE service = ? AND output = ? AND generation = ? ORDER BY id DESC LIMIT 1",
            (service, output, generation),
        ).fetchone()
    return (None, None) if row is None else (row["id"], commit_of(row))


def commit_of(row: sqlite3.Row) -> Commit:
    """The commit that a row describes."""
    end = vectors.from_json(row["end_vector"])
    return Commit(
        service=row["service"],
        output=row["output"],
        generation=row["generation"],
        query_id=row["query_id"],
        batch_id=row["batch_id"],
        start=vectors.from_json(row["start_vector"]),
        end={name: ends for name, ends in end.items() if not name.startswith(_TIMES)},
        digest=row["digest"],
        token=row["token"],
        lease=row["lease"],
        kind=row["kind"],
        ordered=bool(row["ordered"]),
        times={name.removeprefix(_TIMES): known for name, known in end.items() if name.startswith(_TIMES)},
        committed_ms=row["committed_ms"],
    )


def keep(database: sqlite3.Connection, batch: Commit, *, now_ms: int, number: int | None = None) -> int:
    """Store a commit as its generation's last, in place of the one before; returns its number."""
    database.execute(
        "DELETE FROM commits WHERE service = ? AND output = ? AND generation = ? AND (kind = 'closed') = ?",
        (batch.service, batch.output, batch.generation, batch.kind == "closed"),
    )
    cursor = database.execute(
        "INSERT INTO commits (id, service, output, generation, query_id, batch_id, start_vector, end_vector, digest, "
        "token, lease, kind, ordered, committed_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            number,
            batch.service,
            batch.output,
            batch.generation,
            batch.query_id,
            batch.batch_id,
            vectors.to_json(batch.start),
            vectors.to_json({**batch.end, **{f"{_TIMES}{topic}": known for topic, known in batch.times.items()}}),
            batch.digest,
            batch.token,
            batch.lease,
            batch.kind,
            batch.ordered,
            now_ms,
        ),
    )
    return int(cursor.lastrowid or 0)


def _ranges(database: sqlite3.Connection, commit_id: int) -> Ranges:
    ranges: Ranges = {}
    for topic, partition, segment in catalogue.segments_of_commit(database, commit_id):
        known = ranges.setdefault(topic, {})
        known[partition] = (known.get(partition, (segment.base, 0))[0], segment.end)
    return ranges


def forget(database: sqlite3.Connection, service: str) -> None:
    """Drop a service's commits; what they published stays."""
    database.execute(
        "UPDATE segments SET commit_id = NULL WHERE commit_id IN (SELECT id FROM commits WHERE service = ?)", (service,)
    )
    database.execute("DELETE FROM commits WHERE service = ?", (service,))
    order_log.forget(database, service)
