from __future__ import annotations

import socket

import pytest

from everstate.engine.cluster.cluster import Cluster
from everstate.engine.cluster.network import Route, route_to
from everstate.errors import ConfigurationError, EngineError
from everstate.generations.deploy.master import Master
from everstate.generations.deploy.settings import Settings


@pytest.fixture
def listening():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_route_to_a_master_on_loopback_stays_there(listening, tmp_path):
    assert route_to(Master.of(f"spark://127.0.0.1:{listening}")) == Route("127.0.0.1", "127.0.0.1")
    settings = Settings(master=f"spark://localhost:{listening}", cores=3, memory="1g")
    options = Cluster(settings, tmp_path, str(tmp_path / "log")).prepare()
    assert options["spark.driver.host"] == options["spark.driver.bindAddress"] == "127.0.0.1"
    assert options["spark.cores.max"] == "3"
    assert options["spark.executor.memory"] == "1g"


def test_route_takes_the_master_that_answers(listening):
    assert route_to(Master.of(f"spark://127.0.0.1:1,127.0.0.1:{listening}")).stays_here


def test_route_to_nobody_is_an_error_that_names_the_address():
    with pytest.raises(EngineError, match=r"no Spark master answers at spark://127\.0\.0\.1:1") as caught:
        route_to(Master.of("spark://127.0.0.1:1"))
    assert "--master" in caught.value.hint


def test_cluster_elsewhere_with_the_embedded_log_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("everstate.engine.cluster.cluster.route_to", lambda _: Route("10.0.0.1", "10.0.0.2"))
    cluster = Cluster(Settings(master="spark://far:7077"), tmp_path, str(tmp_path / "log"))
    with pytest.raises(ConfigurationError, match="is for one machine") as caught:
        cluster.prepare()
    assert "everstate copy" in caught.value.hint
    options = Cluster(Settings(master="spark://far:7077"), tmp_path, "kafka://broker:9092").prepare()
    assert options["spark.driver.host"] == options["spark.driver.bindAddress"] == "10.0.0.1"
    named = Settings(master="spark://far:7077", driver_host="gateway.example")
    assert Cluster(named, tmp_path, "kafka://broker:9092").prepare()["spark.driver.host"] == "gateway.example"
