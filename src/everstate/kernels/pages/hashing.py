"""Where a key lives: the stable hash of its bytes, and the shard that follows from it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from everstate.schema.partitioner import murmur2

__all__ = ["murmur2", "shard_of"]


def shard_of(hashes: npt.NDArray[np.uint32], shards: int) -> npt.NDArray[np.int32]:
    """The shard of every hash among so many.

    The high bits decide, by multiplication instead of remainder: pages are addressed by the low bits of the same hash,
    and a shard must not receive only keys that share them.

    Example:
        >>> shard_of(np.array([0, 2**31, 2**32 - 1], dtype=np.uint32), 4).tolist()
        [0, 2, 3]
    """
    if shards < 1:
        raise ValueError(f"an output has at least one shard, not {shards}")
    return ((hashes.astype(np.uint64) * np.uint64(shards)) >> np.uint64(32)).astype(np.int32)
