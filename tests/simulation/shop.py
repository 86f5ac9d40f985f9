"""A service in many versions, and a plain calculation of what each of them should have published."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import everstate as es
from everstate import col
from everstate.dsl.config import OVERRIDES

if TYPE_CHECKING:
    from collections.abc import Sequence

SERVICE = "shop"
TABLES = ("balances", "doubled", "moved")
OUTPUTS = (*TABLES, "even")


@dataclass(frozen=True)
class Version:
    """One version of the service.

    Attributes:
        logic: Which payments it leaves out, and in which unit it counts.
        outputs: What it declares; "doubled" reads "balances".
        least: A configuration value: smaller payments are no part of balances.
        shards: Into how many shards its outputs are divided.
    """

    logic: int
    outputs: tuple[str, ...] = OUTPUTS
    least: int = 0
    shards: int = 1


@cache
def service(version: Version) -> es.Service:
    """The service; one object for each version, since describing it takes longer than a micro-batch of it."""
    token = OVERRIDES.set({"least": version.least})
    try:
        return _service(version)
    finally:
        OVERRIDES.reset(token)


def _service(version: Version) -> es.Service:
    app = es.Service(SERVICE, shards=version.shards)
    rows = app.stream("payments", key="account", schema={"id": int, "amount": int})
    if "balances" in version.outputs:
        kept = rows.filter((col("id") % 5 != version.logic % 5) & (col("amount") >= app.config("least", 0)))
        kept.group_by("account").agg(total=col("amount").sum(), payments=es.count()).to("balances")
    if "doubled" in version.outputs:
        read = app.table("balances", key="account", schema={"total": int, "payments": int})
        read.select(twice=col("total") * 2).to("doubled")
    if "even" in version.outputs:
        rows.filter(col("amount") % 2 == 0).select("id", version=es.lit(version.logic)).to("even")
    if "moved" in version.outputs:
        _moved(rows, version.logic).to("moved", on_change="migrate")
    return app


def _moved(rows: es.Stream, logic: int) -> es.Table:
    unit = 10 ** (logic % 3)

    def add(total: int, row: dict) -> int:
        return total + row["amount"] * unit

    def moved(total: int) -> int:
        return total * 10  # right from one version to the next, but for every third one

    return rows.group_by("account").aggregate(lambda: 0, add, schema=int, migrate=moved)


def tables(version: Version, sent: Sequence[dict]) -> dict[str, dict]:
    """What a from-scratch run of a version over all payments gives; nothing for a table that it does not declare."""
    balances: dict[str, dict] = {}
    moved: dict[str, int] = {}
    for row in sent:
        account = row["account"]
        moved[account] = moved.get(account, 0) + row["amount"] * 10 ** (version.logic % 3)
        if row["id"] % 5 != version.logic % 5 and row["amount"] >= version.least:
            entry = balances.setdefault(account, {"total": 0, "payments": 0})
            entry["total"] += row["amount"]
            entry["payments"] += 1
    doubled = {account: {"twice": entry["total"] * 2} for account, entry in balances.items()}
    found = {"balances": balances, "doubled": doubled, "moved": moved}
    return {output: table if output in version.outputs else {} for output, table in found.items()}


def even(sent: Sequence[dict]) -> list[int]:
    """What the stream has once, whatever its versions were."""
    return [row["id"] for row in sent if row["amount"] % 2 == 0]
