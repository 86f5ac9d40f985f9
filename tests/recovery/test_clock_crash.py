"""Killed around a tick and a due timer: nothing rings twice, and nothing is lost.

The timers of one run are due in the next one. That repeats the micro-batch in which the one before was killed, with the
clock that was planned for it, and its own begins with what has been due since.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from everstate.log import vectors
from tests.recovery import clocked_service
from tests.recovery.test_engine_crash import World, crash_at

pytestmark = [pytest.mark.spark, pytest.mark.recovery, pytest.mark.long]

#: Before and after what a tick makes durable: its plan, its state, its commit.
POINTS = ("batch.before_state", "batch.after_state", "sink.before_commit", "log.commit.after_transaction")


class ClockedWorld(World):
    """A log and the processes of a service that goes by the clock."""

    service = Path(clocked_service.__file__)

    def rung(self):
        return [json.loads(value) for value in self._records("rung")["value"]]


@pytest.fixture
def world(tmp_path):
    world = ClockedWorld(tmp_path)
    yield world
    world.log.close()


def test_timers_on_the_wall_ring_once_wherever_the_process_is_killed(world):
    world.send(40)
    code, output = world.run()
    assert code == 0, output
    for point in POINTS:
        crash_at(world, point)
        assert max(Counter(row["id"] for row in world.rung()).values(), default=1) == 1
    for _ in range(2):
        code, output = world.run()
        assert code == 0, output
    found = world.rung()
    assert Counter(row["id"] for row in found) == Counter(row["id"] for row in world.sent)
    last = world.log.last_commit("survivor", "rung")
    assert vectors.clock_of(last.end) >= max(row["at"] for row in found)
    order = world.log.order("survivor", "rung", ["payments"])
    assert {row["at"] for row in found} <= {vectors.clock_of(stop) for stop in order}
    assert len(world.log.latest("alive")) == 0, "the records are of 1970"
