from __future__ import annotations

from typer.testing import CliRunner

from everstate.cli.main import app
from everstate.errors import LeaseHeldError
from everstate.log.descriptions import TopicConfig
from everstate.log.opening import open_log

SERVICE = """
import everstate as es
app = es.Service("cleared")
app.stream("in", schema={"n": int}).to("out")
"""


def test_clear_deletes_the_state_and_no_topic(tmp_path):
    (tmp_path / "cleared_service.py").write_text(SERVICE)
    log = open_log(tmp_path / "log")
    log.create_topic("in", TopicConfig())
    state = tmp_path / "log" / "state" / "cleared" / "out" / "checkpoint"
    state.mkdir(parents=True)
    command = ["clear", str(tmp_path / "cleared_service.py"), "--log", log.url]
    result = CliRunner().invoke(app, command)
    assert (result.exit_code, result.output) == (0, "Cleared the state of out.\n")
    assert not state.exists()
    assert log.topics() == ["in"]
    assert CliRunner().invoke(app, command).output == "There was no state.\n"
    log.close()


def test_clear_while_the_service_runs_is_refused(tmp_path):
    (tmp_path / "cleared_service.py").write_text(SERVICE)
    log = open_log(tmp_path / "log")
    lease = log.acquire("cleared")
    result = CliRunner().invoke(app, ["clear", str(tmp_path / "cleared_service.py"), "--log", log.url])
    assert isinstance(result.exception, LeaseHeldError)
    log.release(lease)
    log.close()
