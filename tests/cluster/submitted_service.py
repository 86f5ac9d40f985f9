"""A script for spark-submit: it describes a service and runs it until its source is drained."""

import sys

import everstate as es
from everstate import col

app = es.Service("submitted")
orders = app.table("orders", key="order_id", schema={"order_id": str, "customer": str, "amount": float})
orders.group_by("customer").agg(total=col("amount").sum(), orders=es.count()).to("totals")

if __name__ == "__main__":
    app.run(once=True, log=sys.argv[1], state_dir=sys.argv[2])
