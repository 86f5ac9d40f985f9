"""Files that no segment names: replaced by compaction, expired, or staged by a process that died.

Only files that the manifest has noted itself are deleted. A file that it does not know belongs to something that it has
lost, or to somebody else.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from everstate.log.crash import crash_point
from everstate.log.embedded.manifest import catalogue
from everstate.log.embedded.manifest.catalogue import TOPICS_FOLDER

if TYPE_CHECKING:
    import sqlite3

    from everstate.log.embedded.store import Store

#: Readers that are on their way to a replaced file have so long before they must look it up again.
RETIRED_GRACE_MS: Final = 600_000
#: A file that was staged and never committed; no batch takes that long.
STAGED_GRACE_MS: Final = 86_400_000
_FILES_A_TRANSACTION: Final = 500
_RETIRED: Final = "SELECT * FROM retired_files WHERE (retired_ms <= ? OR retired_ms > ?)"


def is_due(database: sqlite3.Connection, *, now_ms: int) -> bool:
    """Whether there are replaced or expired files whose time is over."""
    return bool(database.execute(f"{_RETIRED} LIMIT 1", _retired_limits(now_ms)).fetchone())


def collect(store: Store) -> None:
    """Delete files that nothing can need any more.

    Raises:
        OSError: If one of them cannot be deleted: the first. The others are gone, and it is tried again the next time.
    """
    while _collect_retired(store):
        pass
    _collect_abandoned(store)
    _collect_folders(store)


def _collect_retired(store: Store) -> bool:
    """Delete files whose time is over, then forget them: a crash in between leaves an entry, not a file.

    Says whether there may be more.

    A clock that was set back leaves times that lie ahead; what is noted there goes, too, since only a reader on its way
    needs it, and that finds its records again.
    """
    now_ms = store.clock()
    with store.manifest.reading() as database:
        rows = database.execute(f"{_RETIRED} LIMIT {_FILES_A_TRANSACTION}", _retired_limits(now_ms)).fetchall()
        files = [row["file"] for row in rows if not catalogue.is_named(database, row["file"])]
    if not rows:
        return False
    crash_point("log.garbage.before_unlink")
    failed: dict[str, OSError] = {}
    for file in files:
        try:
            (store.root / file).unlink(missing_ok=True)
        except OSError as error:
            failed[file] = error
    crash_point("log.garbage.after_unlink")
    with store.manifest.writing() as database:
        done = [(row["file"],) for row in rows if row["file"] not in failed]
        database.executemany("DELETE FROM retired_files WHERE file = ?", done)
    for first in failed.values():
        raise first
    return len(rows) == _FILES_A_TRANSACTION


def _retired_limits(now_ms: int) -> tuple[int, int]:
    return now_ms - RETIRED_GRACE_MS, now_ms + RETIRED_GRACE_MS


def _collect_abandoned(store: Store) -> None:
    """Delete old staged files. The transaction keeps a commit from naming one between the check and the deletion."""
    now_ms = store.clock()
    limits = (now_ms - STAGED_GRACE_MS, now_ms + STAGED_GRACE_MS)
    query = "SELECT * FROM staged_files WHERE staged_ms <= ? OR staged_ms > ? LIMIT 500"
    with store.manifest.reading() as database:
        if database.execute(query, limits).fetchone() is None:
            return
    with store.manifest.writing() as database:
        for row in database.execute(query, limits).fetchall():
            if not catalogue.is_named(database, row["file"]):
                (store.root / row["file"]).unlink(missing_ok=True)
            database.execute("DELETE FROM staged_files WHERE file = ?", (row["file"],))


def _collect_folders(store: Store) -> None:
    """Remove the empty folders of topics that were deleted."""
    present = _folders(store)  # looked at first, so that the folder of a topic that is being created is known below
    with store.manifest.reading() as database:
        known = {row["folder"] for row in database.execute("SELECT * FROM topics")}
    for folder in present:
        if folder.relative_to(store.root).as_posix() not in known:
            with suppress(OSError):  # not empty yet
                folder.rmdir()


def _folders(store: Store) -> list[Path]:
    try:
        with os.scandir(store.root / TOPICS_FOLDER) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []  # no record was ever written
