"""Numbered places at which a test may kill the process.

What must survive a crash is only known if the crash has been tried. Each place that separates two durable steps calls
`crash_point` with its name; with `EVERSTATE_CRASH=name` (or `name:3` for the third time) the process kills itself
there, as abruptly as a power cut would end it.

A simulation of several processes in one cannot do that. There, `intercepted` has a function called at every point that
is met; it may raise `Crash`, which no `except Exception` takes for an error that can be handled.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

from everstate.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VARIABLE: Final = "EVERSTATE_CRASH"

#: Every crash point with its number, in the order in which one micro-batch meets them.
CRASH_POINTS: Final[dict[str, int]] = {
    "batch.before_state": 1,
    "batch.after_state": 2,
    "log.stage.before_sync": 3,
    "log.stage.after_sync": 4,
    "sink.before_commit": 5,
    "log.commit.before_transaction": 6,
    "log.commit.inside_transaction": 7,
    "log.commit.after_transaction": 8,
    "sink.after_commit": 9,
    "log.append.before_transaction": 10,
    "log.append.inside_transaction": 11,
    "log.append.after_transaction": 12,
    "log.compact.before_swap": 13,
    "log.compact.inside_swap": 14,
    "log.compact.after_swap": 15,
    "log.delete.after_transaction": 16,
    "log.garbage.before_unlink": 17,
    "log.garbage.after_unlink": 18,
    "log.cutover.before_transaction": 19,
    "log.cutover.inside_transaction": 20,
    "log.cutover.after_transaction": 21,
    "deployment.before_takeover": 22,
    "deployment.after_takeover": 23,
    "build.round_ended": 24,
    "cutover.staged": 25,
    "registry.planned.before": 26,
    "registry.planned.after": 27,
    "registry.recalculating.before": 28,
    "registry.recalculating.after": 29,
    "registry.ready.before": 30,
    "registry.ready.after": 31,
    "registry.publishing.before": 32,
    "registry.publishing.after": 33,
    "registry.active.before": 34,
    "registry.active.after": 35,
    "registry.retired.before": 36,
    "registry.retired.after": 37,
    "registry.discarded.before": 38,
    "registry.discarded.after": 39,
    "registry.forgotten.before": 40,
    "registry.forgotten.after": 41,
    "generation.delete.topics_gone": 42,
    "generation.delete.state_gone": 43,
    "history.file.before_sync": 44,
    "history.file.after_sync": 45,
    "history.document.before": 46,
    "history.document.after": 47,
    "history.merge.before_unlink": 48,
    "history.merge.after_unlink": 49,
    "migration.before_clone": 50,
    "migration.after_clone": 51,
    "migration.after_commit": 52,
    "log.stage.after_note": 53,
    "log.create.inside_transaction": 54,
    "log.create.before_identity": 55,
    "log.create.after_identity": 56,
    "feed.before_commit": 57,
    "feed.after_commit": 58,
    "delivery.before_call": 59,
    "delivery.after_call": 60,
    "kafka.shares.before": 61,
    "kafka.share.inside_transaction": 62,
    "kafka.share.after_transaction": 63,
    "kafka.shares.after": 64,
}

Hook: TypeAlias = "Callable[[str], None]"

_hits: dict[str, int] = {}
_lock = threading.Lock()
_hooks: list[Hook] = []


class Crash(BaseException):
    """A process of a simulation has ended; what is above must not go on as if it lived."""


@contextmanager
def intercepted(hook: Hook) -> Iterator[None]:
    """Have a function called with the name of each crash point that any thread meets; what it raises goes on up."""
    _hooks.append(hook)
    try:
        yield
    finally:
        _hooks.remove(hook)


def crash_at(name: str, hit: int = 1) -> Hook:
    """A hook that raises `Crash` at a point, when it is met for the first time or a later one.

    Example:
        >>> with intercepted(crash_at("log.append.inside_transaction", hit=2)):
        ...     crash_point("log.append.inside_transaction")
        ...     crash_point("log.append.inside_transaction")
        Traceback (most recent call last):
        everstate.log.crash.Crash: log.append.inside_transaction

    Raises:
        ConfigurationError: If no such crash point is listed.
    """
    _check(name)
    left = hit

    def hook(met: str) -> None:
        nonlocal left
        left -= met == name
        if met == name and left == 0:
            raise Crash(name)

    return hook


def crash_point(name: str) -> None:
    """Kill this process if it was told to die here, or let a simulation end it.

    Raises:
        ConfigurationError: If no such crash point is listed, or the environment names one that is not.
    """
    _check(name)
    for hook in _hooks[:]:
        hook(name)
    wanted = os.environ.get(VARIABLE)
    if wanted is None:
        return
    target, hit = _parse(wanted)
    if target != name:
        return
    with _lock:
        _hits[name] = _hits.get(name, 0) + 1
        if _hits[name] != hit:
            return
    os.kill(os.getpid(), signal.SIGKILL)


def _check(name: str) -> None:
    if name not in CRASH_POINTS:
        raise ConfigurationError(
            f"unknown crash point {name!r}", hint=f"The crash points are: {', '.join(CRASH_POINTS)}."
        )


def _parse(wanted: str) -> tuple[str, int]:
    target, _, count = wanted.partition(":")
    if target not in CRASH_POINTS or not (count or "1").isdecimal():
        raise ConfigurationError(
            f"{VARIABLE}={wanted} names no crash point", hint=f"The crash points are: {', '.join(CRASH_POINTS)}."
        )
    return target, int(count or "1")
