from __future__ import annotations

import json
import sys

import pytest
import typer
from typer.testing import CliRunner

from everstate.cli.commands.consume import consume
from everstate.cli.commands.copy import copy
from everstate.cli.commands.export import export
from everstate.cli.commands.produce import produce
from everstate.cli.commands.status import status
from everstate.cli.commands.tombstone import tombstone
from everstate.cli.commands.topic import topic_app


@pytest.fixture(autouse=True)
def own_path(monkeypatch):
    """A command puts the service's folder on the path: what lies there is no module of the next test."""
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture
def everstate(tmp_path):
    """Runs a command on a log of its own; errors of Everstate come out as they are."""
    app = typer.Typer()
    app.add_typer(topic_app, name="topic")
    app.command()(produce)
    app.command()(consume)
    app.command()(copy)
    app.command()(export)
    app.command()(status)
    app.command()(tombstone)
    runner = CliRunner()

    def run(*arguments: str, stdin: str | bytes = "", fails: bool = False):
        result = runner.invoke(app, list(arguments), input=stdin, env={"EVERSTATE_LOG": str(tmp_path / "log")})
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert fails or result.exit_code == 0, result.output
        return result

    run.records = lambda *arguments: [
        json.loads(line) for line in run("consume", *arguments, "--json").stdout.splitlines()
    ]
    run.path = tmp_path
    return run
