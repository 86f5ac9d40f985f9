"""The demo on a broker that it starts and stops."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import brokers

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]
ROOT = Path(__file__).resolve().parents[2]


def test_demo_on_kafka_tells_the_same_story():
    brokers.require()
    command = [sys.executable, str(ROOT / "scripts" / "kafka_broker.py"), "run"]
    command += [sys.executable, str(ROOT / "examples" / "demo.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    told = " ".join(done.stdout.split())
    assert "nothing lost, nothing doubled" in told
    assert "gus tombstone" in told
    assert "was not touched" in told
