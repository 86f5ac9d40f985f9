"""Sources and outputs of Spark's own, killed between their steps: in exactly once, out at least once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from everstate.log.crash import VARIABLE
from everstate.log.opening import open_log
from tests.figures import KILLED

pytestmark = [pytest.mark.spark, pytest.mark.recovery, pytest.mark.long]

SERVICE = Path(__file__).with_name("spark_steps_service.py")
POINTS = ("feed.before_commit", "feed.after_commit", "delivery.before_call", "delivery.after_call")


def run(folder, **environment):
    command = [sys.executable, "-m", "everstate.cli.main", "run", str(SERVICE), "--once", "--log", str(folder / "log")]
    done = subprocess.run(
        [*command, "--memory", "1g", "--cores", "2"],
        env={**os.environ, "EVERSTATE_TEST_FOLDER": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def arrive(folder, number):
    rows = [{"id": f"{number}-{n}", "customer": f"c{n % 3}", "amount": n} for n in range(20)]
    (folder / "in").mkdir(exist_ok=True)
    (folder / "waiting").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "waiting").rename(folder / "in" / f"{number}.json")


def test_service_killed_between_the_steps_reads_once_and_delivers_all(tmp_path):
    for number, point in enumerate(POINTS):
        arrive(tmp_path, number)
        code, output = run(tmp_path, **{VARIABLE: point})
        assert code == -signal.SIGKILL, output
        KILLED[point] += 1
    code, output = run(tmp_path)
    assert code == 0, output
    log = open_log(tmp_path / "log")
    values = [json.loads(value) for value in log.read("orders", 0, 0)["value"]]
    log.close()
    assert Counter(row["amount"] for row in values) == Counter(2 * n for _ in POINTS for n in range(20))
    held = {}
    for folder in sorted((tmp_path / "out").iterdir(), key=lambda path: int(path.name)):
        lines = [line for part in folder.glob("part-*") for line in part.read_text().splitlines()]
        held |= {row["customer"]: row["total"] for row in map(json.loads, lines)}
    assert held == {f"c{k}": len(POINTS) * sum(2 * n for n in range(20) if n % 3 == k) for k in range(3)}
