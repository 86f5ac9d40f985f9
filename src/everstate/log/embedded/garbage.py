"""Files that no segment names: replaced by compaction, expired, or staged by a process that died."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from everstate.log.crash import crash_point
from everstate.log.embedded import catalogue
from everstate.log.embedded.catalogue import TOPICS_FOLDER
from everstate.log.embedded.segments import SUFFIX

if TYPE_CHECKING:
    from everstate.log.embedded.store import Store

#: Readers that are on their way to a replaced file have so long before they must look it up again.
RETIRED_GRACE_MS: Final = 600_000
#: A file that was staged and never committed; no batch takes that long.
STAGED_GRACE_MS: Final = 86_400_000
_FILES_A_TRANSACTION: Final = 500


def collect(store: Store) -> None:
    """Delete files that nothing can need any more."""
    _collect_retired(store)
    _collect_abandoned(store)
    _collect_folders(store)


def _collect_retired(store: Store) -> None:
    """Delete files whose time is over, then forget them: a crash in between leaves an entry, not a file."""
    with store.manifest.reading() as database:
        rows = database.execute(
            "SELECT file FROM retired_files WHERE retired_ms <= ?", (store.clock() - RETIRED_GRACE_MS,)
        ).fetchall()
    files = [row["file"] for row in rows]
    if not files:
        return
    crash_point("log.garbage.before_unlink")
    for file in files:
        (store.root / file).unlink(missing_ok=True)
    crash_point("log.garbage.after_unlink")
    with store.manifest.writing() as database:
        database.executemany("DELETE FROM retired_files WHERE file = ?", [(file,) for file in files])


def _collect_abandoned(store: Store) -> None:
    """Delete old staged files. The transaction keeps a commit from naming one between the check and the deletion."""
    limit = (store.clock() - STAGED_GRACE_MS) / 1000
    old = [file for folder in _folders(store) for file in _files(folder) if _older(file, limit)]
    for first in range(0, len(old), _FILES_A_TRANSACTION):
        with store.manifest.writing() as database:
            for file in old[first : first + _FILES_A_TRANSACTION]:
                name = file.relative_to(store.root).as_posix()
                retired = database.execute("SELECT 1 FROM retired_files WHERE file = ?", (name,)).fetchone()
                if retired is None and not catalogue.is_named(database, name):
                    file.unlink(missing_ok=True)


def _collect_folders(store: Store) -> None:
    """Remove the empty folders of topics that were deleted."""
    present = _folders(store)  # looked at first, so that the folder of a topic that is being created is known below
    with store.manifest.reading() as database:
        known = {row["folder"] for row in database.execute("SELECT folder FROM topics")}
    for folder in present:
        if folder.relative_to(store.root).as_posix() not in known:
            with suppress(OSError):  # not empty yet
                folder.rmdir()


def _folders(store: Store) -> list[Path]:
    with os.scandir(store.root / TOPICS_FOLDER) as entries:
        return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]


def _files(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in entries if entry.name.endswith(SUFFIX)]
    except FileNotFoundError:
        return []


def _older(file: Path, limit: float) -> bool:
    try:
        return file.stat().st_mtime < limit
    except FileNotFoundError:
        return False
