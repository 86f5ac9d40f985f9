from __future__ import annotations

import subprocess
import sys

import pytest

from everstate.errors import ConfigurationError
from everstate.log import EmbeddedLog, open_log


def test_open_log_path_opens_the_embedded_log_and_creates_its_folder(tmp_path):
    log = open_log(tmp_path / "deep" / "log")
    assert isinstance(log, EmbeddedLog)
    log.create_topic("orders")
    assert open_log(log.url).topics() == ["orders"]


def test_open_log_relative_path_stays_the_same_folder_after_a_change_of_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = open_log("log")
    log.create_topic("orders")
    monkeypatch.chdir("/")
    assert log.topics() == ["orders"]


def test_open_log_unknown_kind_is_refused_by_name():
    with pytest.raises(ConfigurationError, match="there is no log of the kind 'pulsar'"):
        open_log("pulsar://localhost:6650")


def test_open_log_kafka_asks_nobody_before_it_is_used():
    log = open_log("kafka://nowhere.invalid:9092/")
    assert log.url == "kafka://nowhere.invalid:9092"
    log.close()


@pytest.mark.parametrize(
    "address",
    [
        *("kafka://", "kafka://a:1,", "kafka://a:9092/topic", "kafka://a:99999", "kafka://a:0", "kafka://a:port"),
        *("kafka://a:", "kafka://:9092", "kafka://a b:9092", "kafka://a:9092;b:9092", "kafka://a:1,b:123456"),
    ],
)
def test_open_log_kafka_without_a_proper_address_is_refused(address):
    with pytest.raises(ConfigurationError, match="is not the address of a Kafka cluster"):
        open_log(address)


@pytest.mark.parametrize("servers", ["a", "a:9092", "a:9092,b-1.c:9093", "a:9092, b:9092", "[::1]:9092", "10.0.0.1"])
def test_open_log_kafka_with_a_proper_address_is_opened(servers):
    log = open_log(f"kafka://{servers}")
    assert log.url == f"kafka://{servers}"
    log.close()


@pytest.mark.parametrize(
    ("address", "meant"),
    [
        ("localhost:9092", "--log kafka://localhost:9092 "),
        ("one.net:9092,two:9092", "--log kafka://one.net:9092,two:9092 "),
        ("kafka:host:9092", "--log kafka://host:9092 "),
        ("kafka:/host:9092", "--log kafka://host:9092 "),
        ("KAFKA://host:9092", "--log kafka://host:9092 "),
    ],
)
def test_open_log_what_is_meant_for_a_cluster_is_not_taken_for_a_folder(address, meant, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match="neither a folder nor the address of a Kafka cluster") as refused:
        open_log(address)
    assert meant in refused.value.hint
    assert not list(tmp_path.iterdir())


def test_open_log_folder_that_is_there_may_be_called_like_a_broker(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for address in ("./localhost:9092", "localhost:9092"):
        log = open_log(address)
        log.create_topic("orders", exist_ok=True)
        assert log.topics() == ["orders"]
        log.close()


def test_open_log_kafka_without_its_client_names_the_extra(monkeypatch):
    for name in [name for name in sys.modules if name.startswith(("confluent_kafka", "everstate.log.kafka"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'everstate\[kafka\]'"):
        open_log("kafka://localhost:9092")


def test_import_everstate_leaves_the_client_of_kafka_alone():
    code = "import everstate, everstate.log, everstate.log.opening, sys; print('confluent_kafka' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
