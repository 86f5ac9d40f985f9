"""Orders whose keys are 32-bit integers to the totals of customers, whose keys are such integers, too."""

import pyarrow as pa

import everstate as es
from everstate import col

app = es.Service("numbers", shards=2)
orders = app.table(
    "orders", key="id", key_format="number", schema={"id": pa.int32(), "customer": pa.int32(), "amount": int}
)
orders.group_by("customer", key_format="number").agg(total=col("amount").sum()).to("customers")
