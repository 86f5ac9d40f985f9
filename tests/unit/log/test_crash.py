from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import everstate.log.crash
from everstate.errors import ConfigurationError
from everstate.generations.generation import Status
from everstate.log.crash import CRASH_POINTS, Crash, crash_at, crash_point, intercepted

SOURCE = Path(everstate.log.crash.__file__).parent.parent


def used_points():
    texts = [file.read_text() for file in SOURCE.rglob("*.py") if file.name != "crash.py"]
    named = {name for text in texts for name in re.findall(r'crash_point\(\s*"([^"]+)"', text)}
    # The registry names its points after the step that it writes.
    steps = {*re.findall(r'step="(\w+)"', "".join(texts)), *Status}
    return named | {f"registry.{step}.{side}" for step in steps for side in ("before", "after")}


def test_crash_points_used_names_are_all_listed():
    assert used_points() <= set(CRASH_POINTS)


def test_crash_points_listed_names_are_all_used():
    assert set(CRASH_POINTS) <= used_points()


def test_crash_points_numbers_are_unique():
    assert sorted(CRASH_POINTS.values()) == list(range(1, len(CRASH_POINTS) + 1))


def test_crash_point_unknown_name_is_refused():
    with pytest.raises(ConfigurationError, match="unknown crash point 'nowhere'"):
        crash_point("nowhere")


@pytest.mark.parametrize("wanted", ["nowhere", "log.stage.before_sync:x", "log.stage.before_sync:-1"])
def test_crash_point_environment_that_names_none_is_refused(monkeypatch, wanted):
    monkeypatch.setenv("EVERSTATE_CRASH", wanted)
    with pytest.raises(ConfigurationError, match="names no crash point"):
        crash_point("log.stage.after_sync")


def test_crash_point_other_name_does_nothing(monkeypatch):
    monkeypatch.setenv("EVERSTATE_CRASH", "log.stage.before_sync")
    crash_point("log.stage.after_sync")


def test_crash_point_kills_at_the_hit_that_was_asked_for():
    code = (
        "import importlib.util as u, sys\n"
        "from everstate.log.crash import crash_point\n"
        "for number in range(5):\n"
        "    print(number, flush=True)\n"
        "    crash_point('log.stage.after_sync')\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={"EVERSTATE_CRASH": "log.stage.after_sync:3", "PYTHONPATH": str(SOURCE.parent)},
        capture_output=True,
        check=False,
    )
    assert (result.returncode, result.stdout.split()) == (-9, [b"0", b"1", b"2"])


def test_intercepted_hooks_are_called_at_every_point_until_their_block_ends():
    met = []
    with intercepted(met.append), intercepted(crash_at("log.stage.before_sync", hit=2)):
        crash_point("log.stage.after_sync")
        crash_point("log.stage.before_sync")
        with pytest.raises(Crash, match=r"log\.stage\.before_sync"):
            crash_point("log.stage.before_sync")
    crash_point("log.stage.before_sync")
    assert met == ["log.stage.after_sync", "log.stage.before_sync", "log.stage.before_sync"]


def test_crash_at_unknown_point_is_refused():
    with pytest.raises(ConfigurationError, match="unknown crash point 'nowhere'"):
        crash_at("nowhere")


def test_crash_is_no_error_that_could_be_handled():
    assert not issubclass(Crash, Exception)


def test_crash_point_kills_whether_or_not_something_intercepts_it():
    code = (
        "from everstate.log.crash import crash_point, intercepted\n"
        "with intercepted(print):\n"
        "    crash_point('log.stage.after_sync')\n"
    )
    result = subprocess.run(
        [sys.executable, "-u", "-c", code],
        env={"EVERSTATE_CRASH": "log.stage.after_sync", "PYTHONPATH": str(SOURCE.parent)},
        capture_output=True,
        check=False,
    )
    assert (result.returncode, result.stdout.split()) == (-9, [b"log.stage.after_sync"])
