"""State that is converted on Spark: what holds takes over without a replay, what does not is rebuilt."""

from __future__ import annotations

import time
from dataclasses import make_dataclass

import pytest
from polars import col

import everstate as es
from everstate.generations.generation import Status

pytestmark = pytest.mark.spark

ORDER = {"id": str, "customer": str, "amount": int}


def totals(*, halves=False, migrate=None):
    app = es.Service("shop", shards=2)
    orders = app.table("orders", key="id", schema=ORDER)

    def shaped(total):
        return {"total": total, "half": total / 2} if halves else {"total": total}

    orders.group_by("customer").aggregate(
        lambda: shaped(0),
        lambda aggregate, row: shaped(aggregate["total"] + row["amount"]),
        lambda aggregate, row: shaped(aggregate["total"] - row["amount"]),
        schema={"total": int, "half": float} if halves else {"total": int},
        migrate=migrate,
    ).to("totals", on_change="migrate")
    return app


def halved(old):
    return {"total": old["total"], "half": old["total"] / 2}


def order(number, customer, amount):
    return f"o{number}", {"customer": f"c{customer}", "amount": amount}


def first_version(world, service):
    """Deployed, and a second micro-batch: a generation migrates what it had before its last one."""
    world.topics.create("orders", partitions=2, compact=True)
    world.topics.send("orders", [order(n, n % 5, n) for n in range(40)])
    world.deploy(service)
    world.topics.send("orders", [order(3, 4, 100), ("o4", None), order(50, 9, 7)], ts=50)
    world.deploy(service)


def events(world, output="totals"):
    return [(event.generation, event.what) for event in world.generations("shop", output).audit]


@pytest.mark.long
def test_migrate_converts_an_aggregate_and_publishes_what_differs(world):
    first_version(world, totals())
    written = world.deploy(totals(halves=True, migrate=halved))["totals"]
    expected = {key: halved(value) for key, value in world.table("totals").items()}
    assert dict(written) == expected == world.from_scratch(totals(halves=True), "orders", topic="totals")
    assert len(written) == 6
    history = world.generations("shop", "totals")
    assert (history.active.number, history.building) == (2, None)
    assert (2, Status.DISCARDED) not in events(world)
    # It goes on, and back to the version before without a replay.
    world.topics.send("orders", [order(5, 9, 1), ("o50", None)], ts=70)
    assert world.deploy(totals(halves=True, migrate=halved))["totals"] != []
    assert world.table("totals") == world.from_scratch(totals(halves=True), "orders", topic="totals")
    world.deploy(totals())
    assert world.table("totals") == world.from_scratch(totals(), "orders", topic="totals")
    assert world.generations("shop", "totals").active.number == 1


@pytest.mark.long
def test_migrate_that_does_not_hold_is_discarded_and_rebuilt(world):
    first_version(world, totals())

    def wrong(old):
        return {"total": old["total"] + 1, "half": 0.0}

    world.deploy(totals(halves=True, migrate=wrong))
    assert world.table("totals") == world.from_scratch(totals(halves=True), "orders", topic="totals")
    assert world.generations("shop", "totals").active.number == 3
    why = [event.why for event in world.generations("shop", "totals").audit if event.what == Status.DISCARDED]
    assert "after the conversion, but {'total':" in why[0]
    assert "test_migrate.py:" in why[0]


@pytest.mark.long
def test_migrate_fills_new_columns_and_derives_the_table_anew(world):
    def version(schema, least):
        app = es.Service("shop", shards=2)
        app.table("orders", key="id", schema=schema).filter(col("amount") > least).to("totals", on_change="migrate")
        return app

    first_version(world, version(ORDER, 3))
    before = world.table("totals")
    # Nobody runs while keys change, and what they had before is compacted away.
    world.topics.send("orders", [order(n, 1, n + 15) for n in range(0, 40, 3)], ts=80)
    world.log.compact("orders")
    wider = make_dataclass("Order", [*ORDER.items(), ("note", str, "by hand"), ("tag", str | None, None)])
    written = world.deploy(version(wider, 20))["totals"]
    after = world.table("totals")
    assert {(value["note"], value["tag"]) for value in after.values()} == {("by hand", None)}
    assert after == world.from_scratch(version(wider, 20), "orders", topic="totals")
    assert dict(written) == {key: after.get(key) for key in {**before, **after} if before.get(key) != after.get(key)}
    assert len(dict(written)) == len(written)
    assert world.generations("shop", "totals").active.number == 2


