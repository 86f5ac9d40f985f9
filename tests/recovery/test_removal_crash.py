"""The tombstone service killed around its commits and in its workers: no key is removed twice, none is forgotten."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import polars as pl
import pytest

from everstate.log.descriptions import TopicConfig
from everstate.log.records import to_records
from tests.recovery.test_engine_crash import POINTS, World, crash_at

pytestmark = [pytest.mark.spark, pytest.mark.recovery, pytest.mark.long]

#: From one sending to the next: more than a key may be quiet.
STEP_MS = 20_000
PARTITIONS = 3


class Owners(World):
    """A topic that somebody else writes; its keys come, are quiet, and come back."""

    def __init__(self, folder):
        super().__init__(folder)
        self.log.create_topic("owners", TopicConfig(partitions=PARTITIONS, compact=True))
        self.now = 1_000_000

    def send(self, count):
        self.now += STEP_MS
        first = len(self.sent)
        rows = [(f"k{n % 70}".encode(), str(n).encode(), self.now + n % 50) for n in range(first, first + count)]
        rows += [(f"end{n}".encode(), b"0", self.now + 60) for n in range(PARTITIONS)]
        self.sent += rows
        columns = {name: [row[place] for row in rows] for place, name in enumerate(("key", "value", "ts"))}
        ends = [None] * count + list(range(PARTITIONS))
        self.log.append("owners", pl.DataFrame({**columns, "partition": pl.Series(ends, dtype=pl.Int32)}))

    def start(self, *options, **environment):
        command = [sys.executable, "-m", "everstate.cli.main", "tombstone", "owners", "--after", "10s"]
        command += ["--log", self.log.url, "--memory", "1g", "--cores", "2", "--max-records", "60", *options]
        return subprocess.Popen(
            command,
            env={**os.environ, "EVERSTATE_RESTARTS": "0", **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def check(self):
        """What is quiet is gone, every record was removed once, and the removals say so."""
        last = {key: ts for key, _, ts in self.sent}
        alive = {key for key, ts in last.items() if ts + 10_000 > self.now + 60}
        assert set(self.log.latest("owners")["key"]) == alive
        found = [r for p in range(PARTITIONS) for r in to_records("owners", self.log.read("owners", p, 0))]
        tombstones = [(r.partition, int(dict(r.headers)["es-removed"])) for r in found if r.value is None]
        assert max(Counter(tombstones).values()) == 1
        assert set(self.log.latest("owners.removed")["key"]) == {r.key for r in found if r.value is None}


@pytest.fixture
def world(tmp_path):
    world = Owners(tmp_path)
    yield world
    world.log.close()


def test_keys_are_removed_once_wherever_the_service_is_killed(world):
    world.send(40)
    code, output = world.run()
    assert code == 0, output
    for point in POINTS:
        crash_at(world, point)
    code, output = world.run()
    assert code == 0, output
    world.check()
