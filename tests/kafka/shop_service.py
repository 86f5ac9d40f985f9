"""A service whose version comes from the environment: version 2 leaves small orders out, so a key goes."""

import os

import everstate as es
from everstate import col

app = es.Service("customers", shards=2)
orders = app.table("orders", key="order_id", schema={"order_id": str, "customer": str, "amount": float})
if os.environ.get("EVERSTATE_TEST_VERSION") == "2":
    orders = orders.filter(col("amount") > 10)
orders.group_by("customer").agg(total=col("amount").sum(), orders=es.count()).to("customer-totals")
