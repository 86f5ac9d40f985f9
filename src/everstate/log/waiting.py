"""Which partition the steps of an output wait for, from the stream times that its last commit has stored."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from everstate.log.descriptions import Vector

#: Partitions that are so much apart are not worth a word.
_APART_MS: Final = 60_000


@dataclass(frozen=True)
class Waiting:
    """A partition that holds time up.

    Attributes:
        topic: Its topic.
        partition: Its number.
        time_ms: The stream time that it has reached; None if no record of it had one.
        behind_ms: How far the furthest partition is ahead of it; None if it has no time.
    """

    topic: str
    partition: int
    time_ms: int | None
    behind_ms: int | None

    def __str__(self) -> str:
        place = f"partition {self.partition} of {self.topic}"
        if self.time_ms is None or self.behind_ms is None:
            return f"{place}, which has no time yet"
        at = datetime.fromtimestamp(self.time_ms / 1000, UTC)
        return f"{place}, which stands at {at:%Y-%m-%d %H:%M:%S}; the furthest is {self.behind_ms // 1000:,} s ahead"


def waits_for(times: Vector) -> Waiting | None:
    """The partition that is behind all others, if it is far behind, or has no time while another has.

    Args:
        times: As a commit stores them.

    Example:
        >>> str(waits_for({"orders": {0: 1_000_000, 1: -1}}))
        'partition 1 of orders, which has no time yet'
        >>> waits_for({"orders": {0: 1_000_000, 1: 999_000}}) is None
        True
    """
    found = sorted((time, topic, p) for topic, partitions in times.items() for p, time in partitions.items())
    if not found or found[-1][0] < 0:
        return None
    (least, topic, partition), highest = found[0], found[-1][0]
    if least < 0:
        return Waiting(topic, partition, None, None)
    return Waiting(topic, partition, least, highest - least) if highest - least >= _APART_MS else None
