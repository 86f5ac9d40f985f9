"""The stage loop that Spark, the driver and every check of results share."""

from __future__ import annotations

import pytest

import everstate as es


def passed(row, state):
    state.set("count", state.get("count", 0) + 1)
    return {"n": row["n"]}


def seen(row, state):
    state.set("seen", [*state.get("seen", []), row["n"]])
    return {"seen": state.get("seen")}


@pytest.mark.parametrize("shards", [1, 3])
def test_stream_time_of_a_stage_is_not_taken_from_the_stage_before(shards):
    app = es.Service("times")
    late = app.stream("late", key="k", schema={"k": str, "n": int})
    raw = app.stream("raw", key="k", schema={"k": str, "n": int})
    first = late.apply(passed, stateful=True, schema={"n": int})
    first.merge(raw).apply(seen, stateful=True, schema={"seen": list[int]}).to("out")
    driver = es.testing.Driver(app, shards=shards)
    with driver.batch():
        driver.send("raw", "a", {"n": 1}, ts=1)
        driver.send("raw", "a", {"n": 100}, ts=100)
        driver.send("late", "a", {"n": 50}, ts=50)
    assert max((record.value["seen"] for record in driver.records("out")), key=len) == [1, 50, 100]
