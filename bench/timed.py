"""What is measured where time decides: payments with a time of their own, their windows, and what must come out.

Times go onward from batch to batch, and each is late by less than the grace period, so every record counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

import everstate as es
from bench.inputs import PARTITIONS
from everstate import col

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Of event time, in milliseconds: what a batch covers, how late a record may be, and the sizes of windows.
SPAN_MS: Final = 30_000
GRACE_MS: Final = 5_000
SIZE_MS: Final = 60_000
ADVANCE_MS: Final = 12_000
GAP_MS: Final = 5_000
WITHIN_MS: Final = 2_000
START_MS: Final = 1_767_225_600_000

KINDS: Final = ("tumbling", "hopping", "session", "join")
PAYMENTS, REFUNDS = "payments", "refunds"
#: The topics of a run, and the column that each has beside customer and time.
TOPICS: Final = {PAYMENTS: "amount", REFUNDS: "refund"}


@dataclass(frozen=True)
class Load:
    """What is read.

    Attributes:
        kind: One of `KINDS`.
        keys: Customers.
        records: Of a batch, over all topics.
        batches: How many.
    """

    kind: str
    keys: int
    records: int
    batches: int

    @property
    def topics(self) -> list[str]:
        """The topics that are read."""
        return list(TOPICS) if self.kind == "join" else [PAYMENTS]

    def rows(self, topic: str) -> Iterator[pl.DataFrame]:
        """The records of each batch: `customer`, `amount`, `at`; always the same."""
        for number in range(self.batches):
            random = np.random.default_rng([number, list(TOPICS).index(topic)])
            count = self.records // len(self.topics)
            onward = np.sort(random.integers(0, SPAN_MS, count))
            at = START_MS + number * SPAN_MS + onward - random.integers(0, GRACE_MS, count)
            customers, amounts = random.integers(0, self.keys, count), random.integers(0, 1_000, count)
            yield pl.DataFrame({"customer": customers, "amount": amounts, "at": at})

    def all(self, topic: str) -> pl.DataFrame:
        """The records of all batches."""
        return pl.concat(self.rows(topic))

    @property
    def reached(self) -> int:
        """The time that every partition has reached in the end, which closes sessions."""
        rows = self.all(PAYMENTS).group_by(pl.col("customer") % PARTITIONS).agg(pl.col("at").max())
        return int(rows["at"].min())  # type: ignore[arg-type]  # times


def lines(topic: str, rows: pl.DataFrame) -> pl.DataFrame:
    """Records as JSON, in the column `value`, with their `key` and `partition`; neighbours go to different ones."""
    numbers = rows.cast(pl.String)
    key = pl.lit("key-") + pl.col("customer")
    parts = ('{"customer":"', key, f'","{TOPICS[topic]}":', pl.col("amount"), ',"at":', pl.col("at"), "}")
    texts = pl.concat_str(*(pl.lit(part) if isinstance(part, str) else part for part in parts))
    made = numbers.select(key.cast(pl.Binary).alias("key"), texts.alias("value"))
    return made.with_columns(rows["at"].alias("ts"), (rows["customer"] % PARTITIONS).cast(pl.Int32).alias("partition"))


def service(kind: str, url: str, name: str) -> es.Service:
    """The service that is measured."""
    app = es.Service(name, log=url)
    payments = app.stream(PAYMENTS, key="customer", schema={"amount": int, "at": int}, time="at")
    grace = f"{GRACE_MS}ms"
    if kind == "join":
        refunds = app.stream(REFUNDS, key="customer", schema={"refund": int, "at": int}, time="at")
        payments.join(refunds.select("refund"), within=f"{WITHIN_MS}ms", grace=grace).to(name)
        return app
    grouped = payments.group_by("customer")
    if kind == "session":
        windowed = grouped.window(es.session(f"{GAP_MS}ms", grace=grace), emit="final")
    elif kind == "hopping":
        windowed = grouped.window(es.hopping(f"{SIZE_MS}ms", f"{ADVANCE_MS}ms", grace=grace))
    else:
        windowed = grouped.window(es.tumbling(f"{SIZE_MS}ms", grace=grace))
    windowed.agg(n=es.count(), total=col("amount").sum()).to(name)
    return app


def expected(load: Load) -> pl.DataFrame:
    """What all records come to, each row with its `customer`: sums by `start` and `end`, or for a join the pairs."""
    rows = load.all(PAYMENTS)
    if load.kind == "join":
        return _pairs(rows, load.all(REFUNDS)).select("customer", "amount", "refund")
    if load.kind == "session":
        return _sessions(rows)
    step = ADVANCE_MS if load.kind == "hopping" else SIZE_MS
    begins = pl.int_ranges((pl.col("at") - SIZE_MS) // step * step + step, pl.col("at") + 1, step)
    summed = rows.with_columns(start=begins).explode("start").group_by("customer", "start").agg(**_SUMS)
    return summed.select("customer", "start", (pl.col("start") + SIZE_MS).alias("end"), "n", "total")


_SUMS: Final = {"n": pl.len().cast(pl.Int64), "total": pl.col("amount").sum()}


def _sessions(rows: pl.DataFrame) -> pl.DataFrame:
    rows = rows.sort("customer", "at")
    begins = (pl.col("at").diff() > GAP_MS) | (pl.col("customer") != pl.col("customer").shift())
    runs = rows.with_columns(run=begins.fill_null(value=True).cum_sum())
    bounds = {"start": pl.col("at").min(), "end": pl.col("at").max()}
    return runs.group_by("run").agg(pl.col("customer").first(), **bounds, **_SUMS).drop("run")


def _pairs(left: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame:
    near = [pl.col("at") // WITHIN_MS + step for step in (-1, 0, 1)]
    spread = right.with_columns(place=pl.concat_list(near)).explode("place")
    both = left.with_columns(place=pl.col("at") // WITHIN_MS).join(spread, on=["customer", "place"], how="inner")
    return both.filter((pl.col("at") - pl.col("at_right")).abs() <= WITHIN_MS).rename({"amount_right": "refund"})
