from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from everstate.errors import ConfigurationError, LogDeniedError, LogError, LogUnavailableError
from everstate.log.kafka import KafkaLog, clients
from everstate.log.kafka.clients import Clients, told
from everstate.log.kafka.failures import named
from everstate.log.kafka.settings import ClientSettings
from everstate.log.kafka.topics import Topics


class Admin:
    """A cluster of some brokers that keep so many copies of transactions, or of topics."""

    def __init__(self, brokers, copies, *, there=False):
        self.brokers, self.copies, self.asked = brokers, copies, 0
        self.error = None if there else "unknown"

    def list_topics(self, *, topic, timeout):
        del timeout
        self.asked += 1
        return SimpleNamespace(
            brokers=dict.fromkeys(range(self.brokers)), topics={topic: SimpleNamespace(error=self.error)}
        )

    def describe_configs(self, resources, request_timeout):
        del request_timeout
        found = {"transaction.state.log.replication.factor": SimpleNamespace(value=str(self.copies))}
        return {resource: SimpleNamespace(result=lambda _: found) for resource in resources}


def connected(admin):
    made = Clients("host:9092", ClientSettings({}))
    made.admin = lambda: admin
    return made


@pytest.mark.parametrize("admin", [Admin(3, 3), Admin(1, 1), Admin(2, 3, there=True)])
def test_transactions_of_a_cluster_that_is_large_enough_are_asked_for_once(admin):
    made = connected(admin)
    made.require_transactions()
    made.require_transactions()
    assert admin.asked == 1


@pytest.mark.parametrize(("brokers", "words"), [(1, "has 1 broker"), (2, "has 2 brokers")])
def test_transactions_of_a_cluster_that_is_too_small_are_refused_with_both_numbers(brokers, words):
    with pytest.raises(LogError, match="keeps 3 copies of them") as caught:
        connected(Admin(brokers, 3)).require_transactions()
    assert caught.value.message.endswith(words)


def test_wait_that_takes_long_is_told_and_a_short_one_is_not(monkeypatch, caplog):
    with told("waiting for %s", "nothing"):
        pass
    monkeypatch.setattr(clients, "_SLOW_S", 0.01)
    with told("waiting for %s", "something"):
        threading.Event().wait(0.3)
    assert [record.getMessage() for record in caplog.records] == ["waiting for something"]


@pytest.mark.parametrize(
    ("copies", "told_of"), [(3, None), (2, "keeps 2 copies of"), (1, "keeps 1 copy of")], ids=["3", "2", "1"]
)
def test_few_copies_of_topics_are_told(copies, told_of, monkeypatch, caplog):
    described = SimpleNamespace(partitions=[SimpleNamespace(replicas=[0] * copies)])
    monkeypatch.setattr(Topics, "described", lambda _, names: dict.fromkeys(names, described))
    Topics(connected(Admin(3, 3))).warn_of_few_copies(["one", "other"])
    assert (told_of in caplog.text) if told_of else caplog.text == ""


@pytest.mark.parametrize("code", [KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError.SASL_AUTHENTICATION_FAILED])
def test_refused_credentials_count_for_as_long_as_a_client_that_is_refused_would_say_so_again(monkeypatch, code):
    made = Clients("host:9092", ClientSettings({}))
    made.require_access()
    made._heard(KafkaError(code, "no such password"))
    with pytest.raises(LogDeniedError, match="host:9092 refuse this client: no such password"):
        made.require_access()
    monkeypatch.setattr(clients, "_DENIED_S", 0.0)
    made.require_access()


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"security.protocol": "nonsense"}, 'Invalid value "nonsense" for configuration property "security.protocol"'),
        ({"security.protocol": "SSL", "ssl.ca.location": "/nowhere"}, "ssl.ca.location failed"),
        ({"security.protocol": "SSL", "ssl.key.pem": "analytical-engine"}, "ssl.key.pem failed"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "sasl.username and sasl.password must be set"),
    ],
)
@pytest.mark.parametrize("asked", ["topics", "has_topic", "create_topic"])
def test_settings_that_the_client_refuses_are_named_whatever_is_asked_first(values, reason, asked):
    log = KafkaLog("127.0.0.1:9", settings=ClientSettings(values))
    with pytest.raises(ConfigurationError, match="cannot be made with these settings: ") as refused:
        getattr(log, asked)(*([] if asked == "topics" else ["orders"]))
    assert reason in refused.value.message
    assert "analytical-engine" not in str(refused.value)
    assert "EVERSTATE_KAFKA_CONFIG" in refused.value.hint


