"""Killed where windows end, joins give up, keys expire and timers are due: nothing fires twice, and nothing is lost.

Each run begins with the micro-batch in which the one before was killed, and has new records that move time far on: in
every one of its micro-batches slices are dropped, windows and sessions come out for the only time, rows without a
partner are released, keys expire and timers fire, in all outputs at once. So whichever output is the one that meets the
crash point, each of these happens on both sides of it.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

import everstate as es
from tests.recovery import timed_service
from tests.recovery.test_engine_crash import IN_WORKERS, POINTS, World, crash_at

pytestmark = [pytest.mark.spark, pytest.mark.recovery, pytest.mark.long]

#: From one sending to the next: more than all that waits.
STEP_MS = 20_000
PARTITIONS = 3
STREAMS = ("joined", "fired")
ONCE = ("final", "sessions")


class TimedWorld(World):
    """A log, the processes, and the same records on a driver."""

    service = Path(timed_service.__file__)

    def __init__(self, folder):
        super().__init__(folder)
        self.driver = es.testing.Driver(timed_service.app, partitions=PARTITIONS)
        self.now = 1_000_000

    def send(self, count):
        self.now += STEP_MS
        numbers = range(len(self.sent), len(self.sent) + count)
        rows = [(f"a{n % 13}-{self.now}", {"id": n, "amount": n * 7 % 10}, self.now + n * 37 % 2_000) for n in numbers]
        self.append([(key, value, ts, None) for key, value, ts in rows])

    def close(self):
        """Move the time of all partitions on, so that everything is over."""
        self.now += STEP_MS
        for partition in range(PARTITIONS):
            self.append([(f"end{partition}", {"id": -1 - partition, "amount": 1}, self.now, partition)])

    def append(self, rows):
        self.sent += rows
        values = [json.dumps(value).encode() for _, value, _, _ in rows]
        columns = {"key": [row[0].encode() for row in rows], "value": values, "ts": [row[2] for row in rows]}
        frame = pl.DataFrame(columns)
        if rows[0][3] is not None:
            frame = frame.with_columns(partition=pl.Series([row[3] for row in rows], dtype=pl.Int32))
        self.log.append("payments", frame)
        with self.driver.batch():
            for key, value, ts, partition in rows:
                self.driver.send("payments", key, value, ts, partition)

    def records(self, topic):
        return [
            (key.decode(), None if value is None else json.loads(value))
            for key, value in self._records(topic).select("key", "value").iter_rows()
        ]

    def check(self):
        wanted = {
            topic: list(self.driver._deployment.topics.all(topic)) for topic in (*STREAMS, *ONCE, "updated", "alive")
        }
        for topic in (*STREAMS, *ONCE):
            expected = Counter((r.key.decode(), r.value.decode()) for r in wanted[topic])
            found = Counter((key, value.decode()) for key, value in self._pairs(topic))
            assert found == expected, topic
            assert max(found.values()) == 1, topic
        for topic in ("updated", "alive"):
            ends = {record.key.decode(): record.value for record in wanted[topic]}
            by_key = {}
            for key, value in self.records(topic):
                by_key.setdefault(key, []).append(value)
            # What came and went within one micro-batch was never published, and that depends on cuts.
            there = {key: values[-1] for key, values in by_key.items() if values[-1] is not None}
            assert there == {key: json.loads(value) for key, value in ends.items() if value is not None}, topic
            assert by_key.keys() <= ends.keys(), topic
            assert any(values[-1] is None for values in by_key.values()), topic
            for key, values in by_key.items():
                assert values.count(None) == (values[-1] is None), (topic, key, values)
                assert all(one != other for one, other in pairwise(values)), (topic, key, values)

    def _pairs(self, topic):
        return [(key.decode(), value) for key, value in self._records(topic).select("key", "value").iter_rows()]


@pytest.fixture
def world(tmp_path):
    world = TimedWorld(tmp_path)
    yield world
    world.log.close()


def test_what_is_due_happens_once_wherever_the_process_is_killed(world):
    world.send(40)
    code, output = world.run()
    assert code == 0, output
    for place, point in enumerate(POINTS):
        # The outputs pass a point one after the other, and another one of them is killed there each time.
        crash_at(world, point if point.startswith(IN_WORKERS) else f"{point}:{1 + 2 * place % 5}")
    world.close()
    code, output = world.run()
    assert code == 0, output
    world.check()
