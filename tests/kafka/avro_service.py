"""Payments in Avro to balances in Avro; the registry comes from the environment."""

import everstate as es
from everstate import col

app = es.Service("payments", shards=1)
payments = app.table("payments", key="id", schema={"id": str, "account": str, "amount": float}, format=es.Avro())
payments.group_by("account").agg(total=col("amount").sum()).to("balances", format=es.Avro())
