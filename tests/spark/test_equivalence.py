"""Spark gives what the driver gives: many random histories, packed side by side into one run.

Every history has keys and groups of its own, so that a pack of them is as many experiments. Records are the same on
both sides; the driver plays them in one micro-batch, Spark in several, with other shards.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict

import polars as pl
import pytest

import everstate as es
from everstate import col
from everstate.log.descriptions import TopicConfig

pytestmark = [pytest.mark.spark, pytest.mark.long]

HISTORIES = 120
PARTITIONS = 3
ORDER = {"id": str, "g": str, "ref": str | None, "x": int | None, "f": float, "tags": list[str]}
TABLES = ("groups", "folded", "joined", "named", "by-name", "clicks-by-page")
SPECIAL = (0.1, -0.1, 1e16, 1e-9, 3.3, "NaN", "Infinity")


def service(shards: int) -> es.Service:
    app = es.Service("equivalence", shards=shards)
    orders = app.table("orders", key="id", schema=ORDER)
    people = app.table("people", key="ref", schema={"ref": str, "name": str})
    clicks = app.stream("clicks", key="user", schema={"page": str, "n": int})
    valid = orders.filter(col("x").is_null() | (col("x") != 13))
    valid.group_by("g").agg(
        n=es.count(), s=col("x").sum(), f=col("f").sum(), m=col("f").mean(), v=col("f").var(), low=col("f").min(),
        first=col("x").first(), last=col("id").last(), all=es.collect("x"), kinds=col("x").n_unique(),
        top=es.top_k("x", 2), middle=es.median("x"), q=es.quantile("f", 0.25),
    ).to("groups")  # fmt: skip
    valid.group_by("g").reduce(lambda a, b: {**a, "x": max(a["x"] or 0, b["x"] or 0)}).to("folded")
    people.join(orders.rekey("ref").select(amount="x"), how="outer").to("joined")
    orders.join(people, on="ref", how="left").to("named").group_by("name").agg(n=es.count()).to("by-name")
    clicks.filter(_fresh, stateful=True).to("fresh-clicks")
    clicks.group_by("page").agg(n=es.count(), s=col("n").sum(), last=col("n").last()).to("clicks-by-page")
    return app


def _fresh(click: dict, state: es.State) -> bool:
    """Whether the page is another one than the user's last."""
    last = state.get("page")
    state.set("page", click["page"])
    return click["page"] != last


def histories(seed: int) -> list[tuple[str, str, dict | None, int]]:
    """(topic, key, value, timestamp) of all histories, interleaved."""
    chance = random.Random(seed)
    lanes = [_history(chance, f"h{number}") for number in range(HISTORIES)]
    mixed = []
    while lanes:
        lane = chance.choice(lanes)
        mixed.append(lane.pop(0))
        lanes = [lane for lane in lanes if lane]
    return mixed


def _history(chance: random.Random, name: str) -> list[tuple[str, str, dict | None, int]]:
    records = []
    for _ in range(chance.randint(3, 14)):
        ts, kind = chance.randint(0, 9), chance.random()
        if kind < 0.6:
            value = {
                "g": f"{name}-{chance.choice('AB')}",
                "ref": chance.choice([None, f"{name}-p", f"{name}-q"]),
                "x": chance.choice([None, 1, 2, 7, 13, -(10**12)]),
                "f": chance.choice(SPECIAL),
                "tags": chance.choice([[], ["ä", '"']]),
            }
            records.append(("orders", f"{name}-{chance.choice('abc')}", None if chance.random() < 0.25 else value, ts))
        elif kind < 0.8:
            value = None if chance.random() < 0.25 else {"name": f"{name} {chance.choice('xy')}"}
            records.append(("people", f"{name}-{chance.choice('pq')}", value, ts))
        else:
            page = f"{name}/{chance.choice('12')}"
            records.append(("clicks", f"{name}-{chance.choice('uv')}", {"page": page, "n": chance.randint(0, 5)}, ts))
    return records


def test_random_histories_on_spark_equal_the_driver(log, run) -> None:
    sent = histories(seed=11)
    driver = es.testing.Driver(service(1), partitions=PARTITIONS)
    with driver.batch():
        for topic, key, value, ts in sent:
            driver.send(topic, key, None if value is None else json.dumps(value).encode(), ts)
    parts = defaultdict(list)
    for topic, key, value, ts in sent:
        parts[topic].append((key.encode(), None if value is None else json.dumps(value).encode(), ts))
    for topic, rows in parts.items():
        log.create_topic(topic, TopicConfig(partitions=PARTITIONS, compact=topic != "clicks"))
        log.append(
            topic, pl.DataFrame(rows, schema={"key": pl.Binary, "value": pl.Binary, "ts": pl.Int64}, orient="row")
        )
    run(service(2), max_records=-(-len(sent) // 2))
    for topic in TABLES:
        assert _latest(log, topic) == _driver_table(driver, topic), topic
    assert _by_key(_all(log, "fresh-clicks")) == _by_key(_published(driver, "fresh-clicks"))
    assert _latest(log, "groups.dlq") == _driver_table(driver, "groups.dlq") == {}


def _latest(log, topic: str) -> dict:
    return {key: json.loads(value) for key, value in log.latest(topic).select("key", "value").iter_rows()}


def _all(log, topic: str) -> list:
    frames = [log.read(topic, partition, 0) for partition in range(PARTITIONS)]
    return [row for frame in frames for row in frame.select("key", "value").rows()]


def _published(driver, topic: str) -> list:
    return [(record.key, record.value) for record in driver._deployment.topics.all(topic)]


def _driver_table(driver, topic: str) -> dict:
    latest = dict(_published(driver, topic))
    return {key: json.loads(value) for key, value in latest.items() if value is not None}


def _by_key(records: list) -> dict:
    found = defaultdict(list)
    for key, value in records:
        found[key].append(json.loads(value))
    return dict(found)
