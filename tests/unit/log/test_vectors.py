from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from everstate.log import vectors

VECTOR = st.dictionaries(
    st.sampled_from(["a", "b"]), st.dictionaries(st.integers(0, 3), st.integers(0, 50), min_size=1), min_size=1
)


def test_vector_written_and_read_is_the_same():
    vector = {"b": {1: 7, 0: 5}, "a": {0: 1}}
    assert vectors.from_json(vectors.to_json(vector)) == vector


def test_vector_order_of_partitions_does_not_change_its_text():
    assert vectors.to_json({"t": {1: 7, 0: 5}}) == vectors.to_json({"t": {0: 5, 1: 7}})


def test_lag_counts_partitions_that_the_start_does_not_name():
    assert vectors.lag({"t": {0: 5}}, {"t": {0: 9, 1: 3}}) == 7


def test_reached_is_false_while_one_partition_is_behind():
    assert not vectors.reached({"t": {0: 9, 1: 2}}, {"t": {0: 5, 1: 3}})
    assert vectors.reached({"t": {0: 9, 1: 3}}, {"t": {0: 5, 1: 3}})


def test_capped_leaves_out_what_the_limit_does_not_name():
    assert vectors.capped({"t": {0: 9, 1: 2}, "u": {0: 1}}, {"t": {0: 5}}) == {"t": {0: 5}}


def test_admitted_gives_every_partition_the_same_share():
    assert vectors.admitted({}, {"t": {0: 100, 1: 100}, "u": {0: 100}}, 30) == {"t": {0: 10, 1: 10}, "u": {0: 10}}


def test_admitted_what_one_partition_does_not_need_goes_to_the_others():
    assert vectors.admitted({"t": {0: 5, 1: 0}}, {"t": {0: 7, 1: 100}}, 10) == {"t": {0: 7, 1: 8}}


def test_admitted_fewer_records_than_partitions_still_moves():
    end = vectors.admitted({}, {"t": {0: 100, 1: 100, 2: 100}}, 2)
    assert vectors.lag({}, end) >= 1


@given(start=VECTOR, ahead=VECTOR, limit=st.integers(1, 200))
def test_admitted_repeated_until_nothing_is_left_reads_everything_once(start, ahead, limit):
    available = {
        topic: {p: offset + start.get(topic, {}).get(p, 0) for p, offset in partitions.items()}
        for topic, partitions in ahead.items()
    }
    position, rounds = start, 0
    while (end := vectors.admitted(position, available, limit)) != position and vectors.lag(position, end):
        taken = vectors.lag(position, end)
        assert 0 < taken <= max(limit, 1)
        assert vectors.admitted(position, available, limit) == end
        position, rounds = end, rounds + 1
        assert rounds < 1000
    assert vectors.lag(position, available) == 0
