"""A service whose version comes from the environment: the recovery tests deploy one after the other."""

import os

import everstate as es
from everstate import col

VERSION = int(os.environ.get("EVERSTATE_TEST_VERSION", "1"))

app = es.Service("changing", shards=2)
payments = app.stream("payments", key="account", schema={"id": int, "amount": int})


def kept(row: dict) -> bool:
    """Every version leaves out other accounts, so that keys come and go."""
    return int(row["account"][1:]) % 7 != VERSION


rows = payments.filter(kept)
rows.group_by("account").agg(total=col("amount").sum() + VERSION % 2, payments=es.count()).to("balances")
rows.filter(col("amount") % 2 == 0).select("id", version=es.lit(VERSION)).to("even")
