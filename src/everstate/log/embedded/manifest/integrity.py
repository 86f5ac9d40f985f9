"""The look at the whole manifest when a log is opened: rows that cannot be found do not miss their checksum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from everstate.errors import ManifestDamagedError
from everstate.log.embedded.manifest import schema

if TYPE_CHECKING:
    import sqlite3

#: Grows with the age of a log, and is checked when it is read.
_LARGE: Final = frozenset({"stops"})


def check(database: sqlite3.Connection) -> None:
    """Check declarations, pages, indices and rows; only the pages of order logs are left to their readers.

    Raises:
        ManifestDamagedError: If anything is not as it was written.
    """
    if schema.declared(database) != schema.expected():
        raise _damaged("its tables are not those of this format")
    for table in schema.TABLES:
        if table in _LARGE:
            continue
        report = database.execute(f"PRAGMA integrity_check({table})").fetchone()[0]
        if report != "ok":
            raise _damaged(str(report))
        for _ in database.execute(f"SELECT * FROM {table}"):  # noqa: S608 - the names of our own tables
            pass  # the row was checked when it was read
    lacking = database.execute(
        "SELECT name FROM topics WHERE partitions <> (SELECT count(*) FROM partitions WHERE topic_id = topics.id)"
    ).fetchone()
    if lacking is not None:
        raise _damaged(f"partitions of topic {lacking['name']!r} are missing")
    if database.execute("SELECT count(*) FROM log").fetchone()[0] != 1:
        raise _damaged("the row of the log itself is missing")


def _damaged(reason: str) -> ManifestDamagedError:
    return ManifestDamagedError(f"the log's manifest is damaged: {reason}", hint=schema.RESTORE)
