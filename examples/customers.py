"""Customer totals: how much each customer has ordered, kept right while orders change or are cancelled."""

import everstate as es
from everstate import col

app = es.Service("customers")

orders = app.table(
    "orders",
    key="order_id",
    schema={"order_id": str, "customer": str, "amount": float, "status": str},
)

totals = (
    orders.filter(col("status") != "void")
    .group_by("customer")
    .agg(total=col("amount").sum(), orders=es.count())
    .to("customer-totals")
)

totals.filter(col("total") > app.config("vip_from", 1000)).to("vips")
