"""One step has one name: in descriptions, plans, samples and dead letters."""

from __future__ import annotations

import json

import pytest
from polars import col

import everstate as es
from everstate.fingerprints import print_unit
from everstate.fingerprints.earlier import earlier_step, step_operation
from everstate.generations.compare.letters import _placeless
from everstate.topology.names import node_names


def fail(row):
    raise ValueError(row["amount"])


def shop(build):
    app = es.Service("shop")
    build(app.table("orders", key="id", schema={"id": str, "customer": str, "amount": int})).to("out")
    return app


def chain(orders):
    positive = orders.filter(col("amount") > 0).filter(col("amount") > 1).with_columns(twice=col("amount") * 2)
    return positive.join(orders.group_by("customer").agg(n=es.count()), on="customer")


NAMES = [
    "orders",
    "orders/table",
    "orders/filter",
    "orders/filter#2",
    "orders/with_columns",
    "out/aggregate",
    "out/foreign-key-join",
    "out/output",
]


def test_names_are_the_same_in_descriptions_and_plans():
    app = shop(chain)
    (unit,) = app.units()
    (described,) = app.describe().to_json()["outputs"]
    assert node_names(unit) == NAMES
    assert [node["name"] for stage in described["stages"] for node in stage["nodes"]] == NAMES
    assert [node.name for node in print_unit(unit, policy="fail", settings={}).nodes] == NAMES


@pytest.mark.parametrize(
    ("build", "value", "name"),
    [
        (lambda o: o, "no number", "orders"),
        (lambda o: o.filter(fail), 1, "orders/filter"),
        (lambda o: o.filter(col("amount") > 0).filter(fail), 1, "orders/filter#2"),
        (lambda o: o.with_columns(n=(10 / col("amount")).cast(int)), 0, "orders/with_columns"),
        (
            lambda o: o.group_by("customer").aggregate(lambda: 0, lambda a, row: fail(row), schema=int),
            1,
            "out/aggregate",
        ),
    ],
)
def test_dead_letter_names_its_step_as_plans_do(build, value, name):
    app = shop(build)
    driver = es.testing.Driver(app)
    driver.send("orders", "a", {"customer": "ada", "amount": value})
    (letter,) = driver.records("out.dlq")
    assert letter.value["step"].partition(" at ")[0] == name
    assert name in node_names(app.units()[0])
    assert __file__ in letter.value["step"]


def test_dead_letters_of_earlier_versions_mean_the_same_as_those_of_today():
    (unit,) = shop(chain).units()
    for node in print_unit(unit, policy="fail", settings={}).nodes:
        today = {"step": f"{node.name} at shop.py:7", "topic": "orders", "reason": "bad"}
        earlier = {**today, "step": earlier_step(node.operation, "shop.py:3")}
        assert _placeless(today) == _placeless(earlier), json.dumps([today, earlier])


def test_step_operation_of_a_topic_that_is_called_like_an_operation_is_its_source():
    assert step_operation("filter at shop.py:3", "filter") == "source"
    assert step_operation("filter/filter at shop.py:3", "filter") == "filter"
