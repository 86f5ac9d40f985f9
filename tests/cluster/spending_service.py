"""Two stages and a function of another module; version 2 leaves small orders out. A row may take its time."""

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from spending import level

import everstate as es
from everstate import col

PAUSE = float(os.environ.get("EVERSTATE_TEST_PAUSE", "0"))


def slow(row):
    time.sleep(PAUSE)


app = es.Service("spending")
orders = app.table("orders", key="order_id", schema={"order_id": str, "customer": str, "amount": float})
if os.environ.get("EVERSTATE_TEST_VERSION") == "2":
    orders = orders.filter(col("amount") > 10)
leveled = orders.map(level, schema={"customer": str, "amount": float, "large": bool})
if PAUSE:
    leveled = leveled.peek(slow)
totals = leveled.group_by("customer").agg(
    total=col("amount").sum(), orders=es.count(), large=col("large").cast(int).sum()
)
totals.to("totals").group_by("orders").agg(customers=es.count()).to("sizes")
