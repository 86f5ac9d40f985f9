"""Spark Connect is refused by name before anything is started, whichever way it is asked for."""

import pytest

from everstate.engine.jvm.session import start_session
from everstate.errors import ConfigurationError
from everstate.generations.deploy.settings import Settings


def test_spark_remote_is_refused_by_name(monkeypatch):
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)
    monkeypatch.setenv("SPARK_REMOTE", "sc://host:15002")
    with pytest.raises(ConfigurationError, match="Spark Connect is not supported") as refused:
        start_session(Settings(), "never")
    assert "--master spark://host:7077" in refused.value.hint


def test_connect_address_as_a_master_is_refused_by_name():
    with pytest.raises(ConfigurationError, match="Spark Connect is not supported"):
        Settings.resolve({"master": "sc://host:15002"}, environment={})
