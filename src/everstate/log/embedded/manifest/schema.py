"""The tables of the manifest, and the seals of their rows.

SQLite keeps no checksums: a flipped bit in a page is read as another number. So every row carries a seal, a digest of
all its other columns. Triggers set it, so that no statement can forget it, and refuse to change a row whose seal does
not fit, which would seal the damage. Whoever selects whole rows gets them checked (`sealed_row`).
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from functools import cache
from typing import Any, Final

from everstate.errors import ManifestDamagedError

FORMAT: Final = 2
SEAL: Final = "seal"

_TABLES: Final = """
CREATE TABLE log (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    identity TEXT NOT NULL,
    writes INTEGER NOT NULL,               -- transactions so far; see `identity.py`
    seen_ms INTEGER NOT NULL,              -- these three: see `timing.py`
    trusted_ms INTEGER NOT NULL,
    held_until_ms INTEGER NOT NULL,
    seal INTEGER
);
CREATE TABLE topics (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used again, so a deleted topic's files cannot be taken for another's
    name TEXT NOT NULL UNIQUE,
    identity TEXT NOT NULL UNIQUE,
    folder TEXT NOT NULL,
    partitions INTEGER NOT NULL,
    compact INTEGER NOT NULL,
    retention_ms INTEGER,
    delete_retention_ms INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    seal INTEGER
);
CREATE TABLE partitions (
    topic_id INTEGER NOT NULL REFERENCES topics (id) ON DELETE CASCADE,
    partition INTEGER NOT NULL,
    begin_offset INTEGER NOT NULL DEFAULT 0,
    end_offset INTEGER NOT NULL DEFAULT 0,
    clean_to INTEGER NOT NULL DEFAULT 0,   -- below it, compaction has left one record per key
    seal INTEGER,
    PRIMARY KEY (topic_id, partition)
) WITHOUT ROWID;
CREATE TABLE segments (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    topic_id INTEGER NOT NULL REFERENCES topics (id) ON DELETE CASCADE,
    partition INTEGER NOT NULL,
    base_offset INTEGER NOT NULL,
    end_offset INTEGER NOT NULL,
    file TEXT NOT NULL,                    -- relative to the log's folder; segments of one topic may share a file
    file_bytes INTEGER NOT NULL,
    sparse INTEGER NOT NULL,               -- blocks carry explicit offsets, because compaction has left gaps
    records INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    max_ts INTEGER NOT NULL,               -- no record counts as younger than its arrival
    appended_ms INTEGER NOT NULL,
    tier INTEGER NOT NULL,                 -- how full it is; see `merging.py`
    commit_id INTEGER,
    blocks TEXT NOT NULL,                  -- JSON: [first, end, position, length, crc, records] of each
    seal INTEGER
);
CREATE UNIQUE INDEX segments_by_offset ON segments (topic_id, partition, base_offset);
CREATE INDEX segments_by_file ON segments (file);
CREATE INDEX segments_by_commit ON segments (commit_id, topic_id, partition) WHERE commit_id IS NOT NULL;
CREATE INDEX segments_by_tier ON segments (topic_id, partition, tier) WHERE commit_id IS NULL;
CREATE TABLE staged_files (
    file TEXT PRIMARY KEY,
    staged_ms INTEGER NOT NULL,
    seal INTEGER
) WITHOUT ROWID;
CREATE TABLE retired_files (
    file TEXT PRIMARY KEY,
    retired_ms INTEGER NOT NULL,
    seal INTEGER
) WITHOUT ROWID;
CREATE INDEX retired_by_time ON retired_files (retired_ms);
CREATE TABLE dropped_tombstones (
    topic_id INTEGER NOT NULL REFERENCES topics (id) ON DELETE CASCADE,
    partition INTEGER NOT NULL,
    dropped_ms INTEGER NOT NULL,
    end_offset INTEGER NOT NULL,           -- one after the last tombstone that compaction has dropped
    seal INTEGER,
    PRIMARY KEY (topic_id, partition)
) WITHOUT ROWID;
CREATE TABLE commits (                     -- of each generation the last one, published or not
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    service TEXT NOT NULL,
    output TEXT NOT NULL,
    generation TEXT NOT NULL,
    query_id TEXT NOT NULL,
    batch_id INTEGER NOT NULL,
    start_vector TEXT NOT NULL,
    end_vector TEXT NOT NULL,
    digest TEXT NOT NULL,
    token INTEGER NOT NULL,
    lease TEXT NOT NULL,
    kind TEXT NOT NULL,
    ordered INTEGER NOT NULL,
    committed_ms INTEGER NOT NULL,
    seal INTEGER
);
CREATE INDEX commits_by_generation ON commits (service, output, generation, id);
CREATE INDEX commits_published ON commits (service, output, id) WHERE kind <> 'closed';
CREATE TABLE stops (                       -- order logs; see `order_log.py`
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    service TEXT NOT NULL,
    output TEXT NOT NULL,
    track TEXT NOT NULL,                   -- empty for what was published, else the generation that is being built
    level INTEGER NOT NULL,
    vectors BLOB NOT NULL,
    seal INTEGER
);
CREATE INDEX stops_by_track ON stops (service, output, track, level);
CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    token INTEGER NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    started REAL NOT NULL,
    heartbeat_ms INTEGER NOT NULL,
    held INTEGER NOT NULL,
    seal INTEGER
) WITHOUT ROWID;
CREATE TABLE documents (
    service TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    seal INTEGER,
    PRIMARY KEY (service, name)
) WITHOUT ROWID;
"""

TABLES: Final = tuple(re.findall(r"CREATE TABLE (\w+)", _TABLES))


def create(database: sqlite3.Connection) -> None:
    """Make the tables and the triggers that keep their seals, in the caller's transaction."""
    for statement in _TABLES.split(";\n"):
        database.execute(statement)
    for table in TABLES:
        _keep_sealed(database, table)
    database.execute(f"PRAGMA user_version={FORMAT}")