def test_answer_that_never_comes_is_an_error_of_kafkas(monkeypatch):
    monkeypatch.setattr(clients, "ASK_S", 0.0)
    monkeypatch.setattr(clients, "_MARGIN_S", 0.01)
    with pytest.raises(KafkaException) as caught:
        clients.answer(Future())
    assert isinstance(named(caught.value, "it"), LogUnavailableError)


class Refusing:
    """The client of an address where the first answer is an error, and never comes."""

    def __init__(self, lost):
        self.lost = lost

    def __call__(self, options):
        if self.lost:
            line = (
                f"[thrd:a:1/bootstrap]: a:1/bootstrap: {self.lost} (after 1ms in state CONNECT, 3 identical error(s))"
            )
            options["logger"].log(40, "%s [%s] %s", "FAIL", "rdkafka#producer-1", line)
            options["error_cb"](SimpleNamespace(name=lambda: "_ALL_BROKERS_DOWN"))
        return self

    def list_topics(self, **_):
        raise KafkaException(KafkaError(KafkaError._TRANSPORT, "Failed to get metadata"))

    def poll(self, _):
        pass


_GONE = "Connect to ipv4#10.0.0.1:1 failed: Connection refused"
_OTHER = "Disconnected: connection closed by peer: receive 0 after POLLIN"


@pytest.mark.parametrize(
    ("lost", "reached", "waits", "reason", "cure"),
    [
        (_GONE, False, 0.1, _GONE, "that the brokers run"),
        (_OTHER, False, 0.1, _OTHER, "security.protocol, and this one's is SSL:"),
        (_GONE, True, 0.4, _GONE, "that the brokers run"),
        (None, False, 0.4, "Failed to get metadata", "that the brokers run"),
    ],
    ids=["refused", "another protocol", "was reached before", "silent"],
)
def test_address_where_nobody_listens_is_named_with_the_reason_and_not_waited_for(
    lost, reached, waits, reason, cure, monkeypatch
):
    monkeypatch.setattr(clients, "_NOBODY_S", 0.1)
    monkeypatch.setattr(clients, "_FIRST_ANSWER_S", 0.4)
    monkeypatch.setattr(clients, "AdminClient", Refusing(lost))
    made, began = Clients("a:1", ClientSettings({"security.protocol": "ssl"}), reached=reached), time.monotonic()
    with pytest.raises(LogUnavailableError) as caught:
        made.admin()
    assert caught.value.message == f"no broker at a:1 answers: {reason}"
    assert cure in caught.value.hint
    assert waits <= time.monotonic() - began < waits + 0.25


@pytest.mark.parametrize(("hosts", "known"), [(["nowhere.invalid"], False), (["nowhere.invalid", "127.0.0.1"], True)])
def test_brokers_that_give_an_address_that_is_not_known_here_are_named_with_it(hosts, known, monkeypatch):
    brokers = {number: SimpleNamespace(host=host, port=9092) for number, host in enumerate(hosts)}
    admin = SimpleNamespace(list_topics=lambda **_: SimpleNamespace(brokers=brokers))
    monkeypatch.setattr(clients, "AdminClient", lambda _: admin)
    made = Clients("a:1", ClientSettings({}))
    if known:
        assert made.admin() is admin
    else:
        with pytest.raises(LogUnavailableError, match=r"give nowhere\.invalid:9092 as their address") as caught:
            made.admin()
        assert "advertised.listeners" in caught.value.hint
