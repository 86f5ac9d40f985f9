from __future__ import annotations

import polars as pl
import pytest

from everstate.kernels.epochs import epochs
from everstate.kernels.ledger import Ledger
from everstate.kernels.order import Order
from everstate.kernels.pages.page_store import MemoryPages
from everstate.kernels.rows import OFF, PART, STREAM_TIME, TOPIC
from everstate.kernels.shard import Shard
from everstate.kernels.stream_time import advance, mark


@pytest.fixture
def shard():
    found = Shard(MemoryPages(), None, Ledger(("t",), "fail"))
    found.feeds = frozenset({0})
    return found


def rows(*places):
    """Rows of (partition, offset, stream time)."""
    return pl.DataFrame([(0, *place) for place in places], schema=[TOPIC, PART, OFF, STREAM_TIME], orient="row")


def test_epochs_of_a_live_batch_are_one_with_its_clock_and_frontier(shard):
    shard.clock, shard.frontier = 70, 5
    (epoch,) = epochs([rows((1, 0, 9), (0, 0, 3)), rows()], shard)
    assert [part[OFF].to_list() for part in epoch.inputs] == [[0, 0], []]
    assert epoch.inputs[0][PART].to_list() == [0, 1]
    assert (epoch.clock, epoch.frontier) == (70, 5)


def test_epochs_of_a_batch_that_repeats_several_have_the_rows_and_the_frontier_of_each(shard):
    shard.order = Order([{"t": {0: 2, 1: 0}}, {"t": {0: 2, 1: 1}}, {"t": {0: 3, 1: 1}}], ["t"])
    shard.marks = pl.concat([mark(0, 0, 0, 2, 7), mark(0, 1, 0, 1, 3), mark(0, 0, 2, 3, 8), mark(0, 1, 1, 1, None)])
    advance(shard.stream_times, shard.marks)
    found = epochs([rows((0, 2, 8), (1, 0, 3), (0, 0, 7), (0, 1, 7))], shard)
    assert [epoch.inputs[0].select(PART, OFF).rows() for epoch in found[:3]] == [[(0, 0), (0, 1)], [(1, 0)], [(0, 2)]]
    assert [epoch.frontier for epoch in found[1:3]] == [3, 3]


def test_epochs_of_a_batch_that_was_given_a_time_which_is_not_recorded_end_with_that_time(shard):
    shard.order = Order([], ["t"])
    shard.marks, shard.frontier = mark(0, 0, 0, 1, 1), 21
    found = epochs([rows((0, 0, 1))], shard)
    assert [(epoch.inputs[0].height, epoch.frontier) for epoch in found] == [(1, 1), (0, 21)]
