"""The process that archives is killed between any two of its steps: nothing is lost, nothing is there twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import polars as pl
import pytest

from everstate.log.archive.files import partition_folder
from everstate.log.archive.reading import load
from everstate.log.crash import CRASH_POINTS
from tests.figures import KILLED
from tests.unit.log.archive.conftest import Shelf

pytestmark = pytest.mark.recovery

POINTS = [name for name in CRASH_POINTS if name.startswith("history.")]
SCRIPT = """
import sys
from pathlib import Path
from everstate.generations.state.archiving import Archivist
from everstate.log import EmbeddedLog

folder = Path(sys.argv[1])
log = EmbeddedLog(folder / "log")
archivist = Archivist(log, log.acquire("svc"), folder / "state" / "svc", most=20)
archivist.tidy("t")
for _ in range(3):
    archivist.archive("t")
"""


@pytest.fixture
def shelf(tmp_path):
    shelf = Shelf(tmp_path)
    yield shelf
    shelf.log.close()


@pytest.mark.parametrize("hit", [1, pytest.param(2, marks=pytest.mark.long)])
@pytest.mark.parametrize("point", POINTS)
def test_archivist_killed_anywhere_archives_everything_once(shelf, point, hit):
    shelf.topic("t", partitions=2)
    for _ in range(12):  # files that are worth merging when the script begins
        for partition in (0, 1):
            shelf.send("t", 1, partition=partition)
        shelf.archive("t")
    for partition in (0, 1):
        shelf.send("t", 30, partition=partition)
    shelf.log.release(shelf.lease)
    command = [sys.executable, "-c", SCRIPT, str(shelf.folder)]
    killed = subprocess.run(command, env={**os.environ, "EVERSTATE_CRASH": f"{point}:{hit}"}, check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL
    KILLED[point] += 1
    subprocess.run(command, check=True, timeout=120)
    archive = load(shelf.log, "svc", shelf.home, "t")
    for partition in (0, 1):
        folder = partition_folder(shelf.home, "t", partition)
        found = [pl.read_parquet(folder / file.name) for file in archive.partition(partition).files]
        assert pl.concat(found)["offset"].to_list() == list(range(42))
    assert len(archive.files) == len(shelf.files())
