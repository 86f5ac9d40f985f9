"""Windows on Spark: what comes out is what the driver gives, however the input was cut and whoever went on with it."""

from __future__ import annotations

import json
import random

import polars as pl
import pytest

import everstate as es
from everstate import col
from everstate.log.descriptions import TopicConfig

pytestmark = pytest.mark.spark

PARTITIONS = 3
SIZE, GRACE = 60, 15
TOPICS = ("chained", "updated", "final", "hopping", "sessions", "merged", "sliding", "totals", "fresh", "active")


def service(shards: int) -> es.Service:
    app = es.Service("windows", shards=shards)
    schema = {"user": str, "amount": float, "at": int}
    clicks = app.stream("clicks", key="id", schema=schema, time=col("at"))
    by_user = clicks.group_by("user")
    tumbling = es.tumbling(f"{SIZE}ms", grace=f"{GRACE}ms")
    updated = by_user.window(tumbling, keep="200ms").agg(n=es.count(), total=col("amount").sum()).to("updated")
    updated.group_by("window_start").agg(n=col("n").sum()).to("totals")
    by_user.window(tumbling, emit="final", late_to="late").agg(all=es.collect("amount")).to("final")
    by_user.window(es.hopping("60ms", "20ms"), emit="final").reduce(_highest).to("hopping")
    by_user.window(es.session("7ms", grace="5ms"), keep="300ms").agg(n=es.count(), all=es.collect("id")).to("sessions")
    sessions = by_user.window(es.session("7ms", grace="5ms"))
    sessions.aggregate(lambda: 0, _counted, schema=int, merge=lambda a, b: a + b).to("merged")
    by_user.window(es.sliding("9ms"), emit="final").agg(total=col("amount").sum()).to("sliding")
    passed = clicks.filter(col("amount") > -1).to("passed")  # in it, shards follow one another
    passed.group_by("user").window(tumbling).agg(n=es.count(), total=col("amount").sum()).to("chained")
    app.table("clicks", key="id", schema=schema).expire(after="150ms").to("fresh")
    by_user.agg(n=es.count()).expire(after="3ms").to("active")
    return app


def _highest(one: dict, other: dict) -> dict:
    return max(one, other, key=lambda row: (row["amount"], row["id"]))


def _counted(count: int, row: dict) -> int:
    return count + len(row["user"])


def records(seed: int, count: int, now: int) -> list[tuple[int, bytes, bytes, int]]:
    """(partition, key, value, ts): mostly onward in time, some late, some of them too late."""
    chance = random.Random(seed)
    found = []
    for number in range(count):
        now += chance.randint(0, 4)
        at = max(0, now - chance.choice([0, 0, 0, 5, 30, 150]))
        value = {"user": chance.choice("abcde"), "amount": chance.choice([0.1, 0.2, 1e16, -3.3]), "at": at}
        found.append((chance.randrange(PARTITIONS), f"{seed}-{number}".encode(), json.dumps(value).encode(), at))
    return found


def test_windows_on_spark_in_several_runs_equal_the_driver(log, run) -> None:
    rounds = [records(1, 300, 0), records(2, 200, 600)]
    driver = es.testing.Driver(service(1), partitions=PARTITIONS)
    log.create_topic("clicks", TopicConfig(partitions=PARTITIONS))
    for sent in rounds:
        with driver.batch():
            for partition, key, value, ts in sent:
                driver.send("clicks", key, value, ts, partition)
        schema = {"partition": pl.Int32, "key": pl.Binary, "value": pl.Binary, "ts": pl.Int64}
        log.append("clicks", pl.DataFrame(sent, schema=schema, orient="row"))
        run(service(2), max_records=90)
        for topic in (*TOPICS, "late"):
            table = {key: json.loads(value) for key, value in log.latest(topic).select("key", "value").iter_rows()}
            published = {record.key: record.value for record in driver._deployment.topics.all(topic)}
            expected = {key: json.loads(value) for key, value in published.items() if value is not None}
            assert table == expected, topic
            assert table
