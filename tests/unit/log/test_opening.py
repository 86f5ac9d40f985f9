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


@pytest.mark.parametrize("address", ["kafka://", "kafka://a:1,", "kafka://a:9092/topic"])
def test_open_log_kafka_without_a_proper_address_is_refused(address):
    with pytest.raises(ConfigurationError, match="is not the address of a Kafka cluster"):
        open_log(address)


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
