"""When it is worth it to compact a topic, whichever log it is in."""

from __future__ import annotations

from typing import Final

#: Compact when this share of the records came after the last compaction. Kafka's half would have a busy table compacted
#: after every other batch, at a third of what the batches themselves cost.
DIRTY_RATIO: Final = 0.75
#: A smaller topic is read in a moment as it is.
MIN_DIRTY_RECORDS: Final = 100_000


def worth_compacting(dirty: int, total: int) -> bool:
    """Whether so many records that came after the last compaction, of so many in all, are enough for another.

    Example:
        >>> worth_compacting(100_000, 120_000), worth_compacting(10, 12)
        (True, False)
    """
    return dirty >= MIN_DIRTY_RECORDS and dirty >= DIRTY_RATIO * total
