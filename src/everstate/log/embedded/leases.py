"""Leases as rows of the manifest; what they mean is in `everstate.log.leasing`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everstate.log import leasing
from everstate.log.descriptions import Holder, Lease
from everstate.log.leasing import Tenure, Watch

if TYPE_CHECKING:
    import sqlite3

    from everstate.log.embedded.manifest.manifest import Manifest


def tenure_of(database: sqlite3.Connection, name: str) -> Tenure | None:
    """What the manifest knows of a lease."""
    row = database.execute("SELECT * FROM leases WHERE name = ?", (name,)).fetchone()
    if row is None:
        return None
    holder = Holder(row["host"], row["pid"], row["started"])
    return Tenure(row["token"], holder, row["heartbeat_ms"], bool(row["held"]))


def watched(manifest: Manifest, name: str, asking: Holder, now_ms: int) -> Watch:
    """Look whether a holder on another machine, whose time is up by this machine's clock, still gives signs of life."""

    def look() -> Tenure | None:
        with manifest.reading() as database:
            return tenure_of(database, name)

    return leasing.watched(look, asking, now_ms)


def acquire(
    database: sqlite3.Connection,
    name: str,
    holder: Holder,
    *,
    take_over: bool,
    now_ms: int,
    watch: Watch | None = None,
) -> Lease:
    """Take a lease, with a token higher than any before.

    Args:
        database: The manifest.
        name: Which lease.
        holder: Who asks.
        take_over: Replace a holder that lives.
        now_ms: The time.
        watch: What was seen of it before.

    Raises:
        LeaseHeldError: If its holder lives and is not to be replaced.
    """
    tenure = leasing.granted(name, tenure_of(database, name), holder, now_ms, take_over=take_over, watch=watch)
    database.execute(
        "INSERT OR REPLACE INTO leases (name, token, host, pid, started, heartbeat_ms, held) "
        "VALUES (?, ?, ?, ?, ?, ?, 1)",
        (name, tenure.token, holder.host, holder.pid, holder.started, now_ms),
    )
    return Lease(name, tenure.token, holder)


def holder(database: sqlite3.Connection, name: str, *, now_ms: int) -> Holder | None:
    """Who holds a lease and lives."""
    tenure = tenure_of(database, name)
    if tenure is None or not tenure.held:
        return None
    return tenure.holder if leasing.lives(tenure, leasing.this_process(), now_ms) else None


def check(database: sqlite3.Connection, name: str, token: int) -> None:
    """Refuse a token that is not the current one.

    Raises:
        FencedError: If another process has taken the lease, or it was given back.
    """
    leasing.check(name, tenure_of(database, name), token)


def heartbeat(database: sqlite3.Connection, lease: Lease, *, now_ms: int) -> None:
    """Note that the holder lives."""
    tenure = leasing.renewed(lease.name, tenure_of(database, lease.name), lease.token, now_ms)
    database.execute("UPDATE leases SET heartbeat_ms = ? WHERE name = ?", (tenure.heartbeat_ms, lease.name))


def release(database: sqlite3.Connection, lease: Lease) -> None:
    """Give the lease back, if it is still held."""
    database.execute("UPDATE leases SET held = 0 WHERE name = ? AND token = ?", (lease.name, lease.token))
