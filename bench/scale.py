"""How large the measurements are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Sizes of all measurements.

    Attributes:
        name: What the report calls it.
        batches: Micro-batches of a throughput run; the first warms up and does not count.
        batch_records: Records of each.
        keys: Distinct keys of the throughput runs, few and many.
        rounds: How often each throughput run is repeated, in turn with the others.
        per_key_share: The run with one group a key has this share of the records and of the keys, so that as many
            records of a batch meet in a key.
        small_records: Records of a small batch.
        small_batches: Small batches that count, on each state and for each page size.
        small_keys: Distinct keys that small batches meet, few and many.
        page_sizes: Bytes of a page with which the page policy is compared.
        table_keys: Keys of the table of which nine in ten are deleted.
        settling: Small batches after which Spark has removed what the ones before needed; it keeps the files of 100
            and those of the last snapshot before them, which is taken every few batches.
        first_runs: How often the time to the first record is taken.
        single_records: Records that are sent one by one to a running service.
        outputs: How many outputs that service has, few and many.
        recalculated_batches: Batches of `batch_records` that an edited service has behind it.
        memory_records: Records of the smaller memory run; the larger has four times as many.
        memory_keys: Distinct keys of both.
    """

    name: str
    batches: int
    batch_records: int
    keys: tuple[int, int]
    rounds: int
    per_key_share: float
    small_records: int
    small_batches: int
    small_keys: tuple[int, int]
    page_sizes: tuple[int, ...]
    table_keys: int
    settling: int
    first_runs: int
    single_records: int
    outputs: tuple[int, int]
    recalculated_batches: int
    memory_records: int
    memory_keys: int


FULL: Final = Scale(
    name="full",
    batches=4,
    batch_records=1_000_000,
    keys=(100_000, 1_000_000),
    rounds=3,
    per_key_share=0.2,
    small_records=1_000,
    small_batches=30,
    small_keys=(50_000, 5_000_000),
    page_sizes=(2_048, 4_096, 8_192, 16_384, 32_768, 65_536),
    table_keys=1_000_000,
    settling=160,
    first_runs=3,
    single_records=30,
    outputs=(1, 6),
    recalculated_batches=5,
    memory_records=4_000_000,
    memory_keys=100_000,
)

#: Seconds a measurement: for development and for a test. Its figures say nothing.
QUICK: Final = Scale(
    name="quick",
    batches=3,
    batch_records=20_000,
    keys=(1_000, 10_000),
    rounds=1,
    per_key_share=0.05,
    small_records=100,
    small_batches=4,
    small_keys=(500, 5_000),
    page_sizes=(4_096, 32_768),
    table_keys=10_000,
    settling=2,
    first_runs=1,
    single_records=3,
    outputs=(1, 2),
    recalculated_batches=3,
    memory_records=20_000,
    memory_keys=1_000,
)
