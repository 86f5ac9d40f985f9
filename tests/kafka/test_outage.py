"""A broker that is killed in the middle of things and comes back."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from everstate.errors import LogUnavailableError
from everstate.log import Cutover, TopicConfig, open_log
from everstate.log.crash import intercepted
from everstate.log.kafka import clients, cutovers, journal, registry, topics, writer
from everstate.log.kafka.writer import Transaction
from scripts import kafka_broker
from tests import brokers
from tests.kafka.conftest import batch, frame, values

pytestmark = [pytest.mark.kafka, pytest.mark.long]


@pytest.fixture
def own(tmp_path):
    """A broker that may be killed."""
    brokers.require()
    folder = tmp_path / "own"
    yield kafka_broker.start(folder, owner=os.getpid()), folder
    kafka_broker.stop(folder)


@pytest.mark.parametrize("seconds", [3, 60])
def test_broker_that_is_killed_in_a_transaction_and_comes_back_gets_the_batch_once(own, tmp_path, seconds):
    broker, folder = own
    port = int(broker.address.rpartition(":")[2])
    log = open_log(f"kafka://{broker.address}", staging=tmp_path / "staging")
    log.create_topic("totals", TopicConfig(compact=True))
    lease = log.acquire("service")
    log.commit(*batch(log, lease, {"totals": [("a", "0")]}, 0))
    killed = []

    def come_back():
        threading.Event().wait(seconds)
        kafka_broker.start(folder, owner=os.getpid(), port=port)

    back = threading.Thread(target=come_back)

    def kill(point):
        if point == "log.commit.inside_transaction" and not killed:
            killed.append(point)
            os.kill(broker.java, signal.SIGKILL)
            back.start()

    with intercepted(kill):
        assert log.commit(*batch(log, lease, {"totals": [("a", "1")]}, 1)).status == "committed"
    back.join()
    assert values(log, "totals") == ["0", "1"]
    log.heartbeat(lease)
    log.append("totals", frame(("b", "2")))
    assert log.commit(*batch(log, lease, {"totals": [("a", "2")]}, 2)).status == "committed"
    assert values(log, "totals") == ["0", "1", "2", "2"]
    log.close()


@pytest.mark.parametrize("chunk", [1, 2])
def test_broker_that_is_killed_in_a_cutover_and_comes_back_gets_the_difference_once(own, tmp_path, chunk, monkeypatch):
    monkeypatch.setattr(cutovers, "CHUNK", 2)
    broker, folder = own
    port = int(broker.address.rpartition(":")[2])
    log = open_log(f"kafka://{broker.address}", staging=tmp_path / "staging")
    log.create_topic("totals", TopicConfig(compact=True))
    lease = log.acquire("service")
    log.commit(*batch(log, lease, {"totals": [("old", "1"), ("a", "1")]}, 0))
    news = [("a", "2"), ("b", "2"), ("old", None)]
    made, staged = batch(log, lease, {"totals": news}, 0, generation="g2", query_id="q2", kind="cutover")
    ends = log.end_offsets(["totals"])
    cutover = Cutover(commit=made, leases=(lease,), expected=ends, documents={"registry": "g2"})
    rows, killed = Transaction.rows, []

    def kill(self, *given, **more):
        rows(self, *given, **more)
        killed.append(given)
        if len(killed) == chunk:
            os.kill(broker.java, signal.SIGKILL)
            back.start()

    back = threading.Thread(target=lambda: kafka_broker.start(folder, owner=os.getpid(), port=port))
    monkeypatch.setattr(Transaction, "rows", kill)
    assert log.cutover(cutover, staged).status == "committed"
    back.join()
    # Each chunk once, values first.
    assert values(log, "totals") == ["1", "1", "2", "2", None]
    assert log.get_meta("service", "registry") == "g2"
    assert log.unfinished_cutover("service", "output") is None
    log.close()


def test_broker_that_answers_nothing_is_named_by_whatever_is_asked(own, tmp_path, monkeypatch):
    for module in (clients, journal, registry, topics, writer):
        monkeypatch.setattr(module, "ASK_S", 2.0)
    monkeypatch.setattr(writer, "PATIENCE_S", 3.0)
    broker, _ = own
    log = open_log(f"kafka://{broker.address}", staging=tmp_path / "staging")
    log.create_topic("totals", TopicConfig(compact=True))
    lease = log.acquire("service")
    log.append("totals", frame(("a", "0")))
    (part,) = log.splits("totals", 0, 0, 1, max_records=9)
    made = batch(log, lease, {"totals": [("a", "1")]}, 0)
    asked = [
        log.topics,
        lambda: log.has_topic("totals"),
        lambda: log.describe("totals"),
        lambda: log.create_topic("another"),
        lambda: log.delete_topic("totals"),
        lambda: log.end_offsets(["totals"]),
        lambda: log.held_back(["totals"]),
        lambda: log.read("totals", 0, 0),
        lambda: log.read_split(part),
        lambda: log.latest("totals"),
        lambda: log.append("totals", frame(("b", "1"))),
        lambda: log.commit(*made),
        lambda: log.heartbeat(lease),
        lambda: log.holder("service"),
        lambda: log.metas("service"),
        lambda: log.set_meta("service", "name", "value"),
        lambda: log.set_meta("service", "name", "value", leases=[lease]),
    ]
    os.kill(broker.java, signal.SIGSTOP)
    try:
        for ask in asked:
            with pytest.raises(LogUnavailableError):
                ask()
    finally:
        os.kill(broker.java, signal.SIGCONT)
    log.close()
