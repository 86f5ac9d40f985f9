"""The two leases of a service: that of publishing, and that of building new generations."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Final

from everstate.errors import FencedError, LeaseHeldError
from everstate.generations.deploy.heartbeat import Heartbeat, as_lost
from everstate.generations.generation import build_lease
from everstate.generations.report import publish
from everstate.generations.state.reached import ReachedNotes
from everstate.log.crash import crash_point

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from everstate.generations.report import Reporter
    from everstate.generations.state.archiving import Archiving
    from everstate.log.descriptions import Holder, Lease
    from everstate.log.protocol import Log

logger = logging.getLogger(__name__)

#: How long a process that was replaced gets to stop its queries before the new one starts on their checkpoints. One
#: that does not stop (it was suspended) can do no harm: its commits are refused.
_FAREWELL_S: Final = 30.0
_LOOK_S: Final = 0.1


class Leases:
    """Takes, keeps and gives back the leases of a service.

    Args:
        log: The log.
        service: The service's name.
        seconds: Between two signs of life; 0 for none, where nobody could notice their absence.
        lost: Called when another process has taken one of them.
        topics: Output topics that are looked after while publishing.
        archiving: Makes, from the lease of publishing, what archives sources while it is held; None for nothing.
        farewell: How long a process that was replaced gets to end.
        stopping: Set when this process has to stop, also while it waits for another one.
    """

    def __init__(
        self,
        log: Log,
        service: str,
        seconds: float,
        lost: Callable[[FencedError], None],
        topics: Sequence[str],
        archiving: Callable[[Lease], Archiving] | None = None,
        farewell: float = _FAREWELL_S,
        stopping: threading.Event | None = None,
    ) -> None:
        self._log = log
        self._service = service
        self._seconds = seconds
        self._lost = lost
        self._topics = tuple(topics)
        self._archiving = archiving
        self._farewell = farewell
        self._stopping = stopping or threading.Event()
        self._held: dict[str, tuple[Lease, Heartbeat | None]] = {}
        self._archives: Archiving | None = None
        self._reporter: Reporter | None = None
        self._reached = ReachedNotes(log, service)

    def report_with(self, reporter: Reporter) -> None:
        """From now on, signs of life say how the work goes."""
        self._reporter = reporter

    def _tell(self, lease: Lease) -> None:
        if self._reporter is not None:
            building = lease.name != self._service
            publish(self._log, self._service, lease, self._reporter.report(building=building))
            if not building:
                self._reporter.note_reached(self._reached, lease)

    def publishes(self) -> bool:
        """Whether this process may publish."""
        return self._service in self._held

    def publishing(self) -> Lease:
        """The lease of publishing.

        Raises:
            FencedError: If it is not held.
        """
        return self._lease(self._service)

    def building(self) -> Lease:
        """The lease of building.

        Raises:
            FencedError: If it is not held.
        """
        return self._lease(build_lease(self._service))

    def taken(self) -> FencedError | None:
        """What is to be said if another process has taken one of them; None if nobody has."""
        for lease, heartbeat in self._held.values():
            try:
                self._log.heartbeat(lease)
            except FencedError as error:
                return as_lost(error, lease, heartbeat.silence if heartbeat is not None else 0.0)
        return None

    def take_publishing(self, *, take_over: bool = False, standby: bool = False) -> None:
        """Take the lease of publishing.

        Args:
            take_over: Replace a live process, and wait until it has stopped.
            standby: Wait until the live process has ended.

        Raises:
            LeaseHeldError: If another process lives and is not to be replaced.
            KeyboardInterrupt: If this process has to stop while it waits.
        """
        while True:
            try:
                self._take(self._service, self._topics)
            except LeaseHeldError:
                if take_over:
                    break
                if not standby:
                    raise
                if self._stopping.wait(_LOOK_S * 10):
                    raise KeyboardInterrupt from None
            else:
                return
        holder = self._log.holder(self._service)
        crash_point("deployment.before_takeover")
        self._take(self._service, self._topics, take_over=True)
        crash_point("deployment.after_takeover")
        self._gone(holder)

    def _gone(self, holder: Holder | None) -> bool:
        """Wait until a process that was replaced has ended; False if it does not."""
        deadline = time.monotonic() + self._farewell
        while holder is not None and self._log.lives(holder):
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_S)
        return True

    def take_building(self) -> None:
        """Take the lease of building.

        Raises:
            LeaseHeldError: If another process builds.
        """
        self._take(build_lease(self._service), ())

    def take_building_over(self) -> bool:
        """Take the lease of building from a live process; says whether that process is still there afterwards."""
        holder = self._log.holder(build_lease(self._service))
        self._take(build_lease(self._service), (), take_over=True)
        return not self._gone(holder)

    def give_building_back(self) -> None:
        """Nothing is being built any more."""
        self._release(build_lease(self._service))

    def release(self) -> None:
        """Give everything back."""
        for name in list(self._held):
            self._release(name)

    def _lease(self, name: str) -> Lease:
        if name not in self._held:
            raise FencedError(f"this process does not hold the lease {name!r}", hint="Start the service again.")
        return self._held[name][0]

    def _take(self, name: str, topics: Sequence[str], *, take_over: bool = False) -> None:
        lease = self._log.acquire(name, take_over=take_over)
        heartbeat = (
            Heartbeat(self._log, lease, self._seconds, self._lost, topics, self._tell) if self._seconds else None
        )
        self._held[name] = (lease, heartbeat)
        if heartbeat is not None:
            heartbeat.start()
        if name == self._service and self._archiving is not None:
            self._archives = self._archiving(lease)
            self._archives.start()

    def _release(self, name: str) -> None:
        lease, heartbeat = self._held.pop(name, (None, None))
        if lease is not None:
            if name == self._service and self._archives is not None:
                self._archives.stop()
                self._archives = None
            if heartbeat is not None:
                heartbeat.stop()
            self._log.release(lease)
