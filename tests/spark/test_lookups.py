"""Joins with tables that are looked up, on Spark: what was there before the first start, live, and recalculated.

All that is there at a start comes in one micro-batch, so the driver plays the same; after that a recalculation has to
give what micro-batches cut anyhow have given.
"""

from __future__ import annotations

import random

import pytest

import everstate as es
from everstate import col

pytestmark = [pytest.mark.spark, pytest.mark.long]

PARTITIONS = 3
NAMES = [f"n{number}" for number in range(12)]
TABLES = ("by-key", "by-column", "with-global", "counted", "staff-in-cities")


def service(shards: int, factor: int = 1) -> es.Service:
    app = es.Service("lookups", shards=shards)
    rows = app.stream("rows", key="k", schema={"ref": str | None, "n": int}).with_columns(n=col("n") * factor)
    people = app.table("people", key="id", schema={"name": str})
    cities = app.global_table("cities", key="city", schema={"land": str})
    staff = app.table("staff", key="id", schema={"city": str | None, "n": int})
    rows.join(people, how="left").to("by-key", key="n")
    rows.join(people.filter(col("name") != "x3"), on="ref").to("by-column", key="n")
    rows.join(cities, on="ref", how="left").to("with-global", key="n")
    named = rows.join(people, on="ref", how="left").join(cities, on="ref", how="left")
    named.group_by(person=col("name").fill_null("nobody"), land=col("land").fill_null("nowhere")).agg(
        n=es.count(), sum=col("n").sum()
    ).to("counted")
    staff.with_columns(n=col("n") * factor).join(cities, on="city", how="left").to("staff-in-cities")
    return app


def records(chance: random.Random, numbers: range) -> dict[str, list]:
    """By topic, what comes in."""
    found: dict[str, list] = {"rows": [], "people": [], "cities": [], "staff": []}
    for number in numbers:
        key, ref = chance.choice([*NAMES, None]), chance.choice([*NAMES, None])
        found["rows"].append((key, {"ref": ref, "n": number}))
        if number % 3 == 0:
            gone = chance.random() < 0.3
            found["people"].append((chance.choice(NAMES), None if gone else {"name": f"x{number % 7}"}))
            found["cities"].append((chance.choice(NAMES), None if gone else {"land": f"l{number % 4}"}))
            found["staff"].append((chance.choice(NAMES), {"city": ref, "n": number}))
    return found


def test_lookups_on_spark_meet_what_is_there_live_and_recalculated(log, topics, run) -> None:
    chance = random.Random(3)
    parts = [records(chance, numbers) for numbers in (range(200), range(200, 400))]
    driver = es.testing.Driver(service(1), partitions=PARTITIONS)
    for name in parts[0]:
        topics.create(name, PARTITIONS)
    for number, part in enumerate(parts):
        for name, sent in part.items():
            topics.send(name, sent, ts=1000 * number)
        run(service(2), max_records=100_000)
        with driver.batch():
            for name, sent in part.items():
                for place, (key, value) in enumerate(sent):
                    driver.send(name, key, value, ts=1000 * number + place)
        compare(topics, driver, f"part {number}")
    for name, sent in records(chance, range(400, 600)).items():
        topics.send(name, sent, ts=2000)
    run(service(2), max_records=60)  # several micro-batches, cut by Spark
    live = {name: topics.table(name) for name in TABLES}
    run(service(2, factor=-1), approval="approve")  # every key of three outputs is another one
    again = {name: topics.table(name) for name in TABLES}
    for name in ("by-key", "by-column", "with-global"):
        assert again[name] == {str(-int(key)): value for key, value in live[name].items()}, name
    assert again["counted"] == {key: {**value, "sum": -value["sum"]} for key, value in live["counted"].items()}
    assert again["staff-in-cities"] == {
        key: {**value, "n": -value["n"]} for key, value in live["staff-in-cities"].items()
    }


def compare(topics, driver, where: str) -> None:
    for name in ("by-key", "by-column", "with-global"):
        found = {int(key): value for key, value in topics.table(name).items()}
        assert found == driver.table(name), (name, where)
    assert sorted(map(str, topics.table("counted").values())) == sorted(map(str, driver.table("counted").values())), (
        where
    )
    assert topics.table("staff-in-cities") == driver.table("staff-in-cities"), where
