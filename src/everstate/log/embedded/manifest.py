"""The manifest: one SQLite database that says which bytes of which files are records of which topic.

A segment file counts from the moment its row is committed here, and no longer than its row stays. Every transaction is
short: files are written and synced before, deleted after. Connections belong to one thread of one process; SQLite
connections must not cross a fork, so a forked child opens its own.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from everstate.topology.errors import LogBusyError, LogError
from everstate.topology.exhaustion import exhausted, exhaustion, shortage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from everstate.topology.errors import EverstateError

FORMAT: Final = 2
BUSY_SECONDS: Final = 30

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS topics (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used again, so a deleted topic's files cannot be taken for another's
    name TEXT NOT NULL UNIQUE,
    identity TEXT NOT NULL DEFAULT '',
    folder TEXT NOT NULL,
    compact INTEGER NOT NULL,
    retention_ms INTEGER,
    delete_retention_ms INTEGER NOT NULL,
    created_ms INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS partitions (
    topic_id INTEGER NOT NULL REFERENCES topics (id) ON DELETE CASCADE,
    partition INTEGER NOT NULL,
    begin_offset INTEGER NOT NULL DEFAULT 0,
    end_offset INTEGER NOT NULL DEFAULT 0,
    clean_to INTEGER NOT NULL DEFAULT 0,   -- below it, compaction has left one record a key
    PRIMARY KEY (topic_id, partition)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS segments (
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
    max_ts INTEGER NOT NULL,
    appended_ms INTEGER NOT NULL,
    commit_id INTEGER,
    blocks TEXT NOT NULL                   -- JSON: [first, end, position, length, crc, records] of each
);
CREATE UNIQUE INDEX IF NOT EXISTS segments_by_offset ON segments (topic_id, partition, base_offset);
CREATE INDEX IF NOT EXISTS segments_by_file ON segments (file);
CREATE INDEX IF NOT EXISTS segments_by_commit ON segments (commit_id) WHERE commit_id IS NOT NULL;
CREATE TABLE IF NOT EXISTS retired_files (
    file TEXT PRIMARY KEY,
    retired_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS dropped_tombstones (
    topic_id INTEGER NOT NULL REFERENCES topics (id) ON DELETE CASCADE,
    partition INTEGER NOT NULL,
    dropped_ms INTEGER NOT NULL,
    end_offset INTEGER NOT NULL            -- one after the last tombstone that this compaction dropped
);
CREATE INDEX IF NOT EXISTS dropped_by_partition ON dropped_tombstones (topic_id, partition);
CREATE TABLE IF NOT EXISTS commits (
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
    committed_ms INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS commits_by_output ON commits (service, output, generation, id);
CREATE TABLE IF NOT EXISTS leases (
    name TEXT PRIMARY KEY,
    token INTEGER NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    started REAL NOT NULL,
    heartbeat_ms INTEGER NOT NULL,
    held INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS documents (
    service TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (service, name)
) WITHOUT ROWID;
"""

#: Connections inherited through a fork. Closing them in the child would make SQLite tidy up files that the parent uses,
#: so they are kept out of reach of the garbage collector instead.
_INHERITED: list[sqlite3.Connection] = []


class Manifest:
    """Connections to the database, and transactions on them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        self._pid = os.getpid()
        self._open: list[sqlite3.Connection] = []
        self._guard = threading.Lock()
        with self.writing() as database:
            self._prepare(database)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A transaction that sees one consistent state of the manifest."""
        with self._transaction("BEGIN") as database:
            yield database

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that alone may change the manifest; durable when it has ended."""
        with self._transaction("BEGIN IMMEDIATE") as database:
            yield database

    def close(self) -> None:
        """Close the connections of this process, whichever thread opened them."""
        with self._guard:
            mine = self._open if self._pid == os.getpid() else []
            self._open = []
            self._local = threading.local()
        for connection in mine:
            connection.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        try:
            database = self._connection()
            if database.in_transaction:
                raise RuntimeError("transactions on the manifest do not nest")
            database.execute(begin)
            try:
                yield database
                database.execute("COMMIT")
            except BaseException:
                _roll_back(database)
                raise
        except sqlite3.Error as error:
            raise _named(error, self.path) from error

    def _connection(self) -> sqlite3.Connection:
        if self._pid != os.getpid():
            _INHERITED.extend(self._open)
            self._pid, self._open, self._local, self._guard = os.getpid(), [], threading.local(), threading.Lock()
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._connect()
            self._local.connection = connection
            with self._guard:
                self._open.append(connection)
        return connection

    def _connect(self) -> sqlite3.Connection:
        # Only close() ever uses a connection from another thread than its own.
        connection = sqlite3.connect(
            self.path, isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False, cached_statements=256
        )
        connection.row_factory = sqlite3.Row
        _enable_wal(connection)
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")
        return connection

    def _prepare(self, database: sqlite3.Connection) -> None:
        found: int = database.execute("PRAGMA user_version").fetchone()[0]
        if found == FORMAT:
            return
        if found == 1:
            database.execute("ALTER TABLE topics ADD COLUMN identity TEXT NOT NULL DEFAULT ''")
            database.execute("UPDATE topics SET identity = lower(hex(randomblob(16)))")
            database.execute(f"PRAGMA user_version={FORMAT}")
            return
        if found != 0:
            raise LogError(
                f"the log {self.path.parent} has format {found}; this version of Everstate reads format {FORMAT}",
                hint="Use the version of Everstate that wrote it.",
            )
        for statement in _SCHEMA.split(";\n"):
            database.execute(statement)
        database.execute(f"PRAGMA user_version={FORMAT}")


def _roll_back(database: sqlite3.Connection) -> None:
    if database.in_transaction:  # SQLite has ended it by itself if, say, the disk is full
        database.execute("ROLLBACK")


def _enable_wal(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging; SQLite does not wait for other processes here, so this does."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _named(error: sqlite3.Error, path: Path) -> EverstateError:
    # SQLite says no more than "disk I/O error" or "unable to open" where a file could not grow or be opened.
    lacking = exhaustion(error) or (shortage(path.parent) if isinstance(error, sqlite3.OperationalError) else None)
    if lacking is not None:
        return exhausted(lacking, f"the log's manifest {path} cannot be used")
    if isinstance(error, sqlite3.OperationalError) and ("locked" in str(error) or "busy" in str(error)):
        return LogBusyError(
            f"the log's manifest {path} stayed locked for {BUSY_SECONDS} s",
            hint="Another process holds it; see which one with: fuser " + str(path),
        )
    if isinstance(error, sqlite3.OperationalError):
        return LogError(
            f"the log's manifest {path} cannot be used: {error}",
            hint="Check that the folder exists, is writable and has free space.",
        )
    return LogError(
        f"the log's manifest {path} is damaged: {error}",
        hint="Restore the log's folder from a backup; the manifest and the segment files belong together.",
    )
