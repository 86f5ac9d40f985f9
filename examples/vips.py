"""The demo's downstream service: customers who have ordered for a thousand or more, by another service's table."""

import everstate as es
from everstate import col

app = es.Service("vips")

totals = app.table("customer-totals", key="customer", schema={"customer": str, "total": float, "orders": int})

totals.filter(col("total") >= app.config("vip_from", 1000)).select("total").to("vips")
