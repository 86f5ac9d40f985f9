from __future__ import annotations

import polars as pl

from everstate.kernels.order import Order, by_arrival
from everstate.kernels.rows import OFF, PART, STREAM_TIME, TOPIC

VECTORS = [{"a": {0: 2, 1: 0}, "b": {0: 1}}, {"a": {0: 2, 1: 3}, "b": {0: 1}}, {"a": {0: 9, 1: 3}, "b": {0: 4}}]


def rows(*places):
    """Rows of (topic, partition, offset); stream time runs against the order of arrival."""
    frame = pl.DataFrame(list(places), schema=[TOPIC, PART, OFF], orient="row")
    return frame.with_columns((100 - pl.col(OFF)).alias(STREAM_TIME))


def test_epochs_are_those_of_the_first_vector_that_covers_a_row():
    found = Order(VECTORS, ["a", "b"]).epochs(rows((0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 1, 0), (1, 0, 0), (1, 0, 3)))
    assert found.to_list() == [0, 0, 2, 1, 0, 2]


def test_epochs_of_rows_and_topics_that_no_vector_covers_come_last():
    assert Order(VECTORS, ["a", "z"]).epochs(rows((0, 0, 9), (1, 0, 0))).to_list() == [3, 3]


def test_epochs_of_a_partition_that_later_vectors_leave_out_stay_covered():
    order = Order([{"a": {0: 5}}, {"a": {}}, {"a": {0: 7}}], ["a"])
    assert order.epochs(rows((0, 0, 4), (0, 0, 5))).to_list() == [0, 2]


def test_by_arrival_of_several_batches_in_one_is_that_of_the_batches():
    places = [(0, 0, n) for n in range(9)] + [(0, 1, n) for n in range(3)] + [(1, 0, n) for n in range(4)]
    whole = by_arrival(rows(*places), Order(VECTORS, ["a", "b"]))
    parts, done = [], {}
    for vector in VECTORS:
        batch = [p for p in places if p[2] < vector["ab"[p[0]]].get(p[1], 0) and p not in done]
        done.update(dict.fromkeys(batch))
        parts.append(by_arrival(rows(*batch), None))
    assert whole.equals(pl.concat(parts))
