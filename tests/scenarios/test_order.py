"""Steps that depend on the order of arrival see one order, whichever version looks back."""

from __future__ import annotations

import pytest

import everstate as es
from everstate import col
from everstate.log import TopicConfig

pytestmark = [pytest.mark.spark, pytest.mark.long]


def moves(*topics, factor=1):
    """By how much each price differs from the one that arrived before it."""

    def step(row, state):
        last = state.get("last", 0)
        state.set("last", row["price"])
        return (row["price"] - last) * factor

    app = es.Service("prices", shards=2)
    first, *others = [app.stream(name, key="id", schema={"price": int}) for name in topics]
    for other in others:
        first = first.merge(other)
    first.apply(step, stateful=True, schema=int).group_by("id").agg(moves=es.collect(col("value"))).to("moves")
    return app


def test_source_that_an_edit_adds_falls_into_place_and_stays_there(world):
    sent = [("shop", 1, 100), ("web", 5, 50), ("shop", 10, 200), ("web", 20, 10)]
    driver = es.testing.Driver(moves("shop"))
    for topic in ("shop", "web"):
        world.log.create_topic(topic, TopicConfig(partitions=2))
    for topic, price, ts in sent:
        driver.send(topic, "pen", {"price": price}, ts=ts)
        world.topics.send(topic, [("pen", {"price": price})], ts=ts)
        if topic == "shop":
            world.deploy(moves("shop"))
    world.deploy(moves("shop", "web"))
    driver.upgrade(moves("shop", "web"))
    assert world.table("moves") == driver.table("moves") == {"pen": {"moves": [10, 4, 1, 5]}}
    world.log.compact("web")  # merges its files: from now on every record knows its own time
    world.deploy(moves("shop", "web", factor=10))
    driver.upgrade(moves("shop", "web", factor=10))
    assert world.table("moves") == driver.table("moves") == {"pen": {"moves": [100, 40, 10, 50]}}
