"""A cluster and a broker for tests of both, and what a service on them should give."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import polars as pl
import pytest

from everstate.log import TopicConfig, open_log
from tests import brokers
from tests.cluster.standalone import Standalone, bare_python

SERVICE = Path(__file__).with_name("spending_service.py")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    started = Standalone(tmp_path_factory.mktemp("cluster"))
    yield started
    started.stop()


@pytest.fixture(scope="session")
def python(tmp_path_factory):
    """An interpreter without Everstate."""
    return bare_python(tmp_path_factory.mktemp("bare"))


class World:
    """A service on a cluster and a broker, and what its sources hold."""

    def __init__(self, cluster, servers, python, folder):
        self.cluster, self.python, self.folder = cluster, python, folder
        self.address = f"kafka://{servers}"
        self.log = open_log(self.address, staging=folder / "staging")
        self.log.create_topic("orders", TopicConfig(partitions=3, compact=True))
        self.orders = {}
        self._random = random.Random(7)

    def send(self, count, customers=40):
        """Some orders, of which some replace earlier ones and some are removed."""
        rows = []
        for _ in range(count):
            order = f"o{self._random.randrange(count * 2)}"
            removed = order in self.orders and self._random.random() < 0.1
            customer, amount = f"c{self._random.randrange(customers)}", float(self._random.randrange(1, 100))
            value = {"order_id": order, "customer": customer, "amount": amount}
            self.orders.pop(order, None)
            if not removed:
                self.orders[order] = value
            rows.append((order.encode(), None if removed else json.dumps(value).encode()))
        frame = pl.DataFrame(rows, schema={"key": pl.Binary, "value": pl.Binary}, orient="row")
        self.log.append("orders", frame)

    def command(self, *words, main="everstate.cli.main"):
        place = ["--log", self.address, "--state-dir", str(self.folder / "shared")]
        return [sys.executable, "-m", main, "run", str(SERVICE), "--master", self.cluster.url, *place, *words]

    def environment(self, version=1, **more):
        given = {"EVERSTATE_TEST_VERSION": str(version), "EVERSTATE_APPROVAL": "approve", "EVERSTATE_MEMORY": "700m"}
        return {**os.environ, **given, "EVERSTATE_WORKER_PYTHON": str(self.python), **more}

    def run(self, version=1, *words, **more):
        """Drain the sources."""
        done = subprocess.run(
            self.command("--once", *words),
            env=self.environment(version, **more),
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr + self.cluster.said()
        return done

    def table(self, topic):
        frame = self.log.latest(topic)
        return {key.decode(): json.loads(value) for key, value in frame.select("key", "value").iter_rows()}

    def expected(self, version=1):
        """What a plain calculation gives."""
        totals = defaultdict(lambda: {"total": 0.0, "orders": 0, "large": 0})
        for order in self.orders.values():
            if version == 1 or order["amount"] > 10:
                total = totals[order["customer"]]
                total["total"] += order["amount"]
                total["orders"] += 1
                total["large"] += order["amount"] >= 50
        sizes = defaultdict(int)
        for total in totals.values():
            sizes[str(total["orders"])] += 1
        return dict(totals), {size: {"customers": count} for size, count in sizes.items()}

    def outputs(self):
        return self.table("totals"), self.table("sizes")


@pytest.fixture
def world(cluster, broker, python, tmp_path):
    brokers.wipe(broker)
    made = World(cluster, broker, python, tmp_path)
    yield made
    made.log.close()
