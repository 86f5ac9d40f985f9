"""The order log of an output: where its micro-batches ended, for outputs whose results depend on the order of arrival.

Each commit adds one vector as a row of its own, which costs the same however many there are. Rows are folded 256 at a
time into one, twice: so a month at a commit a second is some hundred rows of a few bytes per commit.

A generation that is built has a track of its own. It goes beyond the active one before it takes its place; from then on
its batches count, so its track is put after what was published.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from everstate.errors import ManifestDamagedError
from everstate.log.embedded.manifest import catalogue
from everstate.log.embedded.manifest.schema import RESTORE
from everstate.log.stops import Stops

if TYPE_CHECKING:
    import sqlite3

    from everstate.log.descriptions import Commit

#: So many rows of one level become one of the next.
FOLD: Final = 256
_TOP_LEVEL: Final = 2
_PUBLISHED: Final = ""


def add(database: sqlite3.Connection, batch: Commit, *, now_ms: int) -> None:
    """Note where a batch ends, in the caller's transaction."""
    track = batch.generation if batch.kind == "closed" else _PUBLISHED
    if batch.kind == "cutover":
        _splice(database, batch)
    if batch.ordered:
        # Whoever has read a topic has done so after it was created, also if the clock was set back meanwhile.
        noted_ms = max([now_ms, *catalogue.creations(database, batch.end)])
        _insert(database, (batch.service, batch.output, track), 0, Stops.of([batch.end], [noted_ms]).to_bytes())
        _fold(database, (batch.service, batch.output, track))


def _insert(database: sqlite3.Connection, owner: tuple[str, str, str], level: int, vectors: bytes) -> None:
    database.execute(
        "INSERT INTO stops (service, output, track, level, vectors) VALUES (?, ?, ?, ?, ?)", (*owner, level, vectors)
    )


def _fold(database: sqlite3.Connection, owner: tuple[str, str, str]) -> None:
    """Put the rows of a level together where there are enough; the result takes the place of the first of them."""
    for level in range(_TOP_LEVEL):
        rows = database.execute(
            "SELECT id FROM stops WHERE service = ? AND output = ? AND track = ? AND level = ? ORDER BY id LIMIT ?",
            (*owner, level, FOLD),
        ).fetchall()
        if len(rows) < FOLD:
            return
        ids = [row["id"] for row in rows]
        whole = Stops.joined([_decoded(_row(database, number)) for number in ids])
        database.executemany("DELETE FROM stops WHERE id = ?", [(number,) for number in ids])
        database.execute(
            "INSERT INTO stops (id, service, output, track, level, vectors) VALUES (?, ?, ?, ?, ?, ?)",
            (ids[0], *owner, level + 1, whole.to_bytes()),
        )


def _splice(database: sqlite3.Connection, batch: Commit) -> None:
    """Put what a generation did while it was built after what was already published."""
    built = (batch.service, batch.output, batch.generation)
    rows = _rows(database, built)
    if rows and batch.ordered:
        # All of a level that is below another's would be out of order, so all becomes one row of the highest level.
        published = _rows(database, (batch.service, batch.output, _PUBLISHED))
        tail = [row for row in published if row["level"] < _TOP_LEVEL]
        whole = Stops.joined([_decoded(row) for row in [*tail, *rows]])
        database.executemany("DELETE FROM stops WHERE id = ?", [(row["id"],) for row in tail])
        _insert(database, (batch.service, batch.output, _PUBLISHED), _TOP_LEVEL, whole.to_bytes())
    # Only one generation of an output is built at a time: the tracks of others are of builds that were given up.
    database.execute(
        "DELETE FROM stops WHERE service = ? AND output = ? AND track <> ?", (batch.service, batch.output, _PUBLISHED)
    )


def read(database: sqlite3.Connection, service: str, output: str) -> Stops:
    """What was published: where batches ended, and when they were committed."""
    rows = _rows(database, (service, output, _PUBLISHED))
    return Stops.joined([_decoded(row) for row in rows]).advancing()


def forget(database: sqlite3.Connection, service: str) -> None:
    """Drop the order logs of a service."""
    database.execute("DELETE FROM stops WHERE service = ?", (service,))


def _rows(database: sqlite3.Connection, owner: tuple[str, str, str]) -> list[sqlite3.Row]:
    return database.execute(
        "SELECT * FROM stops WHERE service = ? AND output = ? AND track = ? ORDER BY id", owner
    ).fetchall()


def _row(database: sqlite3.Connection, number: int) -> sqlite3.Row:
    row: sqlite3.Row = database.execute("SELECT * FROM stops WHERE id = ?", (number,)).fetchone()
    return row


def _decoded(row: sqlite3.Row) -> Stops:
    try:
        return Stops.from_bytes(row["vectors"])
    except (ValueError, zlib.error) as error:
        raise ManifestDamagedError(
            f"the order log of output {row['output']!r} of service {row['service']!r} is damaged: {error}", hint=RESTORE
        ) from error
