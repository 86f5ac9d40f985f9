"""The log's sense of time: a clock that was set wrong must neither delete records nor keep them for good.

Retention and the life of tombstones go by the clock. If it jumps ahead by more than a day, either the log has rested
or the clock is wrong; nobody can tell at that moment. So what is deleted by age goes by the time before the jump until
the clock has gone on for another day, which leaves a day to set it right.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

Clock = Callable[[], int]
#: A step that is too large to be believed at once, and how long it takes to be believed.
JUMP_MS: Final = 86_400_000
#: What has just been appended stays for so long even if its timestamps are old: consumers that follow must see it.
#: Kafka behaves alike, since it looks for old segments only so often.
GRACE_MS: Final = 300_000


def wall_clock() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Sight(NamedTuple):
    """What the log has seen of the clock.

    Attributes:
        seen_ms: At the last transaction.
        trusted_ms: The time before a jump that is not believed yet.
        held_until_ms: When it will be.
    """

    seen_ms: int
    trusted_ms: int
    held_until_ms: int

    def at(self, now_ms: int) -> Sight:
        """What it has seen when the clock says this.

        Example:
            >>> Sight(1000, 0, 0).at(1000 + 2 * JUMP_MS).age_clock(1000 + 2 * JUMP_MS)
            1000
        """
        if now_ms < self.seen_ms:
            # Clocks are corrected by milliseconds all the time: only one that is back where it was has been set right.
            doubted = now_ms < self.held_until_ms and now_ms - self.trusted_ms > JUMP_MS
            if not doubted:
                return Sight(now_ms, now_ms, now_ms)
            # The day to set it right begins again, by this clock: that of before may have been decades ahead.
            return Sight(now_ms, self.trusted_ms, min(self.held_until_ms, now_ms + JUMP_MS))
        if now_ms - self.seen_ms > JUMP_MS:
            before = self.seen_ms if now_ms >= self.held_until_ms else self.trusted_ms
            return Sight(now_ms, before, now_ms + JUMP_MS)
        return self._replace(seen_ms=now_ms)

    def age_clock(self, now_ms: int) -> int:
        """The time by which records and tombstones age."""
        seen = self.at(now_ms)
        return seen.trusted_ms if now_ms < seen.held_until_ms else now_ms
