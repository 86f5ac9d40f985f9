"""A log and state that an earlier Everstate has made: what is deployed goes on, forwards and backwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from everstate.generations.generation import Status
from everstate.generations.registry import Registry
from everstate.log.opening import open_log
from tests.fixtures.before.make import orders, people, prices, send

FOLDER = Path(__file__).parents[1] / "fixtures" / "before"
OUTPUTS = ("totals", "named", "balances", "streaks", "worth")


class Shop:
    """The service on the log as it was left, with the numbers of the orders that its tables must add up to."""

    def __init__(self, folder):
        with tarfile.open(FOLDER / "made.tar.gz") as archive:
            archive.extractall(folder, filter="data")
        self.log = open_log(folder / "log")
        self.orders = orders(0, 60)
        self.names = dict(people(1)) | dict(people(2)) | dict(people(3))

    def command(self, version, command, *arguments):
        environment = {**os.environ, "EVERSTATE_TEST_VERSION": str(version), "EVERSTATE_MEMORY": "1g"}
        words = [sys.executable, "-m", "everstate.cli.main", command, str(FOLDER / "service.py"), *arguments]
        done = subprocess.run(
            [*words, "--log", self.log.url], env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def plan(self, version):
        actions = json.loads(self.command(version, "plan", "--json"))["actions"]
        return {action["output"]: action["kind"] for action in actions}

    def send_more(self):
        new = orders(60, 20)
        self.orders += new
        send(self.log, "orders", new, 5_000)

    def table(self, topic):
        return {key.decode(): json.loads(value) for key, value in self.log.latest(topic)[["key", "value"]].iter_rows()}

    def records(self, topic):
        return sum(self.log.describe(topic).end.values())

    def totals(self, skipped):
        found = {}
        for customer, order in self.orders:
            if customer != skipped:
                entry = found.setdefault(customer, {"total": 0, "orders": 0})
                entry["total"] += order["amount"]
                entry["orders"] += 1
        return found

    def generation(self, output):
        return Registry(self.log, "shop").read(output).active


@pytest.fixture
def shop(tmp_path):
    shop = Shop(tmp_path)
    yield shop
    shop.log.close()


@pytest.mark.slow
def test_plan_of_the_deployed_version_changes_nothing(shop):
    assert set(shop.plan(2).values()) == {"nothing"}


@pytest.mark.slow
def test_plan_of_the_version_before_restores_what_is_kept_of_it(shop):
    assert shop.plan(1) == dict.fromkeys(("totals", "named", "balances"), "restore") | dict.fromkeys(
        ("streaks", "worth"), "nothing"
    )


def test_generations_are_those_that_were_made(shop):
    found = {output: Registry(shop.log, "shop").read(output).generations for output in OUTPUTS}
    numbers = {output: [(g.number, g.status) for g in generations] for output, generations in found.items()}
    two = [(1, Status.RETIRED), (2, Status.ACTIVE)]
    assert numbers == {
        "totals": two,
        "named": two,
        "balances": two,
        "streaks": [(1, Status.ACTIVE)],
        "worth": [(1, Status.ACTIVE), (2, Status.READY)],
    }


@pytest.mark.long
@pytest.mark.spark
def test_deployed_version_goes_on_and_back_and_the_prepared_one_takes_over(shop):
    written = {output: shop.records(output) for output in OUTPUTS}
    shop.send_more()
    shop.command(3, "run", "--once")
    assert shop.table("totals") == shop.totals("c1")
    assert shop.table("named") == {
        customer: total | shop.names[customer]
        for customer, total in shop.totals("c1").items()
        if customer in shop.names
    }
    assert shop.table("balances") == {key: entry["total"] * 10 for key, entry in shop.totals("").items()}
    assert shop.table("worth") == {key: {"worth": entry["price"] * 3} for key, entry in prices(3)}
    assert shop.records("totals") - written["totals"] == 4, "only the customers of the new orders are written"
    assert shop.records("streaks") - written["streaks"] == 20, "a stream goes on without a replay"
    assert [shop.generation(output).number for output in OUTPUTS] == [2, 2, 2, 1, 2]

    shop.command(3, "rollback", "totals", "--to", "1", "--approve")
    assert shop.table("totals") == shop.totals("")
    assert shop.generation("totals").number == 1
