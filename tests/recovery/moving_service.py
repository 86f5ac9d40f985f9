"""A service whose state is converted from version to version; the function of every odd version is wrong."""

import os

import everstate as es

VERSION = int(os.environ.get("EVERSTATE_TEST_VERSION", "1"))

app = es.Service("moving", shards=2)
payments = app.stream("payments", key="account", schema={"id": int, "amount": int})


def add(total: int, row: dict) -> int:
    """Every version counts in another unit."""
    return total + row["amount"] * 10**VERSION


def converted(total: int) -> int:
    """From the unit of the version before."""
    return total * (10 if VERSION % 2 == 0 else 11)


payments.group_by("account").aggregate(lambda: 0, add, schema=int, migrate=converted).to(
    "balances", on_change="migrate"
)
