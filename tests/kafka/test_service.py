"""A whole service on Spark and Kafka: killed around its commits, changed, and never reset downstream."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from everstate.log import TopicConfig
from everstate.log.crash import VARIABLE

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

SERVICE = Path(__file__).with_name("shop_service.py")
ORDERS = [("o1", "keyA", 5.0), ("o2", "keyB", 20.0), ("o3", "keyC", 30.0), ("o4", "keyB", 1.0)]


class Downstream:
    """A table that follows the topic and is never reset; it counts what it was sent."""

    def __init__(self, log, topic):
        self.log, self.topic, self.rows, self.position = log, topic, {}, {}

    def follow(self):
        """Take in what has come; returns it."""
        came = []
        for partition, start in self.log.begin_offsets([self.topic])[self.topic].items():
            frame = self.log.read(self.topic, partition, self.position.get(partition, start))
            for offset, key, value in frame.select("offset", "key", "value").iter_rows():
                self.position[partition] = offset + 1
                came.append((key.decode(), None if value is None else json.loads(value)))
        for key, value in came:
            if value is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = value
        return dict(came) if len(dict(came)) == len(came) else came


@pytest.fixture
def world(log, servers, tmp_path):
    log.create_topic("orders", TopicConfig(partitions=2, compact=True))

    def send(rows):
        log.append(
            "orders",
            pl.DataFrame(
                {
                    "key": [order.encode() for order, _, _ in rows],
                    "value": [
                        json.dumps({"order_id": order, "customer": customer, "amount": amount}).encode()
                        for order, customer, amount in rows
                    ],
                }
            ),
        )

    def run(version, crash=None):
        """Drain the sources with a version; with a crash point, be killed there."""
        command = [sys.executable, "-m", "everstate.cli.main", "run", str(SERVICE), "--once"]
        command += ["--log", f"kafka://{servers}", "--state-dir", str(tmp_path / "state"), "--memory", "1g"]
        environment = {**os.environ, "EVERSTATE_TEST_VERSION": str(version), "EVERSTATE_APPROVAL": "approve"}
        if crash:
            environment[VARIABLE] = crash
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        expected = -signal.SIGKILL if crash else 0
        assert done.returncode == expected, done.stdout + done.stderr

    send(ORDERS)
    return send, run


def test_service_killed_around_its_commit_and_changed_leaves_downstream_right(world, log):
    _, run = world
    run(1, crash="log.commit.after_transaction")
    downstream = Downstream(log, "customer-totals")
    first = {
        "keyA": {"total": 5.0, "orders": 1},
        "keyB": {"total": 21.0, "orders": 2},
        "keyC": {"total": 30.0, "orders": 1},
    }
    assert downstream.follow() == first
    run(1)
    assert downstream.follow() == {}
    run(2)
    assert downstream.follow() == {"keyA": None, "keyB": {"total": 20.0, "orders": 1}}
    assert downstream.rows == {"keyB": {"total": 20.0, "orders": 1}, "keyC": first["keyC"]}


@pytest.mark.long
def test_service_killed_inside_transactions_publishes_everything_once(world, log):
    send, run = world
    run(1, crash="log.commit.inside_transaction")
    assert log.latest("customer-totals").height == 0
    run(1)
    downstream = Downstream(log, "customer-totals")
    assert set(downstream.follow()) == {"keyA", "keyB", "keyC"}
    send([("o1", "keyA", 50.0), ("o2", "keyB", 2.0), ("o5", "keyD", 7.0)])
    for point in ("log.cutover.inside_transaction", "log.cutover.after_transaction"):
        run(2, crash=point)
    run(2)
    came = downstream.follow()
    assert came == {"keyA": {"total": 50.0, "orders": 1}, "keyB": None}
    assert downstream.rows == {"keyA": {"total": 50.0, "orders": 1}, "keyC": {"total": 30.0, "orders": 1}}
    run(1)
    assert downstream.follow() == {"keyB": {"total": 3.0, "orders": 2}, "keyD": {"total": 7.0, "orders": 1}}
    run(1)
    assert downstream.follow() == {}
