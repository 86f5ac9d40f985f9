"""A disk that is full while a service runs: what is said, and that it goes on once there is space."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import pytest

from everstate.log.opening import open_log
from tests.spark_session import Topics

pytestmark = [pytest.mark.spark, pytest.mark.long]

SERVICE = """
import everstate as es
from everstate import col

app = es.Service("totals", shards=1)
orders = app.table("orders", key="order", schema={"order": str, "customer": str, "amount": int})
orders.group_by("customer").agg(total=col("amount").sum(), orders=es.count()).to("totals")
"""
FULL = "no space is left on the disk"


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 40 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(place)]
    if os.name != "posix" or os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("file systems cannot be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=False)


class Running:
    """A service in a process of its own, and what it says."""

    def __init__(self, folder, log, **settings):
        self.said = folder / f"said-{time.monotonic_ns()}.txt"
        service = folder / "service.py"
        service.write_text(SERVICE)
        options = {"EVERSTATE_" + name.upper(): str(value) for name, value in settings.items()}
        with self.said.open("w") as stream:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "everstate.cli.main", "run", str(service), "--log", str(log)],
                env={**os.environ, **options, "EVERSTATE_CORES": "2", "EVERSTATE_MEMORY": "1g"},
                stderr=stream,
                stdout=stream,
                cwd=folder,
            )

    @property
    def text(self):
        return self.said.read_text()

    def end(self):
        self.process.terminate()
        return self.process.wait(120)


def wait(condition, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.2)
    return False


def fill(place):
    ballast = place / "ballast"
    with ballast.open("wb", buffering=0) as stream:
        size = 1 << 20
        while size >= 512:
            try:
                stream.write(b"x" * size)
            except OSError:
                size //= 2
    return ballast


class Orders:
    """What was sent, and what must come of it."""

    def __init__(self, log):
        self._log = log
        self._topics = Topics(log)
        self._topics.create("orders", partitions=1, compact=True)
        self._sent = {}

    def send(self, count):
        new = [(f"o{len(self._sent) + n}", {"customer": f"c{n % 5}", "amount": n}) for n in range(count)]
        self._topics.send("orders", new)
        self._sent.update(new)

    def right(self):
        found = {}
        for order in self._sent.values():
            entry = found.setdefault(order["customer"], {"total": 0, "orders": 0})
            entry["total"] += order["amount"]
            entry["orders"] += 1
        return self._log.has_topic("totals") and self._topics.table("totals") == found


def require_quiet(text):
    """Nothing of Java or PySpark, and no word of damage."""
    assert not re.search(r"java\.|org\.apache|Traceback|pyspark|(?<!Nothing )is damaged", text), text


@pytest.mark.parametrize("what", ["state", "log"])
def test_full_disk_is_named_and_the_service_goes_on_when_there_is_space(tmp_path, small_disk, what):
    folders = {name: tmp_path / name for name in ("state", "log", "scratch")}
    folders[what] = small_disk / what
    for folder in folders.values():
        folder.mkdir()
    settings = {"state_dir": folders["state"], "scratch_dir": folders["scratch"], "trigger": 0.2}
    log = open_log(folders["log"])
    orders = Orders(log)
    orders.send(50)
    running = Running(tmp_path, folders["log"], **settings)
    try:
        assert wait(orders.right, 200), running.text
        # On a full log nobody can append either; there, the records wait while the disk fills.
        running.process.send_signal(signal.SIGSTOP)
        orders.send(500)
        ballast = fill(small_disk)
        running.process.send_signal(signal.SIGCONT)
        named = wait(lambda: running.process.poll() is not None or FULL in running.text, 200)
        ballast.unlink()
        assert named, f"silent on a full disk:\n{running.text}"
        orders.send(50)
        wait(lambda: orders.right() or running.process.poll() is not None, 200)
        require_quiet(running.text)
        if running.process.poll() is not None:
            assert "error: " in running.text
            running = Running(tmp_path, folders["log"], **settings)
        assert wait(orders.right, 200), running.text
        assert running.end() == 0, running.text
    finally:
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait()
        log.close()