@pytest.mark.long
def test_migrate_of_a_stream_neither_loses_nor_repeats_records(world):
    def version(number, migrate=None):
        def first(row, state):
            state.set("sum", state.get("sum", 0) + row["amount"])
            return {"sum": state.get("sum"), "version": 1}

        def second(row, state):
            state.set("total", state.get("total", 0) + row["amount"])
            return {"sum": state.get("total"), "version": 2}

        app = es.Service("shop", shards=2)
        orders = app.stream("orders", key="customer", schema={"amount": int})
        schema = {"sum": int, "version": int}
        orders.apply(first if number == 1 else second, stateful=True, schema=schema, migrate=migrate).to(
            "sums", on_change="migrate"
        )
        return app

    def send(ts):
        world.topics.send("orders", [(f"c{n % 3}", {"amount": n}) for n in range(9)], ts=ts)

    world.topics.create("orders")
    for ts in (0, 100):
        send(ts)
        world.deploy(version(1))
    send(200)
    migrated = version(2, migrate=lambda old: {"total": old["sum"]})
    written = world.deploy(migrated)["sums"]
    assert sorted((value["version"], value["sum"]) for key, value in written if key == "c1") == [
        (2, 25),
        (2, 29),
        (2, 36),
    ]
    assert len(written) == 9
    assert world.generations("shop", "sums").active.number == 2
    assert world.deploy(migrated)["sums"] == []


@pytest.mark.long
def test_migrate_while_the_version_before_goes_on_loses_nothing(world, spark):
    from everstate.engine.commands.runner import Runner

    first_version(world, totals())
    world.topics.send("orders", [order(n, n % 7, n) for n in range(60, 90)], ts=100)
    # It hosts the version before, whose checkpoint grows meanwhile, and has a query of its own on the clone.
    service = totals(halves=True, migrate=halved)
    runner = Runner(service, log=world.log.url, session=spark, show=False, cores=2)
    runner.start()
    try:
        world.topics.send("orders", [order(n, n % 3, 1) for n in range(60, 70)], ts=200)
        deadline = time.monotonic() + 240
        while world.generations("shop", "totals").active.number == 1 and time.monotonic() < deadline:
            time.sleep(0.2)
        world.topics.send("orders", [("o61", None), order(90, 11, 5)], ts=300)
        while world.table("totals").get("c11") != {"total": 5, "half": 2.5} and time.monotonic() < deadline:
            time.sleep(0.2)
    finally:
        runner.stop()
    expected = world.from_scratch(totals(halves=True), "orders", topic="totals")
    assert world.table("totals") == expected
    assert world.generations("shop", "totals").active.number == 2


@pytest.mark.long
def test_migrate_that_was_previewed_is_gone_on_with(world, spark):
    from everstate.engine.commands.preview import preview_service

    service = totals(halves=True, migrate=halved)
    first_version(world, totals())
    before = world.table("totals")
    plan = preview_service(service, log=world.log.url, session=spark, show=False, cores=2)
    action = plan.action("totals")
    assert (action.kind, action.resumes, plan.preview("totals").counts.changed) == ("migrate", 2, 6)
    assert world.table("totals") == before
    world.deploy(service)
    assert world.table("totals") == {key: halved(value) for key, value in before.items()}
    assert world.generations("shop", "totals").active.number == 2
    assert Status.DISCARDED not in [what for _, what in events(world)]
