"""The services that are measured."""

from __future__ import annotations

from typing import Final

import everstate as es
from bench.inputs import TOPIC
from everstate import col

TOTALS: Final = "totals"
ACCOUNTS: Final = "accounts"
COPY: Final = "accounts-copy"
SEVERAL: Final = "several"


def totals(url: str, name: str = TOTALS) -> es.Service:
    """Number and sum of the payments of each customer."""
    app = es.Service(name, log=url)
    payments = app.stream(TOPIC, schema={"customer": str, "amount": int})
    payments.group_by("customer").agg(n=es.count(), total=col("amount").sum()).to(name)
    return app


def edited(url: str, edit: int) -> es.Service:
    """The same with a bonus for one customer in so many: an edit that changes that share of the results.

    Args:
        url: The log.
        edit: How many; 0 for an edit that changes no result, -1 for the version before any edit.
    """
    app = es.Service(TOTALS, log=url)
    payments = app.stream(TOPIC, schema={"customer": str, "amount": int})
    if edit == 0:
        payments = payments.filter(col("amount") >= 0)
    if edit > 0:
        lucky = col("customer").str.slice(4).cast(int) % edit == 0
        payments = payments.with_columns(amount=es.when(lucky).then(col("amount") + edit).otherwise(col("amount")))
    payments.group_by("customer").agg(n=es.count(), total=col("amount").sum()).to(TOTALS)
    return app


def accounts(url: str) -> es.Service:
    """A table, kept as it is."""
    app = es.Service("accounts", log=url)
    app.table(ACCOUNTS, key="account", schema={"account": str, "owner": str, "balance": int}).to(COPY)
    return app


def several(url: str, outputs: int) -> es.Service:
    """As many outputs as asked for, each with other totals of the same payments."""
    app = es.Service(SEVERAL, log=url)
    payments = app.stream(TOPIC, schema={"customer": str, "amount": int})
    for number in range(outputs):
        counted = payments.filter(col("amount") >= number)
        counted.group_by("customer").agg(n=es.count(), total=col("amount").sum()).to(numbered(number))
    return app


def numbered(number: int) -> str:
    """The name of one output of `several`."""
    return f"totals-{number}"
