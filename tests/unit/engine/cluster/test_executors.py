from __future__ import annotations

import pytest

from everstate.engine.cluster.executors import FIRST_S, QUIET_S, REST_S, Executors, awaited
from everstate.errors import EngineError


class Clock:
    """Time passes while somebody sleeps; executors come at their times."""

    def __init__(self, arrivals):
        self.now, self.arrivals = 0.0, arrivals

    def time(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds

    def look(self):
        return Executors({name: cores for name, (at, cores) in self.arrivals.items() if at <= self.now})


def wait(arrivals, wanted=None):
    clock = Clock(arrivals)
    return awaited(clock.look, wanted, "spark://host:7077", clock=clock.time, sleep=clock.sleep), clock.now


def test_executors_that_were_asked_for_are_waited_for_and_no_longer():
    found, waited = wait({"0": (1.0, 2), "1": (9.0, 2)}, wanted=4)
    assert (found.total, round(waited)) == (4, 9)


def test_executors_of_any_number_have_come_when_no_more_do():
    found, waited = wait({"0": (1.0, 1), "1": (3.0, 1), "2": (40.0, 1)})
    assert (found.total, round(waited)) == (2, round(3.0 + QUIET_S))


def test_executors_fewer_than_asked_for_are_used_with_a_warning(caplog):
    found, waited = wait({"0": (1.0, 1)}, wanted=8)
    assert (found.total, round(waited)) == (1, REST_S)
    assert "has given 1 of 8 cores" in caplog.text


def test_executors_that_never_come_are_an_error_that_says_what_to_look_at():
    with pytest.raises(EngineError, match=f"no executor in {FIRST_S:.0f} s") as caught:
        wait({})
    assert "--memory" in caught.value.hint
