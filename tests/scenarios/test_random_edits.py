"""Random edits on Spark: many lanes side by side in one service, each a random chain that is edited at random.

After each deployment every topic is what a first run of that version gives on the test driver, and exactly what differs
was written. The driver itself is compared with far more edits in `tests/equivalence`.
"""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

import everstate as es
from tests.equivalence.versions import GATHERINGS, SCHEMA, TABLE_STEPS

pytestmark = [pytest.mark.spark, pytest.mark.long]

LANES, EDITS, PARTITIONS = 15, 2, 3


def random_lane(chance):
    """A source and one or two steps, each with its number."""
    steps = tuple((chance.choice(sorted(TABLE_STEPS)), chance.randrange(3)) for _ in range(chance.randint(1, 2)))
    return chance.choice(["left", "events"]), chance.randrange(3), steps


def service(lanes):
    app = es.Service("random", shards=2)
    left, right = (app.table(topic, key="k", schema=SCHEMA) for topic in ("left", "right"))
    events = app.stream("events", key="k", schema=SCHEMA)
    for number, (source, first, steps) in enumerate(lanes):
        table = left if source == "left" else GATHERINGS["sum"](events, first)
        for name, place in steps:
            table = TABLE_STEPS[name](table, right, place)
        table.to(f"lane-{number}")
    return app


def random_records(chance, count):
    found = []
    for _ in range(count):
        topic = chance.choice(["left", "left", "right", "events"])
        value = {
            "g": chance.choice(["a", "b", "c", None]),
            "x": chance.choice([-1, 0, 1, 2, 5, None]),
            "f": chance.choice([0.1, -2.5, 1e16, None]),
        }
        gone = topic != "events" and chance.random() < 0.2
        found.append((topic, chance.choice("abcdefgh"), None if gone else value, chance.randint(0, 99)))
    return found


def send(world, records):
    for topic in ("left", "right", "events"):
        for found, key, value, ts in records:
            if found == topic:
                world.topics.send(topic, [(key, value)], ts=ts)


def expected(lanes, sent):
    driver = es.testing.Driver(service(lanes), PARTITIONS)
    with driver.batch():
        for topic, key, value, ts in sent:
            driver.send(topic, key, value, ts)
    return {f"lane-{number}": driver.table(f"lane-{number}") for number in range(len(lanes))}


def text(table):
    return {key: json.dumps(value, sort_keys=True) for key, value in table.items()}


@pytest.mark.parametrize("seed", [1, 2])
def test_random_edits_of_many_outputs_end_as_first_runs_and_write_what_differs(world, seed):
    chance = random.Random(seed)
    for topic in ("left", "right", "events"):
        world.topics.create(topic, partitions=PARTITIONS, compact=topic != "events")
    lanes = [random_lane(chance) for _ in range(LANES)]
    sent = random_records(chance, 80)
    send(world, sent)
    world.deploy(service(lanes))
    for _ in range(EDITS):
        more = random_records(chance, 20)
        sent += more
        send(world, more)
        before = {f"lane-{number}": text(world.table(f"lane-{number}")) for number in range(LANES)}
        lanes = [random_lane(chance) if chance.random() < 0.7 else lane for lane in lanes]
        written = world.deploy(service(lanes), approval="approve")
        for topic, table in expected(lanes, sent).items():
            now = text(table)
            assert text(world.table(topic)) == now, (topic, lanes[int(topic[5:])])
            differs = [key for key in {*before[topic], *now} if before[topic].get(key) != now.get(key)]
            assert Counter(key for key, _ in written[topic]) == Counter(differs), topic
