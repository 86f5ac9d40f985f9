from __future__ import annotations

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


def test_open_log_kafka_is_refused_by_name():
    with pytest.raises(ConfigurationError, match="there is no log of the kind 'kafka'"):
        open_log("kafka://localhost:9092")
