from __future__ import annotations

import sys

import pytest

from everstate.cli.exit_codes import exit_code
from everstate.cli.main import main
from everstate.errors import (
    ApprovalNeededError,
    ConfigurationError,
    FencedError,
    HistoryTruncatedError,
    LeaseHeldError,
    PlanDriftError,
    TopicNotFoundError,
)
from everstate.log.descriptions import TopicConfig
from everstate.log.opening import open_log
from tests.unit.cli.deployments import deploy, write


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigurationError("x"), 1),
        (TopicNotFoundError("x"), 1),
        (ApprovalNeededError("x"), 3),
        (LeaseHeldError("x"), 4),
        (FencedError("x"), 4),
        (PlanDriftError("x"), 5),
        (HistoryTruncatedError("x"), 6),
    ],
)
def test_error_has_the_exit_code_that_is_documented(error, code):
    assert exit_code(error) == code


@pytest.fixture
def command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["everstate", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code

    return run


def test_commands_end_with_the_code_and_say_what_to_do(tmp_path, command, capsys):
    file = write(tmp_path / "shop_codes.py")
    log = open_log(tmp_path / ".everstate")
    assert command("run", file) == 1
    assert "Create it: everstate topic create orders" in capsys.readouterr().err
    log.create_topic("orders", TopicConfig(compact=True))
    deploy(file, log.url)
    assert command("plan", file, "--out", "p.json") == 0
    deploy(file, log.url, least=5)
    assert command("run", file, "--plan", "p.json") == 5
    assert "Make it again: everstate plan" in capsys.readouterr().err
    lease = log.acquire("shop")
    assert command("run", file, "--set", "least=5") == 4
    assert "Stop that process first" in capsys.readouterr().err
    log.release(lease)
    assert command("run", file, "--approval", "maybe") == 2
    log.close()
