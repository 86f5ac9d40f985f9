"""What Kafka's cleaner may have done: it does not tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everstate.schema.topic_names import is_internal

if TYPE_CHECKING:
    from everstate.log.descriptions import Vector
    from everstate.log.kafka.topics import Topics


def tombstones_dropped(topics: Topics, positions: Vector, *, since_ms: int, now_ms: int) -> Vector:
    """Where a consumer at these positions may have missed deletions.

    A tombstone goes at the earliest `delete.retention.ms` after it was written, so who was at the end less long ago has
    seen all; who was away for longer, and finds records ahead, may not have.

    Args:
        topics: The topics.
        positions: Where the consumer goes on.
        since_ms: When it read up to there.
        now_ms: The time.
    """
    missed: Vector = {}
    names = [name for name, offsets in positions.items() if offsets and not is_internal(name)]
    if not names:
        return missed
    begins, ends = topics.begins(names), topics.ends(names)
    for name in names:
        ahead = {
            number: ends[name][number]
            for number, position in positions[name].items()
            # Who has read nothing yet keeps nothing that should have been deleted.
            if number in ends[name] and begins[name][number] < position < ends[name][number]
        }
        if ahead:
            config = topics.config(name)
            if config.compact and now_ms - since_ms > config.delete_retention_ms:
                missed[name] = ahead
    return missed
