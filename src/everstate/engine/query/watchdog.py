"""Notices a query that lives but does nothing.

Spark takes a query for active as long as nobody has noted its end. A thread of it that died of an error, such as a full
disk while it reported another error, never notes that; and a task may wait for an answer that nobody will give. So two
things are looked at: whether the query's thread is there, and whether anything moves while it is in a batch.

A long batch is no stall: a slow function uses the processor, and a large state is read from disk. Only when no process
of the service does either for a long time, and nothing of the query has changed, nothing will come.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable

#: Between two looks.
LOOK_S: Final = 2.0
#: What processes use that only wait: less than these shares of a processor, and fewer bytes a second.
_IDLE_WORKERS: Final = 0.01
_IDLE_JAVA: Final = 0.1
_IDLE_BYTES: Final = 50_000


@dataclass(frozen=True)
class Work:
    """What the processes of a service have used so far.

    Attributes:
        workers: Processor seconds of Python's workers.
        java: Processor seconds of Java.
        transferred: Bytes that they have read or written.
    """

    workers: float = 0.0
    java: float = 0.0
    transferred: float = 0.0

    def busy_since(self, earlier: Work, seconds: float) -> bool:
        """Whether they did something in the time since another look.

        Example:
            >>> Work(10.0, 5.0).busy_since(Work(4.0, 5.0), 10.0), Work(4.01, 5.1).busy_since(Work(4.0, 5.0), 10.0)
            (True, False)
        """
        return (
            self.workers < earlier.workers  # some have ended and others were started
            or self.workers - earlier.workers > _IDLE_WORKERS * seconds
            or self.java - earlier.java > _IDLE_JAVA * seconds
            or self.transferred - earlier.transferred > _IDLE_BYTES * seconds
        )


class Watchdog:
    """Watches one query.

    Args:
        patience: Seconds without any sign of work after which a batch is given up; 0 for never.
        work: What the processes of the service have used.
        clock: Gives seconds.
    """

    def __init__(self, patience: float, work: Callable[[], Work], clock: Callable[[], float] = time.monotonic) -> None:
        self._patience = patience
        self._work = work
        self._clock = clock
        self._sign: object = None
        self._moved = self._measured = clock()
        self._used = Work()

    def stalled(self, sign: object, *, in_batch: bool) -> float | None:
        """For how many seconds nothing has moved, if that is longer than it may be.

        Args:
            sign: Whatever changes as the query gets on.
            in_batch: It has something to do; a query that waits for records may wait for ever.
        """
        now = self._clock()
        if not self._patience:
            return None
        if sign != self._sign or not in_batch:
            self._sign, self._moved = sign, now
        # Processes are measured now and then: a short look would take a moment's pause for idleness.
        if now - self._measured >= min(10.0, self._patience / 4):
            used = self._work()
            if used.busy_since(self._used, now - self._measured):
                self._moved = now
            self._used, self._measured = used, now
        still = now - self._moved
        return still if still > self._patience else None


def thread_lives(query: Any) -> bool:
    """Whether the Java thread of a streaming query is there; True if that cannot be told."""
    with contextlib.suppress(Exception):
        return bool(query._jsq.streamingQuery().queryExecutionThread().isAlive())  # noqa: SLF001 - not in Spark's API
    return True


def task_signs(context: Any, clock: Callable[[], float] = time.monotonic) -> tuple[object, ...]:
    """What changes while tasks of this application run, wherever that is.

    A task that runs counts as work for as long as it does: what a function of it does on another machine cannot be seen
    from here, and Spark itself notices a machine that is gone.
    """
    tracker = context.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    known = [stage for stage in stages if stage is not None]
    running = sum(stage.numActiveTasks for stage in known)
    return (sum(stage.numCompletedTasks for stage in known), running, clock() if running else 0.0)


def work_of(java: int | None) -> Work:
    """What a Java process and its descendants, which are Python's, have used."""
    workers = own = transferred = 0.0
    with contextlib.suppress(psutil.Error):
        parent = psutil.Process(java)
        for process in (parent, *parent.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                used = times.user + times.system
                own, workers = (used, workers) if process.pid == parent.pid else (own, workers + used)
                if hasattr(process, "io_counters"):  # not on macOS
                    counters = process.io_counters()
                    transferred += counters.read_bytes + counters.write_bytes
    return Work(workers, own, transferred)
