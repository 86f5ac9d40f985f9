"""Generations that never had a micro-batch."""

from __future__ import annotations

import pytest

from everstate.errors import StalledError
from everstate.generations.in_process.execution import Course, InProcessExecution
from everstate.generations.in_process.executor import InProcessExecutor
from tests.simulation.world import World


class Motionless(InProcessExecution):
    """Ends without having read anything, as a query that has lost its source would."""

    def active(self) -> bool:
        return False


class MotionlessExecutor(InProcessExecutor):
    def execution(self, output, lease, **how) -> InProcessExecution:
        kept = self.folder(output.name, output.generation)
        return Motionless(output, kept, self._log, self._settings, Course(lease=lease, **how))


def test_stream_edited_before_its_first_batch_publishes_what_was_there():
    world = World(("even",))
    world.send(9)
    assert world.deploy(1, ("log.commit.before_transaction", 1)) == "died"
    assert world.deploy(2) == "done"
    world.check(2)


def test_version_that_took_over_empty_topics_comes_back_and_reads_what_was_sent_since():
    world = World(("balances", "even"))
    for version in (1, 3, 1):
        assert world.deploy(version) == "done"
        world.check(version)
    world.send(9)
    for version in (3, 1):
        assert world.deploy(version) == "done"
        world.check(version)


def test_build_whose_rounds_change_nothing_ends_with_a_named_error():
    world = World(("balances",))
    world.send(9)
    assert world.deploy(1) == "done"
    world.executor = MotionlessExecutor
    with pytest.raises(StalledError, match="makes no progress"):
        world.deploy(3)
