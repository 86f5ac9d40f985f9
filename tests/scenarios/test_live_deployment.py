"""Deployments beside a live process: the old version goes on, exactly one publishes, the other is told."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from everstate.generations.registry import Registry
from everstate.log.crash import VARIABLE
from everstate.log.descriptions import TopicConfig
from everstate.log.opening import open_log
from everstate.log.records import to_records
from tests.figures import KILLED

pytestmark = [pytest.mark.spark, pytest.mark.recovery]

SERVICE = Path(__file__).with_name("live_service.py")
PATIENCE_S = 240
TAKING_OVER = ["deployment.before_takeover", "deployment.after_takeover"]


class Live:
    """A log, and processes of versions of the service."""

    def __init__(self, folder):
        self.log = open_log(folder / "log")
        self.log.create_topic("events", TopicConfig(partitions=3))
        self.sent = []
        self.processes = []

    def send(self, count):
        first = len(self.sent)
        rows = [{"account": f"a{n % 13}", "id": n, "amount": n * 7 % 50} for n in range(first, first + count)]
        self.sent += rows
        values = [json.dumps({"id": row["id"], "amount": row["amount"]}).encode() for row in rows]
        keys = [row["account"].encode() for row in rows]
        self.log.append("events", pl.DataFrame({"key": keys, "value": values, "ts": [row["id"] for row in rows]}))

    def start(self, version, *options, command="run", **environment):
        arguments = [sys.executable, "-m", "everstate.cli.main", command, str(SERVICE), "--log", self.log.url, *options]
        settings = {"HEARTBEAT": "0.5", "MEMORY": "1g", "CORES": "2"}
        given = {f"EVERSTATE_{name}": value for name, value in settings.items()}
        given |= {"EVERSTATE_TEST_VERSION": str(version), **environment}
        process = subprocess.Popen(
            arguments, env={**os.environ, **given}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.processes.append(process)
        return process

    def suspend(self, process):
        """Stop a process where it does not hold the log's database: no other could go on as long as it does."""
        database = sqlite3.connect(Path(self.log.url) / "manifest.db", timeout=1, isolation_level=None)
        try:
            while True:
                os.kill(process.pid, signal.SIGSTOP)
                try:
                    database.execute("BEGIN IMMEDIATE")
                    database.execute("ROLLBACK")
                except sqlite3.OperationalError:
                    os.kill(process.pid, signal.SIGCONT)
                    time.sleep(0.05)
                else:
                    return
        finally:
            database.close()

    def ended(self, process):
        output, _ = process.communicate(timeout=PATIENCE_S)
        return process.returncode, output

    def stop(self, process):
        process.send_signal(signal.SIGTERM)
        return self.ended(process)

    def until(self, condition, *processes):
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline
            for process in processes:
                assert process.poll() is None, process.stdout.read()
            time.sleep(0.2)

    def totals(self):
        if not self.log.has_topic("totals"):
            return {}
        rows = self.log.latest("totals").select("key", "value").iter_rows()
        return {key.decode(): json.loads(value) for key, value in rows}

    def expected(self, version):
        found = {}
        for row in self.sent:
            if row["account"] != f"a{version}":
                entry = found.setdefault(row["account"], {"total": 0, "events": 0})
                entry["total"] += row["amount"] * (1 if row["id"] % 3 else version)
                entry["events"] += 1
        return found

    def shows(self, version):
        return lambda: self.totals() == self.expected(version)

    def active(self):
        active = Registry(self.log, "live").read("totals").active
        return active.number if active else None

    def records(self):
        partitions = range(self.log.describe("totals").config.partitions)
        return [r for p in partitions for r in to_records("totals", self.log.read("totals", p, 0))]

    def check_sequence(self):
        """Generations follow each other on every partition, and nothing was written twice in a row."""
        last = {}
        generations = {}
        for record in self.records():
            assert last.get(record.key) != record.value
            last[record.key] = record.value
            number = int(dict(record.headers)["es-generation"])
            assert number >= generations.get(record.partition, 0)
            generations[record.partition] = number


@pytest.fixture
def live(tmp_path):
    live = Live(tmp_path)
    yield live
    for process in live.processes:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGCONT)
            process.kill()
            process.wait()
    live.log.close()


@pytest.mark.long
def test_new_version_beside_a_live_one_takes_over_and_the_old_process_is_told(live):
    live.send(60)
    old = live.start(1)
    live.until(live.shows(1), old)
    before = len(live.records())
    new = live.start(2)
    live.send(20)
    live.until(lambda: live.active() == 2, new)
    code, output = live.ended(old)
    assert code == 0, output
    assert f"Process {new.pid} now runs service live in place of this one" in output
    assert "error" not in output
    assert "Traceback" not in output
    live.send(20)
    live.until(live.shows(2), new)
    assert live.stop(new)[0] == 0
    live.check_sequence()
    cutover = [r for r in live.records()[before:] if dict(r.headers)["es-generation"] == b"2" and r.key == b"a2"]
    assert [record.value for record in cutover] == [None]


