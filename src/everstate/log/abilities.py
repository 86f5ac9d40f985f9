"""What only logs of a cluster can do: have batches sent by several, and be held back by somebody else's transaction."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

logger = logging.getLogger(__name__)

#: Transactions take moments: what stands still from one look to the next is worth a word.
LOOK_S: Final = 15.0


@runtime_checkable
class Spreading(Protocol):
    """A log that can have its batches sent by several."""

    def spread(self, publishers: int, run: Callable[[Sequence[Any]], Sequence[Any]]) -> None:
        """Have large batches sent by several publishers, each in one step of its own.

        Args:
            publishers: How many: partition p is sent by the one of number p mod so many.
            run: Is given what each of them sends, has `send` called for it by the same log in any process, and gives
                what that gave.
        """
        ...

    def send(self, share: Any) -> Any:
        """Send what one publisher sends, once, however often and wherever it is called."""
        ...


@runtime_checkable
class Holding(Protocol):
    """A log that knows what is held back."""

    def held_back(self, topics: Sequence[str]) -> dict[tuple[str, int], int]:
        """The partitions that have records which cannot be read yet, each with the offset at which it stands."""
        ...


class HeldBack:
    """Says where a source stands still because a transaction does not end.

    Args:
        log: The log.
        topics: The sources.
    """

    def __init__(self, log: object, topics: Sequence[str]) -> None:
        self._log = log if isinstance(log, Holding) else None
        self._topics = topics
        self._looked: float | None = None
        self._standing: dict[tuple[str, int], int] = {}
        self._told: dict[tuple[str, int], int] = {}

    def look(self, now_s: float) -> None:
        """Look, if it is time to; what is said is said once."""
        if self._log is None or (self._looked is not None and now_s < self._looked + LOOK_S):
            return
        self._looked = now_s
        found = self._log.held_back(self._topics)
        for place, offset in sorted(found.items()):
            if self._standing.get(place) == offset and self._told.get(place) != offset:
                self._told[place] = offset
                logger.warning(
                    "Topic %s, partition %d: an open transaction of another program holds back everything from offset "
                    "%d on. It goes on when that ends; look for it: "
                    "kafka-transactions.sh --bootstrap-server HOST:PORT find-hanging",
                    *place,
                    offset,
                )
        self._standing = found
