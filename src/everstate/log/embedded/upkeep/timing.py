"""What the manifest has noted of the clock; what follows from it is in `everstate.log.timing`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everstate.log.timing import Sight

if TYPE_CHECKING:
    import sqlite3


def sight(database: sqlite3.Connection) -> Sight:
    """What the log has seen of the clock so far."""
    row = database.execute("SELECT * FROM log").fetchone()
    return Sight(row["seen_ms"], row["trusted_ms"], row["held_until_ms"])


def age_clock(database: sqlite3.Connection, now_ms: int) -> int:
    """The time by which records and tombstones age when the clock says this."""
    return sight(database).age_clock(now_ms)
