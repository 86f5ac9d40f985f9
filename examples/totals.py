"""Customer totals: the first service of the demo, in the version that it begins with."""

import everstate as es
from everstate import col

app = es.Service("totals")

orders = app.table(
    "orders",
    key="order_id",
    schema={"order_id": str, "customer": str, "amount": float, "status": str},
)

orders.filter(col("status") != "void").group_by("customer").agg(
    total=col("amount").sum(),
    orders=es.count(),
).to("customer-totals")
