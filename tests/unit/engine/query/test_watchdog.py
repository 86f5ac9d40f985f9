from __future__ import annotations

import os

import pytest

from everstate.engine.query.watchdog import Watchdog, Work, work_of


class Machine:
    """A clock and processes that do what a test says."""

    def __init__(self, patience=60.0):
        self.now = 0.0
        self.used = Work()
        self.watchdog = Watchdog(patience, lambda: self.used, lambda: self.now)

    def pass_by(self, seconds, *, sign="running", in_batch=True, workers=0.0, java=0.0, transferred=0.0):
        """Look every two seconds; the rest is what processes use in a second."""
        found = None
        for _ in range(int(seconds / 2)):
            self.now += 2
            self.used = Work(
                self.used.workers + 2 * workers, self.used.java + 2 * java, self.used.transferred + 2 * transferred
            )
            found = found or self.watchdog.stalled(sign, in_batch=in_batch)
        return found


def test_watchdog_batch_in_which_nothing_moves_is_stalled():
    assert Machine().pass_by(100, java=0.02) is not None


def test_watchdog_is_patient_up_to_the_limit():
    assert Machine().pass_by(56) is None


def test_watchdog_query_without_records_may_wait_for_ever():
    assert Machine().pass_by(10_000, in_batch=False) is None


@pytest.mark.parametrize("work", [{"workers": 0.05}, {"java": 0.5}, {"transferred": 1e6}])
def test_watchdog_long_batch_that_works_is_not_stalled(work):
    assert Machine().pass_by(10_000, **work) is None


def test_watchdog_query_that_gets_on_is_not_stalled():
    machine = Machine()
    assert all(machine.pass_by(50, sign=number) is None for number in range(20))


def test_watchdog_stall_after_much_work_is_found():
    machine = Machine()
    machine.pass_by(1000, workers=1.0)
    assert machine.pass_by(100) is not None


def test_watchdog_workers_that_were_replaced_are_a_sign_of_life():
    machine = Machine()
    machine.pass_by(50, workers=1.0)
    machine.used = Work(1.0, machine.used.java, machine.used.transferred)
    assert machine.pass_by(58) is None


def test_watchdog_without_a_limit_is_never_stalled():
    assert Machine(patience=0).pass_by(100_000) is None


def test_work_of_a_process_is_what_it_used():
    assert work_of(os.getpid()).java > 0
    assert work_of(2**30) == Work()
