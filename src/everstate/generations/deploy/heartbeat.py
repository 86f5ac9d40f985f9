"""Signs of life of a process that holds a lease, and the upkeep of its topics."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from everstate.errors import EverstateError, FencedError, TakenOverError
from everstate.log.leasing import HEARTBEAT_TIMEOUT_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from everstate.log.descriptions import Lease
    from everstate.log.protocol import Log

logger = logging.getLogger(__name__)

#: Signs of life between two looks at whether a topic is worth compacting.
_UPKEEP_EVERY = 5


class Heartbeat:
    """Says at regular intervals that this process lives, and looks after its topics.

    Args:
        log: The log.
        lease: The lease to keep.
        seconds: Between two signs of life.
        lost: Called once, from the heartbeat's thread, when another process has taken the lease.
        topics: The topics that the service reads and writes, tended when it is worth it: a source may have nobody else.
        tell: Called with every sign of life: says how the work goes.
    """

    def __init__(
        self,
        log: Log,
        lease: Lease,
        seconds: float,
        lost: Callable[[FencedError], None],
        topics: Sequence[str],
        tell: Callable[[Lease], None],
    ) -> None:
        self._log = log
        self._lease = lease
        self._seconds = seconds
        self._lost = lost
        self._topics = tuple(topics)
        self._tell = tell
        self._ended = threading.Event()
        self._heard = time.monotonic()
        self._beating = threading.Thread(target=self._beat, name="everstate-heartbeat", daemon=True)
        self._tending = threading.Thread(target=self._tend, name="everstate-upkeep", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._beating.start()
        self._tending.start()

    @property
    def silence(self) -> float:
        """Seconds since the last sign of life."""
        return time.monotonic() - self._heard

    def stop(self) -> None:
        """End, and wait until no thread uses the log any more."""
        self._ended.set()
        self._beating.join()
        self._tending.join()

    def _beat(self) -> None:
        while not self._ended.wait(self._seconds):
            try:
                self._log.heartbeat(self._lease)
                self._heard = time.monotonic()
                self._tell(self._lease)
            except FencedError as error:
                self._lost(as_lost(error, self._lease, self.silence))
                return
            except Exception as error:  # noqa: BLE001 - one that is missed does no harm; the commit checks the lease again
                logger.warning("A heartbeat failed and will be repeated: %s", error)

    def _tend(self) -> None:
        while not self._ended.wait(self._seconds * _UPKEEP_EVERY):
            for topic in self._topics:
                try:
                    if self._log.has_topic(topic):
                        self._log.maintain(topic)
                except (EverstateError, OSError) as error:
                    logger.warning("Topic %s could not be compacted and will be tried again: %s", topic, error)


def as_lost(error: FencedError, lease: Lease, silence: float) -> FencedError:
    """What is to be said of a lease that is gone.

    Nobody takes the lease of a process that lives without being told to; but one that another machine has not heard of
    for too long counts as dead there, and then nobody was told anything.

    Args:
        error: What the log says.
        lease: The lease.
        silence: Seconds since the last sign of life of this process.
    """
    elsewhere = isinstance(error, TakenOverError) and error.host != lease.holder.host
    if not elsewhere or silence < HEARTBEAT_TIMEOUT_MS / 1000:
        return error
    return FencedError(
        f"{error.message}: it had not heard from this process for {silence:.0f} s and took it for dead",
        hint="Nothing is lost, and none of the last batch was published. Find out what held this process up (a "
        "machine that was suspended, a log out of reach), then start it again with --standby.",
    )
