"""A deployment that is killed anywhere, and killed again while it recovers, ends as an undisturbed one does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from everstate.generations.generation import Status
from everstate.generations.registry import Registry
from everstate.log.crash import CRASH_POINTS, VARIABLE
from everstate.log.descriptions import TopicConfig
from everstate.log.opening import open_log
from everstate.log.records import to_records
from tests.figures import KILLED
from tests.kafka.points import SHARES
from tests.recovery import test_engine_crash, test_history_crash, test_log_crash, test_spark_steps_crash
from tests.scenarios.test_live_deployment import TAKING_OVER

pytestmark = [pytest.mark.spark, pytest.mark.recovery]

SERVICE = Path(__file__).with_name("changing_service.py")

FIRST = ["registry.active.before", "registry.active.after"]
#: In the order in which one deployment comes to them. Each run repeats what the one before was killed in.
BUILDING = [
    "registry.planned.before",
    "registry.planned.after",
    "registry.recalculating.before",
    "registry.recalculating.after",
    "log.commit.before_transaction",
    "log.commit.after_transaction",
    "build.round_ended",
    "registry.ready.before",
    "registry.ready.after",
]
PUBLISHING = [
    "registry.publishing.before",
    "registry.publishing.after",
    "cutover.staged",
    "log.cutover.before_transaction",
    "log.cutover.inside_transaction",
    "log.cutover.after_transaction",
]
DELETING = [
    "registry.discarded.before",
    "registry.discarded.after",
    "generation.delete.topics_gone",
    "generation.delete.state_gone",
    "registry.forgotten.before",
    "registry.forgotten.after",
]
MIGRATING = [
    "migration.before_clone",
    "migration.after_clone",
    "migration.after_commit",
    "log.commit.before_transaction",
    "log.commit.after_transaction",
    "build.round_ended",
]
#: A version that was active before is on its way back, and given up for a third one.
GIVING_UP = ["registry.retired.before", "registry.retired.after"]


class World:
    """A log, the versions that are deployed on it, and what each of them should have published."""

    service = SERVICE

    def __init__(self, folder):
        self.log = open_log(folder / "log")
        self.log.create_topic("payments", TopicConfig(partitions=3))
        self.sent = []

    def send(self, count):
        first = len(self.sent)
        rows = [{"account": f"a{n % 23}", "id": n, "amount": n * 7 % 100} for n in range(first, first + count)]
        self.sent += rows
        self.log.append(
            "payments",
            pl.DataFrame(
                {
                    "key": [row["account"].encode() for row in rows],
                    "value": [json.dumps({"id": row["id"], "amount": row["amount"]}).encode() for row in rows],
                    "ts": [1_000 + row["id"] for row in rows],
                }
            ),
        )

    def start(self, version, *options, **environment):
        command = [sys.executable, "-m", "everstate.cli.main", "run", str(self.service), "--log", self.log.url]
        command += ["--memory", "1g", "--cores", "2", *options]
        given = {
            "EVERSTATE_TEST_VERSION": str(version),
            "EVERSTATE_APPROVAL": "approve",
            "EVERSTATE_RECALCULATION_RECORDS": "40",
            **environment,
        }
        return subprocess.Popen(
            command, env={**os.environ, **given}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def run(self, version, **environment):
        process = self.start(version, "--once", **environment)
        output, _ = process.communicate(timeout=600)
        return process.returncode, output

    def killed(self, version, point):
        before = self.balances()
        code, output = self.run(version, **{VARIABLE: point})
        assert code == -signal.SIGKILL, f"{point}\n{output}"
        KILLED[point.partition(":")[0]] += 1
        if not point.startswith(("log.cutover.after", *DELETING)):
            assert self.balances() == before, point

    def deployed(self, version):
        code, output = self.run(version)
        assert code == 0, output

    def balances(self):
        if "balances" not in self.log.topics():
            return {}
        latest = self.log.latest("balances").select("key", "value").iter_rows()
        return {key.decode(): json.loads(value) for key, value in latest}

    def expected(self, version):
        found = {}
        for row in self.sent:
            if int(row["account"][1:]) % 7 != version:
                entry = found.setdefault(row["account"], {"total": version % 2, "payments": 0})
                entry["total"] += row["amount"]
                entry["payments"] += 1
        return found

    def records(self, topic):
        partitions = range(self.log.describe(topic).config.partitions)
        return [r for p in partitions for r in to_records(topic, self.log.read(topic, p, 0))]

    def check(self, version):
        """The table is the version's, nothing was written twice in a row, and a stream's record came once."""
        assert self.balances() == self.expected(version)
        last = {}
        for record in self.records("balances"):
            assert last.get(record.key) != record.value
            last[record.key] = record.value
        published = Counter(json.loads(record.value)["id"] for record in self.records("even"))
        assert max(published.values(), default=1) == 1
        for output in ("balances", "even"):
            history = Registry(self.log, "changing").read(output)
            assert history.building is None
            assert [g.status for g in history.generations].count(Status.ACTIVE) == 1


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.log.close()


def test_crash_points_of_deployments_are_all_tried():
    tried = {*FIRST, *BUILDING, *PUBLISHING, *DELETING, *GIVING_UP, *MIGRATING}
    elsewhere = {*test_engine_crash.POINTS, *test_log_crash.POINTS, *test_history_crash.POINTS, *TAKING_OVER}
    elsewhere |= {*test_spark_steps_crash.POINTS, *(point for point in SHARES if point.startswith("kafka."))}
    assert set(CRASH_POINTS) == tried | elsewhere


@pytest.mark.long
def test_deployment_killed_in_the_cutover_publishes_only_the_difference(world):
    world.send(60)
    world.deployed(1)
    world.check(1)
    world.killed(2, "log.cutover.inside_transaction")
    world.send(30)
    world.deployed(2)
    world.check(2)


class MovingWorld(World):
    """The same for a service whose state is converted."""

    service = SERVICE.with_name("moving_service.py")

    def expected(self, version):
        found = {}
        for row in self.sent:
            found[row["account"]] = found.get(row["account"], 0) + row["amount"] * 10**version
        return found

    def check(self, version):
        assert self.balances() == self.expected(version)
        last = {}
        for record in self.records("balances"):
            assert last.get(record.key) != record.value
            last[record.key] = record.value
        history = Registry(self.log, "moving").read("balances")
        assert history.building is None
        return history


@pytest.fixture
def moving(tmp_path):
    world = MovingWorld(tmp_path)
    yield world
    world.log.close()


@pytest.mark.long
def test_migration_killed_after_its_checkpoint_was_cloned_begins_again(moving):
    for _ in range(2):
        moving.send(40)
        moving.deployed(1)
    moving.killed(2, "migration.after_clone")
    moving.send(10)
    moving.deployed(2)
    history = moving.check(2)
    assert [event.why for event in history.audit if "cannot be migrated" in event.why] == []


@pytest.mark.long
def test_migration_killed_at_every_point_in_turn_ends_as_an_undisturbed_one(moving):
    for _ in range(2):
        moving.send(40)
        moving.deployed(1)
    for point in [*MIGRATING, "registry.ready.after", "log.cutover.inside_transaction"]:
        moving.send(3)
        moving.killed(2, point)
    moving.deployed(2)
    history = moving.check(2)
    assert [event.why for event in history.audit if "cannot be migrated" in event.why] == []
    # The next function is wrong: what was made with it is discarded, and recalculated.
    moving.send(5)
    moving.deployed(2)
    for point in ("registry.discarded.before", "generation.delete.topics_gone", "registry.forgotten.after"):
        moving.killed(3, point)
    moving.send(5)
    moving.deployed(3)
    history = moving.check(3)
    assert any("after the conversion" in event.why for event in history.audit)


@pytest.mark.long
def test_deployment_killed_at_every_point_in_turn_ends_as_an_undisturbed_one(world):
    world.send(60)
    for point in FIRST:
        world.killed(1, point)
    world.deployed(1)
    world.check(1)
    for point in [*BUILDING, *PUBLISHING]:
        world.send(3)
        world.killed(2, point)
    world.deployed(2)
    world.check(2)
    # A third version: the first one's state is no longer kept.
    for point in DELETING:
        world.killed(3, point)
    world.send(20)
    world.deployed(3)
    world.check(3)
    # The version before is still there. On the way back to it, another one is deployed that does not get far.
    world.killed(2, "registry.recalculating.after")
    for point in GIVING_UP:
        world.killed(4, point)
    # Back without a replay, and killed on the way.
    for point in ("registry.recalculating.after", "build.round_ended", "log.cutover.inside_transaction"):
        world.send(3)
        world.killed(2, point)
    world.deployed(2)
    world.check(2)
