from __future__ import annotations

import pytest
from typer.testing import CliRunner

from everstate.cli.main import app
from everstate.engine.jvm import class_archive
from everstate.errors import TopicNotFoundError

SERVICE = """
import everstate as es
app = es.Service("hasty")
app.stream("nowhere", schema={"n": int}).to("out")
"""
NAMED = "everstate prepare"


@pytest.fixture
def no_archive(tmp_path, monkeypatch):
    """An empty cache, and a training run that takes no time."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(class_archive, "_train", lambda java, made, folder: made.write_bytes(b"classes"))


def run(tmp_path, *options):
    """Run a service that is refused before Spark would start."""
    (tmp_path / "hasty_service.py").write_text(SERVICE)
    command = ["run", str(tmp_path / "hasty_service.py"), "--log", str(tmp_path / "log"), *options]
    result = CliRunner().invoke(app, command)
    assert isinstance(result.exception, TopicNotFoundError)
    return result.stderr


def test_prepare_makes_the_archive_and_says_so_once(no_archive):
    result = CliRunner().invoke(app, ["prepare"])
    assert result.exit_code == 0
    assert str(class_archive.archive_path()) in result.output
    assert class_archive.is_prepared()
    again = CliRunner().invoke(app, ["prepare"])
    assert (again.exit_code, again.output) == (0, "")


def test_run_names_prepare_until_it_was_done(no_archive, tmp_path):
    assert NAMED in run(tmp_path)
    assert NAMED not in run(tmp_path, "--quiet")
    CliRunner().invoke(app, ["prepare"])
    assert NAMED not in run(tmp_path)
