"""The process is killed at every crash point of the log: the log stays whole, and a second run comes to its end."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from everstate.log import EmbeddedLog
from everstate.log.crash import CRASH_POINTS
from tests.figures import KILLED

pytestmark = pytest.mark.recovery

SCRIPT = Path(__file__).with_name("log_scenario.py")
POINTS = [name for name in CRASH_POINTS if name.startswith("log.")]
#: What `make test` tries; `make long` tries all of them.
SAMPLE = ("log.commit", "log.cutover", "log.garbage")
#: Met several times in one life: staging, appending, committing.
OFTEN = [name for name in POINTS if name.startswith(("log.stage", "log.append", "log.commit"))]


def scenario():
    spec = importlib.util.spec_from_file_location("log_scenario", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(folder, crash=None):
    environment = {**os.environ, "EVERSTATE_CRASH": crash} if crash else dict(os.environ)
    return subprocess.run([sys.executable, SCRIPT, folder], env=environment, check=False, timeout=120).returncode


def table_after(batches):
    contents = [scenario().content(batch_id)["table"] for batch_id in range(batches)]
    table = dict(row for content in contents for row in content.iter_rows())
    return {key: value for key, value in table.items() if value is not None}


def check_whole(folder):
    """Whatever was cut off: everything can be read, and the topics of a batch agree with each other."""
    log = EmbeddedLog(folder / "log")
    if not {"table", "events", "input"} <= set(log.topics()):
        return
    events = [int(value) for value in log.read("events", 0, 0)["value"]]
    assert events == list(range(len(events)))
    assert dict(log.latest("table").select("key", "value").iter_rows()) == table_after(len(events))
    last = log.last_commit("service", "output")
    assert (last.batch_id if last else -1) == len(events) - 1
    if log.has_topic("moved"):
        moved = log.get_meta("service", "generation") is not None
        assert log.latest("moved")["value"].to_list() == ([b"2"] if moved else [])
        assert log.has_topic("__everstate.kept") == moved
    log.close()


def check_end(folder):
    log = EmbeddedLog(folder / "log")
    assert log.read("input", 0, 0)["value"].to_list() == [b"0", b"1", b"2"]
    assert log.read("events", 0, 0)["value"].to_list() == [b"%d" % number for number in range(scenario().BATCHES)]
    assert log.topics() == ["events", "input", "many", "moved", "table"]
    many = log.read("many", 0, 0)["value"].to_list()
    assert many == [b"%d" % number for number in range(scenario().APPENDS)]
    assert log.read("moved", 0, 0)["value"].to_list() == [b"2"]
    with log._store.manifest.reading() as database:
        named = {row["file"] for row in database.execute("SELECT file FROM segments")}
        retired = {row["file"] for row in database.execute("SELECT file FROM retired_files")}
    present = {path.relative_to(log.path).as_posix() for path in log.path.rglob("*.arrows")}
    assert named <= present
    log.close()
    return present - named - retired


@pytest.mark.parametrize(
    "point",
    [pytest.param(name, marks=() if name.startswith(SAMPLE) else pytest.mark.long) for name in POINTS],
)
def test_log_killed_at_a_crash_point_stays_whole_and_converges(tmp_path, point):
    check_crash(tmp_path, point)


@pytest.mark.long
@pytest.mark.parametrize("hit", [2, 3, 4])
@pytest.mark.parametrize("point", OFTEN)
def test_log_killed_at_a_later_hit_stays_whole_and_converges(tmp_path, point, hit):
    check_crash(tmp_path, f"{point}:{hit}")


def check_crash(folder, crash):
    assert run(folder, crash) == -signal.SIGKILL
    KILLED[crash.partition(":")[0]] += 1
    check_whole(folder)
    assert run(folder) == 0
    check_whole(folder)
    abandoned = check_end(folder)
    assert len(abandoned) <= 4  # what the killed process had staged, until it is a day old


def test_log_never_killed_leaves_no_file_behind(tmp_path):
    assert run(tmp_path) == 0
    check_whole(tmp_path)
    assert check_end(tmp_path) == set()
