"""Clusters that are small, slow to decide, or made by hand."""

from __future__ import annotations

import os
import threading
import time

import pytest

import everstate as es
from everstate.engine import execution
from everstate.errors import LogError
from everstate.fingerprints.outputs import print_unit
from everstate.generations.deploy.outputs import PreparedOutput
from everstate.generations.deploy.settings import Settings
from everstate.generations.generation import Generation, Status
from everstate.generations.state.folder import OutputFolder
from everstate.log import TopicConfig, abilities, open_log
from everstate.log.kafka import clients
from scripts import kafka_broker
from tests import brokers
from tests.kafka.conftest import batch, values

pytestmark = [pytest.mark.kafka]


def test_cluster_with_few_copies_says_so_once_at_the_start_of_a_service(log, caplog):
    lease = log.acquire("service")
    assert caplog.text.count("This cluster keeps 1 copy of the service's topics, where 3 are usual") == 1
    caplog.clear()
    log.create_topic("totals", TopicConfig(compact=True))
    log.acquire("service:build")
    log.commit(*batch(log, lease, {"totals": [("a", "1")]}, 0))
    assert caplog.text == ""


@pytest.mark.long
def test_cluster_that_is_too_small_for_its_transactions_is_named_within_seconds(tmp_path):
    brokers.require()
    folder = tmp_path / "own"
    settings = {"transaction.state.log.replication.factor": 3}
    try:
        broker = kafka_broker.start(folder, owner=os.getpid(), settings=settings)
        log = open_log(f"kafka://{broker.address}", staging=tmp_path / "staging")
        began = time.monotonic()
        with pytest.raises(LogError, match=r"keeps 3 copies of them \(transaction.state.log.*\), and has 1 broker"):
            log.acquire("service")
        assert time.monotonic() - began < 20
        log.close()
    finally:
        kafka_broker.stop(folder)


def test_wait_for_the_open_transaction_of_a_process_that_was_lost_is_shown_and_ends(log, foreign, caplog, monkeypatch):
    log.create_topic("totals", TopicConfig(compact=True))
    lease = log.acquire("service")
    log.commit(*batch(log, lease, {"totals": [("a", "1")]}, 0))
    log.close()
    monkeypatch.setattr(clients, "_SLOW_S", 0.2)
    foreign.begin_transaction()
    foreign.produce("__everstate.service.commits", b"lost", b"lost", partition=0)
    foreign.flush(10)
    over = threading.Timer(1.5, foreign.abort_transaction)
    over.start()
    assert log.commit(*batch(log, lease, {"totals": [("a", "2")]}, 1)).status == "committed"
    over.join()
    waited = "Waiting up to 90 s for an open transaction that has written to __everstate.service.commits"
    assert waited in caplog.text
    assert values(log, "totals") == ["1", "2"]


def test_sign_of_life_does_not_wait_for_what_another_thread_waits_for(log, foreign):
    lease = log.acquire("service")
    journal = log._registry.journal("service")
    foreign.begin_transaction()
    foreign.produce(journal.topic, b"lost", b"lost", partition=0)
    foreign.flush(10)
    waiting = threading.Thread(target=journal.read, kwargs={"settled": True})
    waiting.start()
    try:
        began = time.monotonic()
        log.heartbeat(lease)
        assert time.monotonic() - began < 20
        assert waiting.is_alive()
    finally:
        foreign.abort_transaction(10)
        waiting.join()


class Running:
    """What a query answers that has nothing to do."""

    isActive = True  # noqa: N815 - Spark's name


def test_service_that_runs_says_which_source_an_open_transaction_of_another_program_holds_back(
    log, foreign, tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr(abilities, "LOOK_S", 0.0)
    monkeypatch.setattr(execution, "_LOOK_AT_TOPICS_S", 0.0)
    app = es.Service("shop")
    app.table("orders", key="k", schema={"k": str, "a": int}).filter(es.col("a") > 0).to("totals")
    [unit] = app.units()
    for topic in ("orders", "totals"):
        log.create_topic(topic, TopicConfig(compact=True))
    generation = Generation(
        number=1,
        status=Status.ACTIVE,
        fingerprint="",
        description=print_unit(unit, policy="dead-letter", settings={}).to_json(),
        shards=1,
        initial={"orders": {0: 0}},
        code="",
        policy="dead-letter",
    )
    folder = OutputFolder(tmp_path / "state" / "shop" / "totals" / "1")
    output, lease = PreparedOutput(unit, folder, generation), log.acquire("shop")
    query = execution.SparkExecution(lambda: None, lambda: 2, output, folder, log, lease, Settings())
    query._query, query._began, query._watched = Running(), time.monotonic(), time.monotonic()
    foreign.begin_transaction()
    foreign.produce("orders", b"{}", b"a", partition=0)
    foreign.flush(10)
    assert [query.active() for _ in range(3)] == [True] * 3
    assert caplog.text.count("Topic orders, partition 0: an open transaction of another program holds back") == 1
    foreign.abort_transaction(10)
