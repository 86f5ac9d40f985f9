from __future__ import annotations

from everstate.log.abilities import LOOK_S, HeldBack
from everstate.log.memory import MemoryLog


class Standing:
    """A log whose partitions stand where the test says."""

    def __init__(self):
        self.held = {}

    def held_back(self, topics):
        assert topics == ["orders"]
        return dict(self.held)


def looks(held, log, states, caplog):
    """What is said with each look at one of these states."""
    found = []
    for number, state in enumerate(states):
        caplog.clear()
        log.held = state
        held.look(number * LOOK_S)
        held.look(number * LOOK_S + 1)
        found.append([record.args[:3] for record in caplog.records])
    return found


def test_partition_that_stands_still_is_told_once_until_it_has_moved(caplog):
    log = Standing()
    one, other = {("orders", 0): 5}, {("orders", 0): 9}
    told = looks(HeldBack(log, ["orders"]), log, [one, one, one, {}, one, other, other], caplog)
    assert told == [[], [("orders", 0, 5)], [], [], [], [], [("orders", 0, 9)]]


def test_partition_that_moves_is_not_told(caplog):
    log = Standing()
    states = [{("orders", 0): number, ("orders", 1): 7 - number} for number in range(4)]
    assert looks(HeldBack(log, ["orders"]), log, states, caplog) == [[], [], [], []]


def test_log_without_transactions_is_not_asked():
    HeldBack(MemoryLog(), ["orders"]).look(0)
