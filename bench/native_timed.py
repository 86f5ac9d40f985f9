"""Spark's own windows and joins with a watermark, on JSON in text files; its results are JSON in text files, too.

Settings are those of `native.py`.
"""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom

from bench import native, timed
from bench.inputs import PARTITIONS
from everstate.engine.jvm import session as engine_session
from everstate.generations.deploy.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import Column

_OUT: Final = "out"


def run(load: timed.Load, folder: str, work: str, settings: dict[str, Any]) -> list[float]:
    """Process all files, a batch of them at a time; returns the seconds of all micro-batches but the first."""
    session = native.session_of(Settings.resolve({**settings, "full_compiler": True}, environment={}))
    ends: list[float] = []

    def write(batch: DataFrame, number: int) -> None:
        texts = batch.select(F.to_json(F.struct(*batch.columns)).alias("value"))
        texts.write.text(str(Path(work) / _OUT / f"{number:03d}"))
        ends.append(time.time())

    query = (
        _results(load, session, folder)
        .writeStream.foreachBatch(write)
        .outputMode("append" if load.kind in ("session", "join") else "update")
        .option("checkpointLocation", str(Path(work) / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    engine_session.stop_session(session)
    return [later - earlier for earlier, later in pairwise(ends)]


def results(load: timed.Load, work: str) -> pl.DataFrame:
    """What it has written, as `timed.expected` has it; of a window that was written again the last."""
    found = pl.scan_ndjson(Path(work) / _OUT / "*" / "*.txt").collect()
    found = found.with_columns(pl.col("customer").str.slice(4).cast(pl.Int64))
    if load.kind == "join":
        return found
    # Numbers of records and sums of amounts only grow.
    return found.group_by("customer", "start", "end").agg(pl.col("n").max(), pl.col("total").max())


def _read(session: SparkSession, folder: str, topic: str) -> DataFrame:
    lines = session.readStream.option("maxFilesPerTrigger", PARTITIONS).text(str(Path(folder) / topic))
    schema = f"customer string, {timed.TOPICS[topic]} long, at long"
    rows = lines.select(F.from_json("value", schema).alias("row")).select("row.*")
    rows = rows.withColumn("at", F.timestamp_millis("at"))
    return rows.withWatermark("at", f"{timed.GRACE_MS} milliseconds")


def _results(load: timed.Load, session: SparkSession, folder: str) -> DataFrame:
    payments = _read(session, folder, timed.PAYMENTS)
    if load.kind == "join":
        refunds = _read(session, folder, timed.REFUNDS)
        refunds = refunds.select(F.col("customer").alias("whose"), "refund", F.col("at").alias("refunded"))
        near = F.expr(f"interval {timed.WITHIN_MS} milliseconds")
        between = F.col("refunded").between(F.col("at") - near, F.col("at") + near)
        return payments.join(refunds, (F.col("customer") == F.col("whose")) & between).select(
            "customer", "amount", "refund"
        )
    summed = payments.groupBy("customer", _window(load.kind).alias("window")).agg(
        F.count("*").alias("n"), F.sum("amount").alias("total")
    )
    # The end of Spark's sessions is a gap after their last row.
    gap = timed.GAP_MS if load.kind == "session" else 0
    end = F.unix_millis("window.end") - gap
    return summed.select("customer", F.unix_millis("window.start").alias("start"), end.alias("end"), "n", "total")


def _window(kind: str) -> Column:
    size, advance, gap = (f"{ms} milliseconds" for ms in (timed.SIZE_MS, timed.ADVANCE_MS, timed.GAP_MS))
    if kind == "session":
        return F.session_window("at", gap)
    return F.window("at", size, advance) if kind == "hopping" else F.window("at", size)
