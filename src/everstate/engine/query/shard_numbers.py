"""How shards and stages are spread over Spark's tasks.

Spark decides by a hash of the grouping column which task runs a shard. Two shards that hash to one task would halve the
parallelism, so every shard gets a number that Spark sends to a task of its own.
"""

from __future__ import annotations

from functools import cache

_SEED = 42
_MASK = 0xFFFFFFFF


@cache
def shard_ids(shards: int) -> tuple[int, ...]:
    """A number for each shard: Spark sends the one at place p to shuffle partition p of so many.

    Example:
        >>> [spark_partition(number, 3) for number in shard_ids(3)]
        [0, 1, 2]
    """
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < shards:
        found.setdefault(spark_partition(candidate, shards), candidate)
        candidate += 1
    return tuple(found[place] for place in range(shards))


def stage_groups(depth: int, shards: int) -> list[tuple[int, ...]]:
    """Which stages share a stateful step: all with one shard, as nothing has to move, else each has its own.

    Example:
        >>> stage_groups(3, 1), stage_groups(3, 4)
        ([(1, 2, 3)], [(1,), (2,), (3,)])
    """
    stages = tuple(range(1, depth + 1))
    return [stages] if shards == 1 else [(stage,) for stage in stages]


def spark_partition(number: int, partitions: int) -> int:
    """The shuffle partition of an `int` column's value: Spark's Murmur3 of the value, as a remainder."""
    return _signed(murmur3(number)) % partitions


def murmur3(number: int) -> int:
    """Spark's hash of a 32-bit integer, as an unsigned number."""
    mixed = number & _MASK
    mixed = mixed * 0xCC9E2D51 & _MASK
    mixed = _rotated(mixed, 15) * 0x1B873593 & _MASK
    value = _rotated(_SEED ^ mixed, 13) * 5 + 0xE6546B64 & _MASK
    value ^= 4  # the length in bytes
    value = (value ^ value >> 16) * 0x85EBCA6B & _MASK
    value = (value ^ value >> 13) * 0xC2B2AE35 & _MASK
    return value ^ value >> 16


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value
