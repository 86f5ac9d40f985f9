"""Leases as values: who may have one, who has lost it, and whether a holder still lives. Every log goes by this."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import psutil

from everstate.errors import FencedError, LeaseHeldError, TakenOverError
from everstate.log.descriptions import Holder

if TYPE_CHECKING:
    from collections.abc import Callable

#: A holder on another machine counts as dead after so long without a heartbeat.
HEARTBEAT_TIMEOUT_MS: Final = 30_000
#: Clocks of two machines differ: one whose time is up is watched for so long, which is two signs of life and more.
WATCH_S: Final = 7.0
_LOOK_S: Final = 0.2
#: A start time is a number of ticks, or where that is not known derived from the clock.
_SAME_START_S: Final = 0.05
#: Names a start of a machine: two that were made from one image have one name, and may have all the rest in common.
_BOOT_FILE: Path = Path("/proc/sys/kernel/random/boot_id")
_PROCESSES_FILE: Path = Path("/proc/self/ns/pid")


@dataclass(frozen=True)
class Tenure:
    """What a log knows of a lease.

    Attributes:
        token: Of who had it last.
        holder: Who that is.
        heartbeat_ms: When that was last heard of.
        held: Whether it was not given back.
    """

    token: int
    holder: Holder
    heartbeat_ms: int
    held: bool = True


class Watch(NamedTuple):
    """What was seen of a lease before it is taken.

    Attributes:
        token: Of who had it then; 0 if nobody has had it yet.
        alive: The holder gave signs of life, whatever the clock says.
    """

    token: int = 0
    alive: bool = False


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
    """The machine since it was started, or the container: process numbers mean something only inside one."""
    try:
        boot = _BOOT_FILE.read_text(encoding="utf-8").strip()[:8]
        space = str(_PROCESSES_FILE.readlink()).strip("pid:[]")
    except OSError:
        return socket.gethostname()
    return f"{socket.gethostname()}/{boot}/{space}"


def runs_here(holder: Holder) -> bool:
    """Whether a process of this machine runs."""
    if holder.host != _host(os.getpid()):
        return False
    try:
        process = psutil.Process(holder.pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return abs(_started(holder.pid) - holder.started) < _SAME_START_S
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def lives(tenure: Tenure, asking: Holder, now_ms: int, runs: Callable[[Holder], bool] = runs_here) -> bool:
    """Whether a holder lives, as far as the one that asks can tell.

    Args:
        tenure: What the log knows.
        asking: Who asks.
        now_ms: The time where that is.
        runs: Tells of a process on the same machine whether it runs.
    """
    return runs(tenure.holder) if tenure.holder.host == asking.host else _in_time(tenure, now_ms)


def _in_time(tenure: Tenure, now_ms: int) -> bool:
    """Whether a sign of life is a recent one.

    One that lies ahead was given before a clock was set back, or by a machine whose clock is ahead: it says as little
    as an old one.
    """
    return abs(now_ms - tenure.heartbeat_ms) < HEARTBEAT_TIMEOUT_MS


def watched(look: Callable[[], Tenure | None], asking: Holder, now_ms: int) -> Watch:
    """Look whether a holder on another machine, whose time is up by this machine's clock, still gives signs of life.

    Args:
        look: What the log knows of the lease at the moment.
        asking: Who asks.
        now_ms: The time where that is.
    """
    first = tenure = look()
    deadline = time.monotonic() + WATCH_S
    while tenure is not None and first is not None and time.monotonic() < deadline:
        if not tenure.held or tenure.holder.host == asking.host:
            break
        if _in_time(tenure, now_ms):
            break  # no need to watch: it counts as alive
        if tenure.heartbeat_ms != first.heartbeat_ms:
            return Watch(tenure.token, alive=True)
        time.sleep(_LOOK_S)
        tenure = look()
    return Watch() if tenure is None else Watch(tenure.token)


def granted(
    name: str,
    tenure: Tenure | None,
    asking: Holder,
    now_ms: int,
    *,
    take_over: bool,
    watch: Watch | None = None,
    runs: Callable[[Holder], bool] = runs_here,
) -> Tenure:
    """The lease in new hands, with a token higher than any before.

    Args:
        name: Which lease.
        tenure: What the log knows of it.
        asking: Who gets it.
        now_ms: The time.
        take_over: Replace a holder that lives.
        watch: What was seen of it before; whoever has taken it since lives, also if the clocks of two machines differ.
        runs: Tells of a process on the same machine whether it runs.

    Raises:
        LeaseHeldError: If its holder lives and is not to be replaced.
    """
    alive = tenure is not None and watch is not None and (watch.alive or watch.token != tenure.token)
    if tenure is not None and tenure.held and not take_over and (alive or lives(tenure, asking, now_ms, runs)):
        age = max(0, now_ms - tenure.heartbeat_ms) / 1000
        raise LeaseHeldError(
            f"{name!r} is in use by {tenure.holder}, last heard from {age:.1f} s ago",
            hint="Stop that process first. If it runs elsewhere and is dead, its lease ends "
            f"{HEARTBEAT_TIMEOUT_MS // 1000} s after its last heartbeat.",
        )
    return Tenure(1 if tenure is None else tenure.token + 1, asking, now_ms)


def check(name: str, tenure: Tenure | None, token: int) -> Tenure:
    """Refuse a token that is not the current one.

    Raises:
        TakenOverError: If another process has taken the lease.
        FencedError: If it was given back, or nobody knows it.
    """
    if tenure is None:
        raise FencedError(
            f"nobody holds the lease {name!r}, so nothing may be published under it (token {token})",
            hint="Start the service again.",
        )
    if tenure.token != token:
        raise TakenOverError(name, tenure.holder.host, tenure.holder.pid, token=tenure.token, own=token)
    if not tenure.held:
        raise FencedError(f"the lease {name!r} was released (token {token})", hint="Start the service again.")
    return tenure


def renewed(name: str, tenure: Tenure | None, token: int, now_ms: int) -> Tenure:
    """The lease after a sign of life of the one that has this token.

    Raises:
        FencedError: If it is no longer held.
    """
    return replace(check(name, tenure, token), heartbeat_ms=now_ms)