@pytest.mark.long
def test_new_version_killed_around_the_takeover_has_published_nothing_and_the_next_start_goes_on(live):
    live.send(60)
    old = live.start(1)
    live.until(live.shows(1), old)
    for point in TAKING_OVER:
        live.send(20)
        code, output = live.ended(live.start(2, **{VARIABLE: point}))
        assert code == -signal.SIGKILL, output
        KILLED[point] += 1
        assert live.active() == 1
        if point == TAKING_OVER[0]:
            live.until(live.shows(1), old)
    code, output = live.ended(old)
    assert code == 0, output
    assert {dict(record.headers)["es-generation"] for record in live.records()} == {b"1"}
    live.send(20)
    new = live.start(2)
    live.until(live.shows(2), new)
    assert live.stop(new)[0] == 0
    live.check_sequence()


@pytest.mark.long
def test_suspended_old_process_that_wakes_up_after_the_takeover_publishes_nothing(live):
    live.send(40)
    old = live.start(1)
    live.until(live.shows(1), old)
    live.suspend(old)
    live.send(20)
    new = live.start(2)
    live.until(live.shows(2), new)
    os.kill(old.pid, signal.SIGCONT)
    code, output = live.ended(old)
    assert code == 0, output
    assert "in place of this one" in output
    live.send(20)
    live.until(live.shows(2), new)
    assert live.stop(new)[0] == 0
    live.check_sequence()


@pytest.mark.long
def test_ordinary_deploy_hosts_the_old_version_while_the_new_one_is_built(live):
    live.send(40)
    old = live.start(1)
    live.until(live.shows(1), old)
    assert live.stop(old)[0] == 0
    live.send(600)
    new = live.start(2, EVERSTATE_RECALCULATION_RECORDS="60")
    live.until(lambda: live.active() == 2, new)
    live.until(live.shows(2), new)
    assert live.stop(new)[0] == 0
    live.check_sequence()
    # What came while nobody ran was published by the old version, before the new one took over.
    first = [json.loads(r.value) for r in live.records() if dict(r.headers)["es-generation"] == b"1" and r.value]
    assert max(value["events"] for value in first) > 40 // 13 + 1


@pytest.mark.long
def test_two_deployers_at_once_end_with_the_later_version(live):
    live.send(40)
    old = live.start(1)
    live.until(live.shows(1), old)
    live.send(400)
    slow = live.start(2, EVERSTATE_RECALCULATION_RECORDS="20")
    live.until(lambda: Registry(live.log, "live").read("totals").building is not None, old, slow)
    new = live.start(3)
    code, output = live.ended(slow)
    assert code == 0, output
    assert f"Process {new.pid} now deploys service live in place of this one" in output
    live.until(live.shows(3), new)
    assert live.ended(old)[0] == 0
    assert live.stop(new)[0] == 0
    live.check_sequence()
    assert {int(dict(record.headers)["es-generation"]) for record in live.records()} == {1, live.active()}


@pytest.mark.long
def test_suspended_deployer_that_wakes_up_later_publishes_nothing(live):
    live.send(40)
    code, output = live.ended(live.start(1, "--once"))
    assert code == 0, output
    live.send(400)
    slow = live.start(2, EVERSTATE_RECALCULATION_RECORDS="20")
    live.until(lambda: Registry(live.log, "live").read("totals").building is not None, slow)
    live.suspend(slow)
    code, output = live.ended(live.start(2, "--once", "--take-over"))
    assert code == 0, output
    assert live.totals() == live.expected(2)
    written = len(live.records())
    os.kill(slow.pid, signal.SIGCONT)
    code, output = live.ended(slow)
    assert code == 0, output
    assert len(live.records()) == written


@pytest.mark.long
def test_function_that_raises_near_the_end_of_a_recalculation_leaves_the_old_version_in_place(live):
    live.send(200)
    old = live.start(1)
    live.until(live.shows(1), old)
    code, output = live.ended(live.start(2, "--once", EVERSTATE_TEST_FAILS_AT="198"))
    assert code == 1, output
    assert "too much" in output
    assert "live_service.py" in output
    live.send(20)
    live.until(live.shows(1), old)
    assert live.stop(old)[0] == 0
    assert {dict(record.headers)["es-generation"] for record in live.records()} == {b"1"}


@pytest.mark.long
def test_rollback_beside_a_live_process_replaces_it_and_ends(live):
    live.send(60)
    assert live.ended(live.start(1, "--once"))[0] == 0
    newer = live.start(2)
    live.until(lambda: live.active() == 2, newer)
    live.send(20)
    code, output = live.ended(live.start(2, "--approve", command="rollback"))
    assert code == 0, output
    assert "totals: generation 1 is active again, in place of 2." in output
    assert "would deploy that again" in output
    code, output = live.ended(newer)
    assert code == 0, output
    assert live.active() == 1
    assert live.totals() == live.expected(1)
