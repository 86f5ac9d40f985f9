"""A service whose version comes from the environment, for deployments beside a live process."""

import os

import everstate as es
from everstate import col

VERSION = int(os.environ.get("EVERSTATE_TEST_VERSION", "1"))
FAILS_AT = int(os.environ.get("EVERSTATE_TEST_FAILS_AT", "-1"))

app = es.Service("live", shards=2, on_error="fail" if FAILS_AT >= 0 else "dead-letter")
events = app.stream("events", key="account", schema={"id": int, "amount": int})


def valued(row: dict) -> dict:
    """Version 1 counts every account, a later one leaves some out."""
    if row["id"] == FAILS_AT:
        message = "this record is too much"
        raise ValueError(message)
    return {**row, "amount": row["amount"] * (1 if row["id"] % 3 else VERSION)}


rows = events.map(valued, schema={"id": int, "amount": int})
kept = rows.filter(col("account") != f"a{VERSION}")
kept.group_by("account").agg(total=col("amount").sum(), events=es.count()).to("totals")
