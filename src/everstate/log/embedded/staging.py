"""Files on their way into the log.

The manifest knows each of them by name before it is written, so that one which its process never published can be
deleted, and nothing else ever is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from everstate.log.crash import crash_point
from everstate.log.durable import make_folder
from everstate.log.embedded.manifest import catalogue
from everstate.log.embedded.segments import SUFFIX, SegmentWriter

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from everstate.log.embedded.manifest.catalogue import Topic
    from everstate.log.embedded.store import Store


def begin(store: Store, topic: Topic) -> SegmentWriter:
    """A new file of a topic.

    The note costs no sync of its own: after a power failure a file may be left that nobody knows, which is only litter.
    """
    file = f"{topic.folder}/{uuid4().hex}{SUFFIX}"
    make_folder(store.root / topic.folder)
    with store.manifest.writing(durable=False) as database:
        database.execute("INSERT INTO staged_files (file, staged_ms) VALUES (?, ?)", (file, store.clock()))
    crash_point("log.stage.after_note")
    return SegmentWriter(store.root, file)


def arrived(database: sqlite3.Connection, files: Iterable[str]) -> None:
    """These files belong to segments from this transaction on."""
    database.executemany("DELETE FROM staged_files WHERE file = ?", [(file,) for file in sorted(set(files))])


def discard(store: Store, files: Iterable[str]) -> None:
    """Delete files that no segment names; the transaction keeps a commit from naming one meanwhile."""
    wanted = sorted(set(files))
    if not wanted:
        return
    with store.manifest.writing(durable=False) as database:
        gone = [file for file in wanted if not catalogue.is_named(database, file)]
        for file in gone:
            (store.root / file).unlink(missing_ok=True)
        arrived(database, gone)
