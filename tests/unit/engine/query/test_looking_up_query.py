"""Joins with tables as Spark's tasks and shards carry them out: records to every shard, steps through packed rows.

Only Spark itself is left out, as in `test_clocked_query.py`.
"""

from __future__ import annotations

import json
import random

import polars as pl
import pytest

import everstate as es
from everstate.log.descriptions import TopicConfig
from everstate.log.opening import open_log

pytest.importorskip("pyspark")

from everstate.engine.query.job import Job
from tests.unit.engine.query.test_clocked_query import Query

NAMES = [f"n{number}" for number in range(6)]


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.setattr(Job, "log", lambda job: open_log(job.url))
    log = open_log(tmp_path / "log")
    for topic in ("rows", "people", "cities"):
        log.create_topic(topic, TopicConfig(partitions=2, compact=topic != "rows"))
    yield log
    log.close()


def service() -> es.Service:
    app = es.Service("s")
    rows = app.stream("rows", key="k", schema={"ref": str | None, "n": int})
    people = app.table("people", key="id", schema={"name": str}, history="20ms")
    cities = app.global_table("cities", key="city", schema={"land": str})
    read = rows.group_by("ref").agg(n=es.count())
    named = rows.join(people, on="ref", how="left", grace="2ms").join(cities, on="ref", how="left")
    named.join(read.rename({"n": "seen"}), on="ref", how="left").to("named", key="n")
    return app


def send(log, chance, numbers) -> None:
    """Records of all topics, some of them for the tables."""
    found: dict[str, list] = {"rows": [], "people": [], "cities": []}
    for number in numbers:
        name, ts = chance.choice(NAMES), number + chance.randint(0, 6)
        topic = chance.choice(["rows", "rows", "people", "cities"])
        gone = chance.random() < 0.2
        value = {"rows": {"ref": name, "n": number}, "people": {"name": f"p{number}"}, "cities": {"land": f"l{number}"}}
        found[topic].append((name, None if gone and topic != "rows" else json.dumps(value[topic]).encode(), ts))
    for topic, rows in found.items():
        columns = {
            "partition": pl.Series(
                [hash_of(name) % 2 if topic != "rows" else ts % 2 for name, _, ts in rows], dtype=pl.Int32
            ),
            "key": [name.encode() for name, _, _ in rows],
            "value": pl.Series([value for _, value, _ in rows], dtype=pl.Binary),
            "ts": pl.Series([ts for *_, ts in rows], dtype=pl.Int64),
        }
        log.append(topic, pl.DataFrame(columns))


def hash_of(name: str) -> int:
    return int(name[1:])


@pytest.mark.slow
def test_query_that_looks_up_gives_the_same_on_any_shards_when_it_is_repeated(log):
    chance = random.Random(7)
    unit = service().units()[-1]
    live = Query(log, unit, shards=3, most=8)
    send(log, chance, range(40))
    live.drain()
    begun = live.batch
    assert begun > 2, "tables first, then rows in small micro-batches"
    for start in range(40, 100, 10):
        send(log, chance, range(start, start + 10))
        live.drain()
        live.restart()
    found = live.table()
    assert len(found) > 30
    assert len({row["name"] for row in found.values()}) > 5
    assert len({row["land"] for row in found.values()}) > 5
    for number, shards, most in ((2, 3, 1000), (3, 1, 11)):
        again = Query(log, unit, shards=shards, closed=number, most=most)
        assert again.drain() < live.batch
        assert again.table() == found, (shards, most)
