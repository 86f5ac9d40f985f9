"""A change that the fingerprint does not see is found by what it calculates."""

from __future__ import annotations

import random
import subprocess
from decimal import Decimal

import pytest
from polars import col

import everstate as es
from everstate.fingerprints.prints import UnitPrint
from everstate.plan.differences import Category
from everstate.plan.text import plain, text

pytestmark = pytest.mark.slow

ORDER = {"id": str, "customer": str, "amount": int}
OUTSIDE = {"value": 1}


@es.declare(version="1")
def instant(row):
    """Something that differs each time and was declared as if it did not."""
    told = subprocess.run(["date", "+%N"], check=True, capture_output=True, text=True)
    return {"n": float(told.stdout)}


def add(total, row):
    return {"total": total["total"] + row["amount"] * OUTSIDE["value"]}


def remove(total, row):
    return {"total": total["total"] - row["amount"] * OUTSIDE["value"]}


def counted(row, state):
    state.set("n", state.get("n", 0) + OUTSIDE["value"])
    return {"n": state.get("n")}


def shaped(row):
    return {"total": row["amount"] * OUTSIDE["value"]}


def merged(left, right):
    return {"total": left["amount"] * OUTSIDE["value"], "name": right["name"]}


def refused(row):
    if row["amount"] > OUTSIDE["value"] * 2:
        raise ValueError(row["amount"])
    return {"total": row["amount"]}


BUILDS = {
    "map": lambda orders, people: orders.map(shaped, schema={"total": int}),
    "map behind a filter": lambda orders, people: orders.filter(col("amount") > 1).map(shaped, schema={"total": int}),
    "map whose rows are filtered out": lambda orders, people: orders.map(shaped, schema={"total": int}).filter(
        col("total") > 1000
    ),
    "filter": lambda orders, people: orders.filter(lambda row: row["amount"] > 2 * OUTSIDE["value"]),
    "fold": lambda orders, people: orders.group_by("customer").aggregate(
        lambda: {"total": 0}, add, remove, schema={"total": int}
    ),
    "fold without remove": lambda orders, people: orders.group_by("customer").aggregate(
        lambda: {"total": 0}, add, schema={"total": int}
    ),
    "join": lambda orders, people: orders.join(
        people, on="customer", joiner=merged, schema={"total": int, "name": str}
    ),
    "aggregate of a map": lambda orders, people: (
        orders.map(shaped, schema={"total": int}).group_by("total").agg(n=es.count())
    ),
    "dead letters": lambda orders, people: orders.map(refused, schema={"total": int}),
}


def version(name):
    app = es.Service("shop")
    orders = app.table("orders", key="id", schema=ORDER)
    people = app.table("people", key="customer", schema={"customer": str, "name": str})
    BUILDS[name](orders, people).to("out")
    return app


def deployed(app, shards=1):
    driver = es.testing.Driver(app, shards=shards)
    people = "people" in app.units()[0].topics
    for first in range(0, 12, 4):
        with driver.batch():
            for number in range(first, first + 4):
                if people:
                    driver.send("people", f"c{number % 3}", {"name": f"n{number}"})
                driver.send("orders", f"o{number % 5}", {"customer": f"c{number % 3}", "amount": number})
    driver.tombstone("orders", "o1")
    return driver


@pytest.fixture
def blind(monkeypatch):
    """Fingerprints that see no function: as if every change of one were missed."""
    fingerprint = UnitPrint.fingerprint

    def unseeing(self):
        nodes = [(node.name, node.operation, node.inputs, sorted(node.parts)) for node in self.nodes]
        return repr((self.output, self.kind, nodes, self.policy))

    monkeypatch.setattr(UnitPrint, "fingerprint", property(unseeing))
    assert fingerprint is not UnitPrint.fingerprint
    monkeypatch.setitem(OUTSIDE, "value", 1)
    return lambda value: monkeypatch.setitem(OUTSIDE, "value", value)


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("name", BUILDS)
def test_change_that_a_blind_fingerprint_misses_is_found_and_recalculated(blind, name, shards):
    driver = deployed(version(name), shards)
    assert driver.upgrade(version(name)).plan.action("out").kind == "nothing"
    blind(2)
    plan = driver.upgrade(version(name)).plan
    (found,) = plan.action("out").differences
    assert (plan.action("out").kind, found.category) == ("recalculate", Category.MISSED)
    assert "please report it" in plain(text(plan))
    assert f"{__file__}:" in found.location
    fresh = deployed(version(name))
    assert driver.table("out") == fresh.table("out")
    assert driver.upgrade(version(name)).plan.action("out").kind == "nothing"


def test_change_that_a_blind_fingerprint_misses_is_found_in_a_stateful_function(blind):
    def build():
        app = es.Service("shop")
        app.stream("clicks", key="user", schema={"n": int}).apply(counted, stateful=True, schema={"n": int}).to("out")
        return app

    driver = es.testing.Driver(build())
    for _ in range(3):
        driver.send("clicks", "ada", {"n": 1})
    blind(5)
    assert driver.upgrade(build()).plan.action("out").differences[0].node == "clicks/stateful"
    driver.send("clicks", "ada", {"n": 1})
    assert driver.records("out")[-1].value == {"n": 20}


def test_first_step_that_differs_is_named_not_those_that_follow(blind):
    driver = deployed(version("aggregate of a map"))
    blind(2)
    assert driver.upgrade(version("aggregate of a map")).plan.action("out").differences[0].node == "orders/map"


def test_refactoring_and_unchanged_code_are_no_mismatch_however_input_was_cut(blind):
    driver = es.testing.Driver(version("join"), partitions=3, shards=2)
    dice = random.Random(5)
    for _ in range(10):
        with driver.batch():
            for _ in range(dice.randrange(1, 30)):
                driver.send("orders", f"o{dice.randrange(9)}", {"customer": f"c{dice.randrange(4)}", "amount": 1})
                driver.send("people", f"c{dice.randrange(4)}", {"name": str(dice.random())})
    assert driver.upgrade(version("join")).plan.action("out").kind == "nothing"


def test_function_that_is_not_deterministic_is_not_taken_for_a_change(blind):
    def build():
        app = es.Service("shop")
        rows = app.stream("in", key="k", schema={"n": int})
        rows.map(es.declare(random=True)(lambda row: {"n": random.random()}), schema={"n": float}).to("out")
        rows.map(instant, schema={"n": float}).to("other")
        return app

    driver = es.testing.Driver(build())
    driver.send("in", "a", {"n": 1})
    plan = driver.upgrade(build()).plan
    assert [action.kind for action in plan.actions] == ["nothing", "nothing"]


def test_net_goes_on_behind_an_upgrade_and_forgets_what_other_code_did(blind):
    def build(factor):
        app = es.Service("shop")
        rows = app.stream("in", key="k", schema={"n": int, "price": Decimal}).filter(col("n") > factor)
        rows.map(lambda row: {"n": row["n"] * OUTSIDE["value"]}, schema={"n": int}).to("out", on_change="continue")
        return app

    driver = es.testing.Driver(build(1))
    driver.send("in", "a", {"n": 2, "price": Decimal("1.5")})
    assert driver.upgrade(build(1)).plan.action("out").kind == "nothing"
    blind(3)
    assert driver.upgrade(build(1)).plan.action("out").kind == "recalculate"
