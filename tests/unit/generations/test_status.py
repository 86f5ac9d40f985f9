"""What can be told of a service from its log: the real deployment, in one process, with a simulated log."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from types import SimpleNamespace

import everstate as es
from everstate.generations.deploy.change import Changes
from everstate.generations.deploy.executor import Tally
from everstate.generations.deploy.leases import Leases
from everstate.generations.report import Reporter, publish, read_report
from everstate.generations.status import GONE, RUNNING, STOPPED, deployed, status
from everstate.log import EmbeddedLog, Holder, MemoryLog, leasing
from tests.simulation.world import SERVICE, World


@dataclass
class Working:
    tally: Tally = field(default_factory=Tally)


def test_status_after_a_drained_deployment_has_no_lag():
    world = World(outputs=("balances", "doubled"))
    world.send(20)
    assert world.deploy(1) == "done"
    found = status(world.log, SERVICE)
    assert deployed(world.log) == [SERVICE]
    assert [(each.output, each.generation, each.lag_records, each.lag_seconds) for each in found.outputs] == [
        ("balances", 1, 0, None),
        ("doubled", 1, 0, None),
    ]
    assert all(each.batch_ms is not None and each.rate is None and each.build is None for each in found.outputs)
    world.send(3)
    balances, doubled = status(world.log, SERVICE).outputs
    assert (balances.lag_records, doubled.lag_records) == (3, 0)
    assert balances.lag_seconds is not None


def test_status_after_a_crash_while_building_says_how_far_it_got():
    world = World(outputs=("balances",))
    world.send(30)
    assert world.deploy(1) == "done"
    assert world.deploy(2, at=("build.round_ended", 1)) == "died"
    (balances,) = status(world.log, SERVICE).outputs
    assert (balances.generation, balances.build.generation) == (1, 2)
    assert balances.build.done + balances.build.left == 30
    assert balances.build.done > 0
    assert balances.build.rate is None


def test_status_of_a_process_that_died_with_its_lease_says_so(tmp_path):
    log = EmbeddedLog(tmp_path / "log")
    host = leasing.this_process().host
    log.acquire("shop", holder=Holder(host, 2_000_000_000, 1.0))
    assert status(log, "shop").process.state == GONE
    assert status(log, "shop").process.alive is False


def test_status_of_a_lease_that_was_given_back_is_stopped(tmp_path):
    log = EmbeddedLog(tmp_path / "log")
    lease = log.acquire("shop")
    assert status(log, "shop").process.state == RUNNING
    assert status(log, "shop").process.pid == lease.holder.pid
    assert "/" not in status(log, "shop").process.host
    log.release(lease)
    assert status(log, "shop").process.state == STOPPED


def running(execution):
    return Changes((SimpleNamespace(output="totals", execution=execution, build=None),))


def test_report_is_one_document_per_lease_and_written_only_if_it_changed(tmp_path):
    log = MemoryLog()
    lease = log.acquire("shop")
    changes = running(Working())
    reporter = Reporter(changes)
    for read in (0, 1000, 1000):
        changes.executions["totals"].tally.read = read
        publish(log, "shop", lease, reporter.report(building=False))
    assert list(log.metas("shop")) == ["status/shop"]
    assert read_report(log, "shop", "shop", lease.token)["outputs"]["totals"]["read"] == 1000
    assert read_report(log, "shop", "shop", lease.token + 1) == {}
    log.set_meta("shop", "status/shop", "not JSON")
    assert read_report(log, "shop", "shop", lease.token) == {}


def test_signs_of_life_tell_how_the_work_goes(tmp_path):
    log = EmbeddedLog(tmp_path / "log")
    leases = Leases(log, "shop", 0.01, lambda error: None, ())
    leases.take_publishing()
    leases.take_building()
    leases.report_with(Reporter(running(Working(Tally(read=5)))))
    deadline = time.monotonic() + 10
    while len(log.metas("shop", "status/")) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    token = leases.publishing().token
    leases.release()
    assert list(log.metas("shop")) == ["status/shop", "status/shop:build"]
    assert read_report(log, "shop", "shop", token)["outputs"]["totals"]["read"] == 5
    assert deployed(log) == []


def test_status_knows_from_the_last_commit_which_partition_time_waits_for():
    app = es.Service("timed")
    events = app.stream("events", key="k", schema={"n": int})
    events.group_by("k").window(es.tumbling("1m")).agg(n=es.count()).to("per-minute")
    driver = es.testing.Driver(app, partitions=2)
    driver.send("events", "a", {"n": 1}, ts=90_000, partition=1)
    (found,) = status(driver._deployment.topics, "timed").outputs
    assert str(found.waits_for) == "partition 0 of events, which has no time yet"
    driver.send("events", "a", {"n": 1}, ts=90_000, partition=0)
    (found,) = status(driver._deployment.topics, "timed").outputs
    assert found.waits_for is None
