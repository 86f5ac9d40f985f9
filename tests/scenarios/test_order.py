"""Steps that depend on the order of arrival see one order, whichever version looks back."""

from __future__ import annotations

import pytest

import everstate as es
from everstate import col
from everstate.log import TopicConfig

pytestmark = [pytest.mark.spark, pytest.mark.long]


def moves(*, web, factor=1):
    """By how much each price differs from the one that arrived before it, in the shop or also on the web."""

    def step(row, state):
        last = state.get("last", 0)
        state.set("last", row["price"])
        return (row["price"] - last) * factor

    app = es.Service("prices", shards=2)
    prices, others = (app.stream(name, key="id", schema={"price": int}) for name in ("shop", "web"))
    others.to("web-prices")
    if web:
        prices = prices.merge(others)
    prices.apply(step, stateful=True, schema=int).group_by("id").agg(moves=es.collect(col("value"))).to("moves")
    return app


def test_source_that_an_edit_adds_falls_into_place_and_stays_there(world):
    driver = es.testing.Driver(moves(web=False))
    for topic in ("shop", "web"):
        world.log.create_topic(topic, TopicConfig(partitions=2))
    for topic, price, ts in [("shop", 1, 100), ("web", 5, 50), ("shop", 10, 200), ("web", 20, 10)]:
        driver.send(topic, "pen", {"price": price}, ts=ts)
        world.topics.send(topic, [("pen", {"price": price})], ts=ts)
        if topic == "shop":
            world.deploy(moves(web=False))
    world.deploy(moves(web=True))
    driver.upgrade(moves(web=True))
    assert world.table("moves") == driver.table("moves") == {"pen": {"moves": [10, 4, 1, 5]}}
    world.log.compact("web")  # merges its files: from now on every record knows its own time
    world.deploy(moves(web=True, factor=10))
    driver.upgrade(moves(web=True, factor=10))
    assert world.table("moves") == driver.table("moves") == {"pen": {"moves": [100, 40, 10, 50]}}
