"""The services that are measured."""

from __future__ import annotations

from typing import Final

import everstate as es
from bench.inputs import TOPIC
from everstate import col

TOTALS: Final = "totals"
ACCOUNTS: Final = "accounts"
COPY: Final = "accounts-copy"


def totals(url: str, name: str = TOTALS) -> es.Service:
    """Number and sum of the payments of each customer."""
    app = es.Service(name, log=url)
    payments = app.stream(TOPIC, schema={"customer": str, "amount": int})
    payments.group_by("customer").agg(n=es.count(), total=col("amount").sum()).to(name)
    return app


def accounts(url: str) -> es.Service:
    """A table, kept as it is."""
    app = es.Service("accounts", log=url)
    app.table(ACCOUNTS, key="account", schema={"account": str, "owner": str, "balance": int}).to(COPY)
    return app
