"""The manifest: one SQLite database that says which bytes of which files are records of which topic.

A segment file counts from the moment its row is committed here, and no longer than its row stays. Every transaction is
short: files are written and synced before, deleted after. Connections belong to one thread of one process; SQLite
connections must not cross a fork, so a forked child opens its own.

A log that is only read is not created: as long as there is none, readers see an empty one.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from everstate.errors import LogError, ManifestDamagedError, formats
from everstate.log import private
from everstate.log.crash import crash_point
from everstate.log.durable import make_folder
from everstate.log.embedded.manifest import identity, integrity, manifest_errors, schema, upgrade
from everstate.log.embedded.upkeep import timing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from everstate.log.timing import Clock

BUSY_SECONDS: Final = 30

#: Connections inherited through a fork. Closing them in the child would make SQLite tidy up files that the parent uses,
#: so they are kept out of reach of the garbage collector instead.
_INHERITED: list[sqlite3.Connection] = []


class Manifest:
    """Connections to the database, and transactions on them.

    Args:
        path: The database.
        clock: Gives the time in milliseconds.
        trusted: Another process of the same service has checked it a moment ago.
    """

    def __init__(self, path: Path, clock: Clock, *, trusted: bool = False) -> None:
        self.path = path
        self._clock = clock
        self._trusted = trusted
        self._ready = False
        self._begin_anew()
        if not self._absent():
            self._open_existing()

    def _begin_anew(self) -> None:
        self._pid = os.getpid()
        self._local = threading.local()
        self._open: list[tuple[threading.Thread, sqlite3.Connection]] = []
        self._guard = threading.RLock()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A transaction that sees one consistent state of the manifest."""
        if not self._ready and self._absent():
            with _empty() as database:
                yield database
            return
        self._open_existing()
        with self._transaction("BEGIN") as database:
            yield database

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """A transaction that alone may change the manifest.

        Args:
            durable: Whether it survives a power failure from its end on; otherwise from that of the next durable one.
        """
        self._open_or_create()
        with self._transaction("BEGIN IMMEDIATE", durable=durable) as database:
            row = database.execute("SELECT * FROM log").fetchone()
            yield database
            writes = row["writes"] + 1
            seen = timing.sight(database).at(self._clock())
            database.execute(
                "UPDATE log SET writes = ?, seen_ms = ?, trusted_ms = ?, held_until_ms = ?", (writes, *seen)
            )
        if durable:
            self._note(writes)

    def close(self) -> None:
        """Close the connections of this process, whichever thread opened them."""
        with self._guard:
            mine = self._open if self._pid == os.getpid() else []
            self._open = []
            self._local = threading.local()
        for _, connection in mine:
            connection.close()

    def _absent(self) -> bool:
        """Whether there is no manifest; a folder that should have one is refused."""
        root = self.path.parent
        try:
            if self._size():
                return False
            if root.exists() and not root.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, "it is not a folder")
            identity.refuse_orphans(root)
        except ManifestDamagedError:
            if self._size():
                return False  # another process has just created it
            raise
        except OSError as error:
            raise manifest_errors.of_system(error, root) from error
        return True

    def _size(self) -> int:
        try:
            return self.path.stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return 0

    def _open_existing(self) -> None:
        with self._guard:
            if not self._ready:
                self._prepare()

    def _open_or_create(self) -> None:
        with self._guard:
            if self._ready:
                return
            if self._absent():
                try:
                    make_folder(self.path.parent)
                    os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, private.FILE))
                except OSError as error:
                    raise manifest_errors.of_system(error, self.path.parent) from error
            self._prepare()

    def _prepare(self) -> None:
        """Bring the manifest to this format if need be, and look whether it is whole."""
        root = self.path.parent
        noted = identity.noted_writes(root)
        with self._transaction("BEGIN") as database:
            found = _format(database)
        if found != schema.FORMAT:
            with self._transaction("BEGIN IMMEDIATE") as database:
                self._convert(database)
        with self._transaction("BEGIN") as database:
            if not self._trusted:
                integrity.check(database)
            row = database.execute("SELECT * FROM log").fetchone()
            identity.refuse_lost_writes(root, noted, row["writes"])
        try:
            identity.agree(root, row["identity"])
        except OSError as error:
            raise manifest_errors.of_system(error, root) from error
        self._ready = True

    def _convert(self, database: sqlite3.Connection) -> None:
        found = _format(database)  # once more: another process may have been faster
        if found == schema.FORMAT:
            return
        now_ms = self._clock()
        if found == 0:
            identity.refuse_orphans(self.path.parent)
            schema.create(database)
            database.execute(
                "INSERT INTO log (id, identity, writes, seen_ms, trusted_ms, held_until_ms) VALUES (1, ?, 0, ?, ?, 0)",
                (uuid4().hex, now_ms, now_ms),
            )
            crash_point("log.create.inside_transaction")
        elif found == upgrade.FROM:
            upgrade.upgrade(database, now_ms=now_ms)
        else:
            raise formats.newer(LogError, f"the log {self.path.parent}", found, schema.FORMAT)

    @contextmanager
    def _transaction(self, begin: str, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        try:
            database = self._connection()
            if database.in_transaction:
                raise RuntimeError("transactions on the manifest do not nest")
            if not durable:
                database.execute("PRAGMA synchronous=NORMAL")
            try:
                database.execute(begin)
                yield database
                database.execute("COMMIT")
            except BaseException:
                _roll_back(database)
                raise
            finally:
                if not durable:
                    database.execute("PRAGMA synchronous=FULL")
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter where SQLite quotes what it cannot read
            raise manifest_errors.of_database(error, self.path, busy_seconds=BUSY_SECONDS) from error

    def _note(self, writes: int) -> None:
        try:
            identity.note_writes(self.path.parent, writes)
        except OSError:  # the transaction is durable all the same; the note only helps to notice its loss
            return

    def _connection(self) -> sqlite3.Connection:
        if self._pid != os.getpid():
            _INHERITED.extend(connection for _, connection in self._open)
            self._begin_anew()
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._connect()
            self._local.connection = connection
            with self._guard:
                self._close_left_behind()
                self._open.append((threading.current_thread(), connection))
        return connection

    def _close_left_behind(self) -> None:
        """Close what threads that have ended had open: a process that lives for months has any number of them."""
        for thread, connection in self._open:
            if not thread.is_alive():
                connection.close()
        self._open = [(thread, connection) for thread, connection in self._open if thread.is_alive()]

    def _connect(self) -> sqlite3.Connection:
        # Only close() ever uses a connection from another thread than its own.
        connection = sqlite3.connect(
            self.path, isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False, cached_statements=256
        )
        try:
            schema.equip(connection)
            _enable_wal(connection)
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA foreign_keys=ON")
            connection.execute("PRAGMA cell_size_check=ON")
        except BaseException:
            connection.close()
            raise
        return connection


def _format(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def _empty() -> Iterator[sqlite3.Connection]:
    """What readers see of a log that is not there."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    try:
        schema.equip(database)
        schema.create(database)
        yield database
    finally:
        database.close()


def _roll_back(database: sqlite3.Connection) -> None:
    if database.in_transaction:  # SQLite has ended it by itself if, say, the disk is full
        database.execute("ROLLBACK")


def _enable_wal(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging; SQLite does not wait for other processes here, so this does."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if not manifest_errors.is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return
