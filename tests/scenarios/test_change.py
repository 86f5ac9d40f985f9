"""A version takes the place of another: only what differs is written, and stale keys get tombstones.

Every scenario has three partitions, two shards, uneven data, and compares the topic with a run of the new version from
scratch.
"""

from __future__ import annotations

import json

import pytest

import everstate as es
from everstate import col
from everstate.generations.deploy.options import Wishes
from everstate.generations.generation import Status
from tests.scenarios.conftest import keys

pytestmark = pytest.mark.spark

ORDER = {"id": str, "customer": str, "amount": int, "status": str}
SOURCES = ("orders", "more-orders")


@pytest.fixture
def orders(world):
    """Uneven: half of all orders are one customer's."""
    for topic in SOURCES:
        world.topics.create(topic, partitions=3, compact=True)
    world.topics.send("orders", [(f"o{n}", order(n)) for n in range(60)])
    world.topics.send("more-orders", [(f"m{n}", order(n, "late")) for n in range(7)])
    return world


def order(n, suffix=""):
    customer = "big" if n % 2 else f"c{n % 5}{suffix}"
    return {"customer": customer, "amount": n * 3 % 41, "status": "void" if n % 6 == 0 else "paid"}


def totals(change=None, config=None, extra=False, **agg):
    """The service; `change` says what is different in the version that is deployed."""
    app = es.Service("shop", shards=2)
    rows = app.table("orders", key="id", schema=ORDER)
    if change == "schema":
        rows = rows.with_columns(amount=col("amount").cast(float))
    if change == "logic":
        rows = rows.filter(col("status") != "void")
    if change == "state":
        names = app.table("more-orders", key="id", schema=ORDER).group_by("customer").agg(late=es.count())
        summed = rows.group_by("customer").agg(total=col("amount").sum(), orders=es.count())
        summed.join(names, how="left").to("totals")
        return app
    if config is not None:
        rows = rows.filter(col("amount") > app.config("least", config))
    by = {"grouping": "status", "key": "amount"}.get(change, "customer")
    aggregates = {"total": col("amount").sum(), "orders": es.count()} | agg
    rows.group_by(by).agg(**aggregates).to("totals")
    return app


def check(world, make, written, *sources):
    """The topic is what a first run gives, and exactly what differs was written."""
    expected = world.from_scratch(make(), *(sources or ("orders", "more-orders")), topic="totals")
    assert world.table("totals") == expected
    assert max(keys(written["totals"]).values(), default=0) <= 1
    return expected


LONGER = [pytest.param(name, marks=pytest.mark.long) for name in ("schema", "state", "grouping", "key")]


@pytest.mark.parametrize("change", ["logic", *LONGER])
def test_changed_version_writes_exactly_what_differs(orders, change):
    orders.deploy(totals())
    before = orders.table("totals")
    written = orders.deploy(totals(change), approval="approve")
    after = check(orders, lambda: totals(change), written)
    # As JSON: 1 and 1.0 are not the same to whoever reads them with a schema.
    differs = {key for key in {*before, *after} if json.dumps(before.get(key)) != json.dumps(after.get(key))}
    assert keys(written["totals"]) == dict.fromkeys(differs, 1)
    assert {key for key, value in written["totals"] if value is None} == set(before) - set(after)
    # Less state again: the way back is a change like any other, or a rollback without a replay.
    written = orders.deploy(totals(), approval="approve")
    assert orders.table("totals") == before
    assert keys(written["totals"]) == dict.fromkeys(differs, 1)


@pytest.mark.long
def test_changed_configuration_is_a_change_of_its_outputs(orders):
    orders.deploy(totals(config=5))
    written = orders.deploy(totals(config=5))
    assert written["totals"] == []
    written = orders.deploy(totals(config=20), approval="approve")
    assert written["totals"]
    check(orders, lambda: totals(config=20), written)


def merged(both):
    app = es.Service("shop", shards=2)
    stream = app.stream("orders", key="id", schema=ORDER)
    if both:
        stream = stream.merge(app.stream("more-orders", key="id", schema=ORDER))
    stream.group_by("customer").agg(total=col("amount").sum()).to("totals")
    return app


@pytest.mark.long
def test_new_and_removed_source_topic_bring_and_take_their_keys(orders):
    orders.deploy(merged(both=False))
    before = orders.table("totals")
    written = orders.deploy(merged(both=True))
    after = check(orders, lambda: merged(both=True), written)
    assert set(after) > set(before)
    written = orders.deploy(merged(both=False), approval="approve")
    assert orders.table("totals") == before
    assert {key for key, value in written["totals"] if value is None} == set(after) - set(before)


@pytest.mark.long
def test_changed_source_key_recalculates(orders):
    def version(key):
        app = es.Service("shop", shards=2)
        schema = {name: kind for name, kind in ORDER.items() if name != "id"}
        app.stream("orders", key=key, schema=schema).group_by(key).agg(total=col("amount").sum()).to("totals")
        return app

    orders.deploy(version("order_id"))
    written = orders.deploy(version("customer"), approval="approve")
    assert len(written["totals.dlq"]) == 60  # the key column says something else than the record's key
    assert orders.table("totals") == {}


@pytest.mark.long
def test_unchanged_version_writes_nothing_also_when_it_is_recalculated(orders):
    def version():
        app = es.Service("shop", shards=2)
        rows = app.table("orders", key="id", schema=ORDER).with_columns(x=col("amount") / 7)
        rows.group_by("customer").agg(total=col("x").sum(), mean=col("x").mean(), spread=col("x").std()).to("totals")
        return app

    orders.deploy(version())
    assert orders.deploy(version())["totals"] == []
    written = orders.deploy(version(), wishes=Wishes(recalculate=("totals",)), recalculation_records=11)
    assert written["totals"] == []
    history = orders.generations("shop", "totals")
    assert history.active.number == 2
    assert [generation.status for generation in history.generations] == [Status.RETIRED, Status.ACTIVE]


@pytest.mark.long
def test_input_between_versions_is_neither_lost_nor_doubled(orders):
    orders.deploy(totals())
    orders.topics.send("orders", [("o1", None), ("o2", order(77)), ("x1", order(3))], ts=1000)
    written = orders.deploy(totals("logic"))
    check(orders, lambda: totals("logic"), written)
    orders.topics.send("orders", [("x1", None), ("x2", order(5))], ts=2000)
    written = orders.deploy(totals("logic"))
    check(orders, lambda: totals("logic"), written)


@pytest.mark.long
def test_shards_changed_publish_nothing(orders):
    orders.deploy(totals())
    assert orders.deploy(totals(), shards=3)["totals"] == []
    assert orders.generations("shop", "totals").active.shards == 3
    orders.topics.send("orders", [("x1", order(3))], ts=1000)
    orders.deploy(totals(), shards=3)
    check(orders, totals, {"totals": []})
