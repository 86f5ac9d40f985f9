"""Leases: one holder a name, a token that only rises, and a judgement whether the holder still lives."""

from __future__ import annotations

import os
import socket
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from everstate.log.protocol import Holder, Lease
from everstate.topology.errors import FencedError, LeaseHeldError

if TYPE_CHECKING:
    import sqlite3

    from everstate.log.embedded.manifest import Manifest

#: A holder on another machine counts as dead after so long without a heartbeat.
HEARTBEAT_TIMEOUT_MS: Final = 30_000
#: Clocks of two machines differ: one whose time is up is watched for so long, which is two signs of life and more.
WATCH_S: Final = 7.0
_LOOK_S: Final = 0.2
#: A start time is a number of ticks, or where that is not known derived from the clock.
_SAME_START_S: Final = 0.05


def this_process() -> Holder:
    """The holder that this process is."""
    return Holder(_host(os.getpid()), os.getpid(), _started(os.getpid()))


def _started(pid: int) -> float:
    """When a process was started, in seconds since the machine was: a clock that is set must not make it another one.

    Raises:
        psutil.NoSuchProcess: If there is none.
    """
    try:
        # The name of the program, in brackets, may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:  # it is gone, or the system has no such files
        return float(psutil.Process(pid).create_time())
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


@cache
def _host(_pid: int) -> str:
    """The machine, or the container: process numbers mean something only inside one."""
    try:
        space = str(Path("/proc/self/ns/pid").readlink()).strip("pid:[]")
    except OSError:
        return socket.gethostname()
    return f"{socket.gethostname()}/{space}"


def shows_life(manifest: Manifest, name: str, asking: Holder, now_ms: int) -> bool:
    """Whether a holder on another machine, whose time is up by this machine's clock, still gives signs of life."""
    seen: int | None = None
    deadline = time.monotonic() + WATCH_S
    while time.monotonic() < deadline:
        with manifest.reading() as database:
            row = database.execute("SELECT * FROM leases WHERE name = ?", (name,)).fetchone()
        if row is None or not row["held"] or row["host"] == asking.host:
            return False
        if now_ms - row["heartbeat_ms"] < HEARTBEAT_TIMEOUT_MS:
            return False  # no need to watch: it counts as alive
        if seen is not None and row["heartbeat_ms"] != seen:
            return True
        seen = row["heartbeat_ms"]
        time.sleep(_LOOK_S)
    return False


def acquire(
    database: sqlite3.Connection, name: str, holder: Holder, *, take_over: bool, now_ms: int, alive: bool = False
) -> Lease:
    """Take a lease, with a token higher than any before.

    Args:
        database: The manifest.
        name: Which lease.
        holder: Who asks.
        take_over: Replace a holder that lives.
        now_ms: The time.
        alive: The holder lives, whatever the clock says.

    Raises:
        LeaseHeldError: If its holder lives and is not to be replaced.
    """
    row = database.execute("SELECT * FROM leases WHERE name = ?", (name,)).fetchone()
    if row is not None and row["held"] and not take_over:
        current = Holder(row["host"], row["pid"], row["started"])
        if alive or _lives(current, holder, row["heartbeat_ms"], now_ms):
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
        # A sign of life that lies ahead was given before a clock was set back; one that lives soon gives another.
        return abs(now_ms - heartbeat_ms) < HEARTBEAT_TIMEOUT_MS
    return runs_here(current)


def runs_here(current: Holder) -> bool:
    """Whether a process of this machine runs."""
    if current.host != _host(os.getpid()):
        return False
    try:
        process = psutil.Process(current.pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return abs(_started(current.pid) - current.started) < _SAME_START_S
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
