"""Leases: one holder a name, a token that only rises, and a judgement whether the holder still lives."""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from everstate.log.protocol import Holder, Lease
from everstate.topology.errors import FencedError, LeaseHeldError

if TYPE_CHECKING:
    import sqlite3

#: A holder on another machine counts as dead after so long without a heartbeat.
HEARTBEAT_TIMEOUT_MS: Final = 30_000
#: A start time is derived from the clock, which may be set a little while the process runs.
_SAME_START_S: Final = 2.0


def this_process() -> Holder:
    """The holder that this process is."""
    return Holder(_host(os.getpid()), os.getpid(), psutil.Process().create_time())


@cache
def _host(_pid: int) -> str:
    """The machine, or the container: process numbers mean something only inside one."""
    try:
        space = str(Path("/proc/self/ns/pid").readlink()).strip("pid:[]")
    except OSError:
        return socket.gethostname()
    return f"{socket.gethostname()}/{space}"


def acquire(database: sqlite3.Connection, name: str, holder: Holder, *, take_over: bool, now_ms: int) -> Lease:
    """Take a lease, with a token higher than any before.

    Raises:
        LeaseHeldError: If its holder lives and is not to be replaced.
    """
    row = database.execute("SELECT * FROM leases WHERE name = ?", (name,)).fetchone()
    if row is not None and row["held"] and not take_over:
        current = Holder(row["host"], row["pid"], row["started"])
        if _lives(current, holder, row["heartbeat_ms"], now_ms):
            age = max(0, now_ms - row["heartbeat_ms"]) / 1000
            raise LeaseHeldError(
                f"{name!r} is in use by {current}, which was last heard of {age:.1f} s ago",
                hint="Stop that process first. If it runs elsewhere and is dead, its right ends "
                f"{HEARTBEAT_TIMEOUT_MS // 1000} s after its last sign of life.",
            )
    token = 1 if row is None else row["token"] + 1
    database.execute(
        "INSERT OR REPLACE INTO leases (name, token, host, pid, started, heartbeat_ms, held) "
        "VALUES (?, ?, ?, ?, ?, ?, 1)",
        (name, token, holder.host, holder.pid, holder.started, now_ms),
    )
    return Lease(name, token, holder)


def holder(database: sqlite3.Connection, name: str, *, now_ms: int) -> Holder | None:
    """Who holds a lease and lives."""
    row = database.execute("SELECT * FROM leases WHERE name = ?", (name,)).fetchone()
    if row is None or not row["held"]:
        return None
    current = Holder(row["host"], row["pid"], row["started"])
    return current if _lives(current, this_process(), row["heartbeat_ms"], now_ms) else None


def _lives(current: Holder, asking: Holder, heartbeat_ms: int, now_ms: int) -> bool:
    if current.host != asking.host:
        return now_ms - heartbeat_ms < HEARTBEAT_TIMEOUT_MS
    return runs_here(current)


def runs_here(current: Holder) -> bool:
    """Whether a process of this machine runs."""
    if current.host != _host(os.getpid()):
        return False
    try:
        process = psutil.Process(current.pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return abs(float(process.create_time()) - current.started) < _SAME_START_S
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def check(database: sqlite3.Connection, name: str, token: int) -> None:
    """Refuse a token that is not the current one.

    Raises:
        FencedError: If another process has taken the lease, or it was given back.
    """
    row = database.execute("SELECT * FROM leases WHERE name = ?", (name,)).fetchone()
    if row is None:
        raise FencedError(
            f"nobody holds the lease {name!r}, so nothing may be published under it (token {token})",
            hint="Start the service again.",
        )
    if row["token"] != token:
        current = Holder(row["host"], row["pid"], row["started"])
        raise FencedError(
            f"{name!r} has been taken over by {current} (token {row['token']}, this process has {token})",
            hint="This process has to stop; nothing of its last batch was published.",
        )
    if not row["held"]:
        raise FencedError(f"the lease {name!r} was given back (token {token})", hint="Start the service again.")


def heartbeat(database: sqlite3.Connection, lease: Lease, *, now_ms: int) -> None:
    """Note that the holder lives."""
    check(database, lease.name, lease.token)
    database.execute("UPDATE leases SET heartbeat_ms = ? WHERE name = ?", (now_ms, lease.name))


def release(database: sqlite3.Connection, lease: Lease) -> None:
    """Give the lease back, if it is still held."""
    database.execute("UPDATE leases SET held = 0 WHERE name = ? AND token = ?", (lease.name, lease.token))
