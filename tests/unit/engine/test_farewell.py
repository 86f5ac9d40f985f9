from __future__ import annotations

import pytest

from everstate.engine.board import Line
from everstate.engine.farewell import reached, replaced, stopped
from everstate.errors import TakenOverError
from everstate.generations.generation import build_lease


def line(name, **facts):
    usual = {"generation": 1, "batches": 2, "read": 1200, "written": 7, "rate": 0.0, "lag": 0, "state_bytes": 0}
    usual |= {"dead": 0, "dropped": 0, "last_ms": 1.0, "position": {"orders": {0: 1200}}}
    return Line(name, **{**usual, **facts})


def test_stopped_says_by_output_what_is_committed_and_what_was_being_built():
    lines = [line("totals"), line("vips", generation=3, batches=0, position={"totals": {0: 7, 1: 2}})]
    assert list(stopped(lines, {"totals": 2}, "everstate run shop.py")) == [
        "Stopped. Committed in this run:",
        "  totals (generation 1): 1,200 records read, 7 written; up to offset 1,200 of orders",
        "  vips (generation 3): nothing new; up to offsets 7 and 2 of totals",
        "  totals: generation 2 was being built; the next run goes on with it",
        "To continue from there: everstate run shop.py",
    ]


def test_stopped_before_anything_ran_says_so():
    assert list(stopped([], {}, "")) == [
        "Stopped before any output had been started: nothing was committed in this run.",
        "The next run continues from there.",
    ]


def test_reached_topic_of_many_partitions_stays_short():
    assert reached({"orders": {number: 100 + number for number in range(12)}}) == (
        "up to offsets between 100 and 111 in 12 partitions of orders"
    )


@pytest.mark.parametrize(
    ("lease", "host", "told"),
    [
        ("shop", "here/1", "Process 7 now runs service shop in place of this one"),
        ("shop", "there/2/3", "Process 7 on there now runs service shop in place of this one"),
        (build_lease("shop"), "here/1", "Process 7 now deploys service shop in place of this one"),
    ],
)
def test_replaced_names_the_process_that_goes_on_and_what_it_does(lease, host, told):
    assert replaced(TakenOverError(lease, host, 7, token=2, own=1), "shop", "here/1").startswith(told)
