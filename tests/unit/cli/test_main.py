"""The command itself: its version, how it is started, what its help and the shell's completion show."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from typer.testing import CliRunner

import everstate
from everstate.cli.commands.run import run
from everstate.cli.main import app
from everstate.dsl.service import Service
from everstate.generations.deploy.options import RunOptions

#: Options of `everstate run` that are about the command, not about the run.
OF_THE_COMMAND = {"file", "service", "assignments", "config", "quiet", "dry_run", "once", "yes"}
COMMAND = Path(sys.executable).with_name("everstate")


def completed(*words: str, folder: Path) -> list[str]:
    environment = {**os.environ, "_EVERSTATE_COMPLETE": "complete_bash"}
    environment |= {"COMP_WORDS": " ".join(["everstate", *words]), "COMP_CWORD": str(len(words))}
    done = subprocess.run([COMMAND], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize("command", [[COMMAND], [sys.executable, "-m", "everstate"]], ids=["command", "module"])
def test_version_names_what_is_at_work(command):
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"everstate {everstate.__version__} (Python ")
    assert f"PySpark {metadata.version('pyspark')}" in done.stdout


def test_version_is_that_of_the_package():
    assert everstate.__version__ == metadata.version("everstate")


def test_flags_are_shown_as_flags_in_every_help():
    for arguments in (
        ["--help"],
        *([name.name or name.callback.__name__, "--help"] for name in app.registered_commands),
    ):
        shown = CliRunner().invoke(app, arguments, env={"COLUMNS": "100", "TERM": "dumb"}).output
        assert "--help" in shown
        assert "<bool>" not in shown, arguments
    assert "<bool>" not in CliRunner().invoke(app, ["topic", "create", "--help"]).output


@pytest.mark.slow
def test_completion_in_bash_offers_commands_options_and_services(tmp_path):
    (tmp_path / "everstate.toml").write_text('[services]\norders = "shop.orders"\nreturns = "shop.returns"\n')
    assert set(completed("p", folder=tmp_path)) >= {"plan", "produce"}
    assert "--preview" in completed("plan", "--pre", folder=tmp_path)
    assert completed("plan", "", folder=tmp_path) == ["orders", "returns"]
    (tmp_path / "everstate.toml").write_text("this = = is wrong\n")
    assert completed("plan", "", folder=tmp_path) == []


def test_run_of_a_service_takes_by_name_what_the_command_line_has():
    options = set(inspect.signature(run).parameters) - OF_THE_COMMAND
    assert options <= set(RunOptions.__annotations__)
    for method in (Service.run, Service.start):
        given = inspect.signature(method).parameters["options"]
        assert re.sub(r"\W+", " ", str(given.annotation)).split()[-2:] == ["Unpack", "RunOptions"]
