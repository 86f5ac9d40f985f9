from __future__ import annotations

import logging
import os
import resource
import subprocess
import sys
from typing import NamedTuple

import psutil
import pytest

from everstate.engine import limits
from everstate.engine.limits import Limits, file_warnings, space_warnings


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture
def disk(monkeypatch):
    """A disk of 100 MB, of which a test says how much is free."""
    free = [50]
    monkeypatch.setattr(limits.shutil, "disk_usage", lambda _: Usage(100_000_000, 0, free[0] * 1_000_000))
    return free


def test_limits_disk_with_space_is_not_mentioned(tmp_path, disk):
    assert space_warnings({tmp_path: "the state"}) == []


def test_limits_disk_that_is_nearly_full_is_named_once_with_all_that_is_on_it(tmp_path, disk):
    disk[0] = 3
    ((_, text),) = space_warnings({tmp_path / "not" / "yet": "the state", tmp_path: "the log"})
    assert "the state" in text
    assert "the log" in text
    assert "3 MB of 100 MB" in text


def test_limits_warn_once_and_again_after_it_was_over(tmp_path, disk, caplog):
    now = [0.0]
    watched = Limits({tmp_path: "the state"}, dict, lambda: now[0])
    with caplog.at_level(logging.WARNING):
        for free in (3, 2, 2, 50, 1):
            disk[0] = free
            now[0] += 60
            watched.look()
    assert len(caplog.records) == 2


def test_limits_look_often_measures_rarely(tmp_path, disk):
    asked = []
    watched = Limits({}, lambda: asked.append(1) or {}, lambda: len(asked) * 0.0)
    for _ in range(50):
        watched.look()
    assert len(asked) == 1


def test_limits_process_with_many_open_files_is_named():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = psutil.Process().num_fds()
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 2, hard))
        found = list(file_warnings({os.getpid(): "The service"}))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    ((_, text),) = found
    assert "The service" in text
    assert "ulimit -n" in text


def test_limits_soft_limit_of_open_files_is_raised_to_the_hard_one():
    code = (
        "import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (100, 200));"
        "from everstate.engine.limits import raise_open_files; raise_open_files();"
        "print(r.getrlimit(r.RLIMIT_NOFILE))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(200, 200)"
