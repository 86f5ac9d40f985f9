"""What all runs read: payments of customers as JSON, in a topic of the embedded log or in text files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from everstate.log import TopicConfig
from everstate.log.opening import open_log

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOPIC: Final = "payments"
#: One for each core of the machine that the targets were set on.
PARTITIONS: Final = 2
_START_MS: Final = 1_767_225_600_000


def payments(records: int, keys: int, *, seed: int) -> pl.DataFrame:
    """Payments of random customers as JSON texts, in the column `value`."""
    random = np.random.default_rng(seed)
    return texts(random.integers(0, keys, records), random.integers(0, 1_000, records))


def texts(customers: np.ndarray, amounts: np.ndarray) -> pl.DataFrame:
    """The JSON of given payments."""
    numbers = pl.DataFrame({"customer": customers, "amount": amounts}).cast(pl.String)
    parts = ('{"customer":"key-', pl.col("customer"), '","amount":', pl.col("amount"), "}")
    return numbers.select(
        pl.concat_str(*(pl.lit(part) if isinstance(part, str) else part for part in parts)).alias("value")
    )


def batches(count: int, records: int, keys: int) -> Iterator[pl.DataFrame]:
    """The batches of a throughput run; always the same."""
    return (payments(records, keys, seed=number) for number in range(count))


def append(url: str, lines: pl.DataFrame, *, batch: int = 0) -> None:
    """Add payments to the topic, evenly over its partitions."""
    log = open_log(url)
    log.create_topic(TOPIC, TopicConfig(partitions=PARTITIONS), exist_ok=True)
    turns = pl.int_range(pl.len(), dtype=pl.Int32) % PARTITIONS
    log.append(
        TOPIC,
        lines.select(
            pl.lit(None, pl.Binary).alias("key"),
            pl.col("value").cast(pl.Binary),
            pl.lit(_START_MS + 1_000 * batch, pl.Int64).alias("ts"),
            turns.alias("partition"),
        ),
    )
    log.close()


def write_files(folder: Path, lines: pl.DataFrame, *, batch: int) -> None:
    """The same payments as text files, as many a batch as the topic has partitions."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in range(PARTITIONS):
        path = folder / f"{batch:03d}-{part}.json"
        path.write_bytes(b"\n".join(lines["value"].gather_every(PARTITIONS, part).cast(pl.Binary)) + b"\n")
        # Spark reads files by their age.
        age = 1_767_225_600 + 10 * batch + part
        os.utime(path, (age, age))
