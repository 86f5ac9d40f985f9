"""A service between two folders of files, for tests that kill it between the steps."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.sql.functions import udf

import everstate as es

FOLDER = Path(os.environ["EVERSTATE_TEST_FOLDER"])


def doubled(amount):
    return amount * 2


def read_orders(spark):
    lines = spark.readStream.schema("id string, customer string, amount long").json(str(FOLDER / "in"))
    # A function of this file, which workers cannot import.
    return lines.withColumn("amount", udf(doubled, "long")("amount"))


def write_totals(frame, batch_id):
    frame.write.mode("overwrite").json(str(FOLDER / "out" / str(batch_id)))


app = es.Service("between", shards=1)
orders = app.stream("orders", key="id", schema={"id": str, "customer": str, "amount": int}).from_spark(read_orders)
orders.group_by("customer").agg(total=es.col("amount").sum()).to("totals").to_spark(write_totals)
