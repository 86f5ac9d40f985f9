"""What SQLite and the file system say about the manifest, in words that say what to do."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final

from everstate.errors import AccessError, LogBusyError, LogError, ManifestDamagedError
from everstate.errors.exhaustion import exhausted, exhaustion, shortage
from everstate.log.embedded.manifest.schema import RESTORE

if TYPE_CHECKING:
    from pathlib import Path

    from everstate.errors import EverstateError

#: Everything else that SQLite can say of statements that are right means that the file is not what was written.
_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_REFUSED: Final = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH})
_UNUSABLE: Final = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM})


def _code(error: Exception) -> int:
    """The primary code; SQLite puts details into the higher bits."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def is_busy(error: Exception) -> bool:
    """Whether another process is in the way for now."""
    return _code(error) in _BUSY


def of_database(error: Exception, path: Path, *, busy_seconds: float) -> EverstateError:
    """The error to raise for one of SQLite's."""
    code = _code(error)
    # SQLite says no more than "disk I/O error" or "unable to open" where a file could not grow or be opened.
    lacking = exhaustion(error) or (shortage(path) if code in _UNUSABLE else None)
    if lacking is not None:
        return exhausted(lacking, f"the log's manifest {path} cannot be used")
    if code in _BUSY:
        return LogBusyError(
            f"the log's manifest {path} stayed locked for {busy_seconds} s",
            hint="Another process holds it; see which one with: fuser " + str(path),
        )
    if code in _REFUSED:
        return LogError(
            f"the log's manifest {path} cannot be written: {error}",
            hint="Give this user the right to write to the log's folder and the files in it.",
        )
    if code in _UNUSABLE:
        return LogError(
            f"the log's manifest {path} cannot be used: {error}",
            hint="Check that the folder exists and is writable.",
        )
    return ManifestDamagedError(f"the log's manifest {path} is damaged: {error}", hint=RESTORE)


def of_system(error: OSError, folder: Path) -> EverstateError:
    """The error to raise for one of the file system's."""
    lacking = exhaustion(error)
    if lacking is not None and lacking is not AccessError:
        return exhausted(lacking, f"the log's folder {folder} cannot be used")
    return LogError(
        f"the log's folder {folder} cannot be used: {error.strerror or error}",
        hint="Give this user the right to use it, or name another folder with --log PATH or EVERSTATE_LOG.",
    )