def _keep_sealed(database: sqlite3.Connection, table: str) -> None:
    found = database.execute(f"PRAGMA table_info({table})").fetchall()
    columns = [row[1] for row in found if row[1] != SEAL]
    same = " AND ".join(f"{row[1]} = NEW.{row[1]}" for row in found if row[5])
    new, old = (", ".join(f"{side}.{column}" for column in columns) for side in ("NEW", "OLD"))
    reseal = f"UPDATE {table} SET seal = seal({new}) WHERE {same}"  # noqa: S608 - our own names
    changing = f"UPDATE OF {', '.join(columns)} ON {table}"
    database.execute(f"CREATE TRIGGER {table}_inserted AFTER INSERT ON {table} BEGIN {reseal}; END")
    database.execute(f"CREATE TRIGGER {table}_updated AFTER {changing} BEGIN {reseal}; END")
    database.execute(
        f"CREATE TRIGGER {table}_checked BEFORE {changing} WHEN OLD.seal IS NOT seal({old}) "
        f"BEGIN SELECT RAISE(ABORT, 'a row of the table {table} does not match its checksum'); END"
    )


def equip(connection: sqlite3.Connection) -> None:
    """Give a connection what the triggers call, and rows that are checked."""
    connection.create_function("seal", -1, seal, deterministic=True)
    connection.row_factory = sealed_row


def seal(*values: Any) -> int:
    """A digest of the values of a row, as SQLite's signed integer."""
    digest = hashlib.blake2b(repr(values).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def sealed_row(cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> sqlite3.Row:
    """A row; one that ends with its seal is checked.

    Raises:
        ManifestDamagedError: If the seal does not fit.
    """
    if cursor.description[-1][0] == SEAL and seal(*values[:-1]) != values[-1]:
        raise ManifestDamagedError(
            f"a row of the log's manifest does not match its checksum (it begins with {str(values[0])[:40]!r})",
            hint=RESTORE,
        )
    return sqlite3.Row(cursor, values)


RESTORE: Final = "Restore the log's folder from a backup; the manifest and the segment files belong together."


@cache
def expected() -> frozenset[tuple[str, str]]:
    """Name and text of everything that the manifest declares."""
    empty = sqlite3.connect(":memory:")
    try:
        equip(empty)
        create(empty)
        return declared(empty)
    finally:
        empty.close()


def declared(database: sqlite3.Connection) -> frozenset[tuple[str, str]]:
    """Name and text of everything that a database declares."""
    rows = database.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return frozenset((row[0], row[1]) for row in rows.fetchall() if not row[0].startswith("sqlite_"))
