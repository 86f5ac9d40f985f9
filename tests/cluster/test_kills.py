"""What of a cluster may be killed: executors, Python workers, the driver. Results are those of a plain calculation."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time

import psutil
import pytest

from tests.cluster.conftest import SERVICE

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.recovery, pytest.mark.long]

SOON_S = 240.0


def until(there, alive, what):
    """Wait for something that a live process does."""
    end = time.monotonic() + SOON_S
    while not there():
        assert alive.poll() is None, f"it ended before {what}"
        assert time.monotonic() < end, f"it took too long to {what}"
        time.sleep(0.05)


@pytest.fixture
def live(world):
    """Runs the service until the test ends; gives what starts it."""
    started = []

    def start(*words, version=1, main="everstate.cli.main", **more):
        said = (world.folder / f"said{len(started)}").open("wb")
        started.append(
            subprocess.Popen(
                world.command(*words, main=main),
                env=world.environment(version, **more),
                stdout=said,
                stderr=said,
                start_new_session=True,
                cwd=SERVICE.parents[2],
            )
        )
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(90)
        end(process)


def end(process):
    """Kill a process and all that it has started, at once, as a machine that fails does."""
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process(process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                child.kill()
    process.kill()
    process.wait(30)


def settled(world, process, version=1):
    until(lambda: world.outputs() == world.expected(version), process, "publish what is right")


def test_executor_killed_in_a_batch_and_a_python_worker_killed_change_no_result(world, live):
    world.send(2000)
    running = live(EVERSTATE_TEST_PAUSE="0.001")
    until(lambda: world.log.has_topic("totals") and world.table("totals"), running, "publish")
    settled(world, running)
    assert all(world.cluster.partitions()), "the shards are all on one worker"
    for _ in range(2):
        world.send(1000)
        time.sleep(1.0)  # a row takes a millisecond, so tasks are in the middle of the batch
        world.cluster.executors()[0].kill()
        settled(world, running)
        world.send(1000)
        time.sleep(0.7)
        for python in world.cluster.pythons()[-2:]:
            with contextlib.suppress(psutil.Error):
                python.kill()
        settled(world, running)
    running.send_signal(signal.SIGTERM)
    assert running.wait(90) == 0, (world.folder / "said0").read_text()


def test_executor_killed_in_a_recalculation_changes_no_result(world, live):
    world.send(4000)
    world.run(1, EVERSTATE_TEST_PAUSE="0.001")
    running = live("--effects", version=2, EVERSTATE_TEST_PAUSE="0.001", EVERSTATE_RECALCULATION_RECORDS="1500")
    state = world.folder / "shared" / "spending" / "totals"
    checkpoint = state / "2" / "checkpoint"
    until((checkpoint / "commits" / "0").exists, running, "recalculate the first of three batches")
    time.sleep(0.7)
    world.cluster.executors()[0].kill()
    until((checkpoint / "offsets" / "2").exists, running, "begin the third")
    time.sleep(0.7)
    for java in world.cluster.executors()[-1:]:
        java.kill()
    settled(world, running, 2)


def test_driver_killed_and_started_on_another_host_goes_on_from_the_shared_checkpoint(world, live):
    world.send(3000)
    scratch = world.folder / "scratch-one"
    scratch.mkdir()
    first = live("--scratch-dir", str(scratch), EVERSTATE_TEST_PAUSE="0.001")
    until(lambda: world.log.has_topic("totals") and world.table("totals"), first, "publish")
    settled(world, first)
    world.send(1500)
    time.sleep(1.5)
    os.kill(first.pid, signal.SIGKILL)
    end(first)
    before = {topic: sum(world.log.end_offsets([topic])[topic].values()) for topic in ("totals", "sizes")}
    other = world.folder / "scratch-two"
    other.mkdir()
    second = live(
        "--standby",  # the lease of a process that cannot be looked at is free after a while
        "--scratch-dir",
        str(other),
        main="tests.cluster.elsewhere",
        EVERSTATE_TEST_HOST="another-host",
        EVERSTATE_TEST_PAUSE="0.001",
    )
    settled(world, second)
    checkpoints = world.folder / "shared" / "spending" / "totals" / "1" / "checkpoint"
    assert sum(1 for path in (checkpoints / "offsets").iterdir() if path.name.isdecimal()) >= 2
    # Nothing was published a second time: at most what the last records have changed, and the ends of transactions.
    after = {topic: sum(world.log.end_offsets([topic])[topic].values()) for topic in before}
    assert after["totals"] - before["totals"] <= 40 + 20
    assert list((world.folder / "shared" / "spending" / "totals").glob("2*")) == []
