"""A service that is killed anywhere, over and over, ends as an undisturbed run does, and writes nothing twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from everstate.log.crash import CRASH_POINTS, VARIABLE
from everstate.log.descriptions import TopicConfig
from everstate.log.opening import open_log
from tests.figures import KILLED

pytestmark = [pytest.mark.spark, pytest.mark.recovery]

SERVICE = Path(__file__).with_name("engine_service.py")
#: Points that one micro-batch passes; those of appends, compaction and deletion belong to the log's own tests.
POINTS = [name for name in CRASH_POINTS if name.startswith(("batch.", "sink.", "log.stage.", "log.commit."))]
IN_WORKERS = ("batch.", "log.stage.")


class World:
    """A log, the service's processes, and what should come out."""

    service = SERVICE

    def __init__(self, folder):
        self.log = open_log(folder / "log")
        self.log.create_topic("payments", TopicConfig(partitions=3))
        self.marker = folder / "killed"
        self.sent = []

    def send(self, count):
        first = len(self.sent)
        rows = [{"account": f"a{n % 11}", "id": n, "amount": n * 7 % 100} for n in range(first, first + count)]
        self.sent += rows
        frame = pl.DataFrame(
            {
                "key": [row["account"].encode() for row in rows],
                "value": [json.dumps({"id": row["id"], "amount": row["amount"]}).encode() for row in rows],
                "ts": [1_000 + row["id"] for row in rows],
            }
        )
        self.log.append("payments", frame)

    def start(self, *options, **environment):
        command = [sys.executable, "-m", "everstate.cli.main", "run", str(self.service), "--log", self.log.url]
        command += ["--memory", "1g", "--cores", "2", "--max-records", "60", *options]
        return subprocess.Popen(
            command,
            env={**os.environ, "EVERSTATE_RESTARTS": "0", "EVERSTATE_TEST_MARKER": str(self.marker), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, **environment):
        process = self.start("--once", **environment)
        output, _ = process.communicate(timeout=600)
        return process.returncode, output

    def check(self):
        """Every account's balance, and every even payment exactly once."""
        balances = {}
        for row in self.sent:
            entry = balances.setdefault(row["account"], {"total": 0, "payments": 0})
            entry["total"] += row["amount"]
            entry["payments"] += 1
        latest = self.log.latest("balances").select("key", "value").iter_rows()
        assert {key.decode(): json.loads(value) for key, value in latest} == balances
        published = Counter(json.loads(value)["id"] for value in self._records("even")["value"])
        assert published == Counter(row["id"] for row in self.sent if row["amount"] % 2 == 0)
        # A table's record is written only if the value changed, so two alike in a row would be a repetition.
        by_key = {}
        for key, value in self._records("balances").select("key", "value").iter_rows():
            assert by_key.get(key) != value
            by_key[key] = value

    def _records(self, topic):
        partitions = range(self.log.describe(topic).config.partitions)
        return pl.concat([self.log.read(topic, partition, 0) for partition in partitions])


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.log.close()


def crash_at(world, point):
    """Run until the process, or every worker that gets there, has been killed at this point."""
    world.send(40)
    if not point.startswith(IN_WORKERS):
        # Workers that come up too late on a busy machine are started again; they are not what this is about.
        code, output = world.run(**{VARIABLE: point, "EVERSTATE_RESTARTS": "5"})
        assert code == -signal.SIGKILL, output
        KILLED[point.partition(":")[0]] += 1
        return
    for _ in range(5):
        code, output = world.run(**{VARIABLE: point})
        assert code == 1, output
        if "failed to connect back" not in output:
            break
    assert "exited unexpectedly" in output
    KILLED[point.partition(":")[0]] += 1


def test_service_killed_around_the_commit_loses_and_doubles_nothing(world):
    # Published, and Spark does not know it yet: the next run gets the same batch again.
    crash_at(world, "log.commit.after_transaction")
    code, output = world.run()
    assert code == 0, output
    assert "state 0 B" not in output
    world.check()


@pytest.mark.long
@pytest.mark.parametrize("hit", [1, 2])
def test_service_killed_at_every_point_in_turn_loses_and_doubles_nothing(world, hit):
    # A worker lives for many tasks, but the first that gets there is killed, so a later time is no other case for it.
    points = POINTS if hit == 1 else [point for point in POINTS if not point.startswith(IN_WORKERS)]
    for point in points:
        # Each run begins by repeating the batch in which the one before was killed.
        crash_at(world, point if hit == 1 else f"{point}:{hit}")
    code, output = world.run()
    assert code == 0, output
    world.check()


@pytest.mark.long
def test_worker_killed_once_is_replaced_and_the_run_goes_on(world):
    world.send(100)
    code, output = world.run(EVERSTATE_TEST_KILL="worker")
    assert code == 0, output
    assert world.marker.exists()
    world.check()


@pytest.mark.long
def test_java_killed_ends_the_run_with_a_named_error_and_the_next_run_goes_on(world):
    world.send(100)
    code, output = world.run(EVERSTATE_TEST_KILL="java")
    assert code == 1, output
    assert "Java process ended" in output
    assert "Traceback" not in output
    code, output = world.run()
    assert code == 0, output
    world.check()


@pytest.mark.long
def test_sigterm_finishes_the_batch_and_exits_with_status_zero(world):
    world.send(100)
    process = world.start()
    try:
        deadline = time.monotonic() + 300
        while "even" not in world.log.topics() or not sum(world.log.describe("even").end.values()):
            assert time.monotonic() < deadline
            assert process.poll() is None, process.stdout.read()
            time.sleep(0.2)
        world.send(100)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 0, output
        assert "Traceback" not in output
    finally:
        process.kill()
    code, output = world.run()
    assert code == 0, output
    world.check()


def test_second_process_is_refused_while_the_first_lives(world):
    world.send(10)
    lease = world.log.acquire("survivor")
    code, output = world.run()
    assert code == 4
    assert f"process {os.getpid()}" in output
    world.log.release(lease)
