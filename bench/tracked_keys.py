"""How much state the tombstone service keeps a key: `python -m bench.tracked_keys`."""

from __future__ import annotations

import random
import time

import polars as pl

from everstate.generations.removals import removal_service
from everstate.kernels.pages.page_store import MemoryPages
from everstate.kernels.pipeline import ShardStages, ingested, run_stages
from everstate.log.records import SCHEMA

_DAY_MS = 86_400_000
_START_MS = 1_777_000_000_000


def measure(keys: int, length: int, *, batches: int = 10) -> tuple[float, float]:
    """Bytes of state a key, and keys taken in a second.

    Args:
        keys: How many random keys.
        length: How many bytes each of them has.
        batches: In so many micro-batches, over six days.
    """
    (unit,) = removal_service("topic", "7d").units()
    pages, chosen = MemoryPages(), random.Random(1)  # noqa: S311 - nothing is secret here
    stages = ShardStages(unit, pages, policy="skip")
    spent, size = 0.0, keys // batches
    for batch in range(batches):
        rows = {
            "key": [chosen.randbytes(length // 2).hex().encode() for _ in range(size)],
            "value": [b""] * size,
            "ts": [_START_MS + chosen.randrange(6 * _DAY_MS) for _ in range(size)],
            "headers": [None] * size,
            "offset": list(range(batch * size, (batch + 1) * size)),
            "partition": [0] * size,
        }
        piece = ("topic", 0, pl.DataFrame(rows, schema=SCHEMA))
        began = time.perf_counter()
        run_stages([stages], range(1, unit.depth + 1), ingested(unit, [piece], "skip"))
        spent += time.perf_counter() - began
    return pages.size / (batches * size), batches * size / spent


def main() -> None:
    """Print a line for each case."""
    for keys, length in ((100_000, 16), (1_000_000, 16), (1_000_000, 36)):
        size, rate = measure(keys, length)
        print(f"{keys:,} keys of {length} bytes: {size:.0f} bytes of state a key, {rate:,.0f} keys a second")


if __name__ == "__main__":
    main()
