"""A broker that is killed in the middle of things and comes back."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from everstate.log import TopicConfig, open_log
from everstate.log.crash import intercepted
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
