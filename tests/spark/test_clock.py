"""The recorded clock on Spark: timers and lifetimes are due without a record, and once; a recalculation finds them."""

from __future__ import annotations

import time

import pytest

import everstate as es
from everstate import col
from everstate.engine.commands.runner import Runner
from everstate.log import vectors

pytestmark = pytest.mark.spark

AFTER_S = 12


def service(factor: int = 1) -> es.Service:
    app = es.Service("clocked", shards=2)
    carts = app.table("carts", key="user", schema={"items": int})
    carts.select(items=col("items") * factor).expire(after=f"{AFTER_S}s", clock="wall").to("open-carts")
    events = app.stream("carts", key="user", schema={"items": int})
    rung = events.process(_watch, on_timer=_ring, schema={"user": str, "rang": int}, wall_clock=True)
    rung.group_by("user").agg(rang=col("rang").max() * factor, times=es.count()).to("rung")
    return app


def _watch(row: dict, ctx: es.Context) -> None:
    ctx.timer("ring", at=ctx.now + 1000 * row["items"], clock="wall")


def _ring(ctx: es.Context) -> dict:
    return {"user": ctx.key, "rang": ctx.now}


def test_timers_and_lifetimes_are_due_without_records_and_once(spark, log, topics, run) -> None:
    topics.create("carts", partitions=2)
    now = time.time_ns() // 1_000_000
    topics.send("carts", [("ada", {"items": 2}), ("bob", {"items": 4})], ts=now)
    runner = Runner(service(), log=log.url, session=spark, show=False, cores=2, trigger=0.2)
    runner.start()
    deadline = time.monotonic() + 120
    try:
        while time.monotonic() < deadline and (topics.count("rung") if log.has_topic("rung") else 0) < 2:
            time.sleep(0.2)
        while time.monotonic() < deadline and topics.table("open-carts"):
            time.sleep(0.2)
    finally:
        runner.stop()
    rung = topics.table("rung")
    assert sorted(rung) == ["ada", "bob"]
    assert [row["times"] for row in rung.values()] == [1, 1]
    assert topics.count("rung") == 2
    assert rung["ada"]["rang"] <= rung["bob"]["rang"]
    assert topics.table("open-carts") == {}
    assert topics.count("open-carts") == 4
    last = log.last_commit("clocked", "rung")
    assert vectors.clock_of(last.end) >= rung["bob"]["rang"] >= now + 4000
    run(service(factor=2))
    twice = {user: {**row, "rang": 2 * row["rang"]} for user, row in rung.items()}
    assert topics.table("rung") == twice
    assert topics.table("open-carts") == {}
