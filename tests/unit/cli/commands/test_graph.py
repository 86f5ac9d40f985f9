from __future__ import annotations

import pytest
from typer.testing import CliRunner

from everstate.cli.main import app
from everstate.errors import ConfigurationError
from everstate.log.descriptions import TopicConfig
from everstate.log.opening import open_log
from tests.unit.cli.deployments import write


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write(tmp_path / "shop_drawn.py")


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def test_graph_without_a_log_draws_the_service_and_makes_no_log(file, tmp_path):
    drawing = run("graph", file, "--out", "shop.svg")
    assert drawing == ""
    assert ".everstate" not in {path.name for path in tmp_path.iterdir()}
    assert "orders/table" in (tmp_path / "shop.svg").read_text()


def test_graph_shows_the_partitions_of_topics_that_the_log_has(file, tmp_path):
    log = open_log(tmp_path / "elsewhere")
    log.create_topic("orders", TopicConfig(partitions=5, compact=True))
    log.close()
    assert "partition" not in run("graph", file)
    assert '|"by id · 5 partitions"|' in run("graph", file, "--log", tmp_path / "elsewhere")


def test_graph_with_a_log_that_is_not_there_is_refused(file):
    with pytest.raises(ConfigurationError, match="there is no log"):
        run("graph", file, "--log", "nowhere")
