"""State that is migrated twice: what is cloned must be what the active generation made of it."""

from __future__ import annotations

from dataclasses import replace

import everstate as es
from everstate.generations.in_process.executor import InProcessExecutor
from everstate.testing import deployment


class EarlierExecutor(InProcessExecutor):
    """Clones as Spark does: a batch has to be run again, so the clone begins one batch before the last."""

    def clone(self, output, source, target):
        found = super().clone(output, source, target)
        return replace(found, batch_id=found.batch_id - 1)


def version(unit):
    app = es.Service("shop")
    orders = app.stream("orders", key="customer", schema={"amount": int})
    totals = orders.group_by("customer").aggregate(
        lambda: 0, lambda total, row: total + row["amount"] * unit, schema=int, migrate=lambda total: total * 10
    )
    totals.to("out", on_change="migrate")
    return app


def test_migration_of_state_that_was_not_converted_yet_where_the_clone_begins_is_refused(monkeypatch):
    driver = es.testing.Driver(version(1))
    for amount in (1, 2, 3):
        driver.send("orders", "ada", {"amount": amount})
    assert driver.upgrade(version(10)).rebuilt == {}
    monkeypatch.setattr(deployment, "InProcessExecutor", EarlierExecutor)
    rebuilt = driver.upgrade(version(100)).rebuilt["out"]
    assert "has completed no micro-batch since its own state was migrated" in rebuilt
    assert driver.table("out") == {"ada": 600}
