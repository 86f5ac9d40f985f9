import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everstate as es
from everstate.kernels.operations.latest import newest
from tests.effort import examples


def service():
    app = es.Service("test")
    app.table("in", key="id", schema={"id": str, "v": float | None, "tags": list[str]}).to("out")
    return app


def last_service(join=False):
    """A table whose groups show the value of the key that was heard of last."""
    app = es.Service("test")
    table = app.table("in", key="id", schema={"id": str, "v": int})
    if join:
        table = table.join(app.table("other", key="id", schema={"id": str, "w": int}), how="left")
    table.group_by(es.lit("all").alias("group")).agg(es.col("v").last()).to("out")
    return app


def row(v=None, *tags):
    return {"v": v, "tags": list(tags)}


def records(*places):
    """(key, ts, partition, offset) as decoded records."""
    columns = {"$key": pl.Binary, "$ts": pl.Int64, "$part": pl.Int32, "$off": pl.Int64}
    frame = pl.DataFrame([(key.encode(), *place) for key, *place in places], schema=columns, orient="row")
    return frame.with_columns(pl.lit(0, pl.UInt16).alias("$topic"))


def test_latest_unchanged_value_publishes_nothing():
    driver = es.testing.Driver(service())
    for value in (row(1.0), row(1.0), row(float("nan"), "x"), row(float("nan"), "x"), row(None), row(None)):
        driver.send("in", "a", value)
    assert len(driver.records("out")) == 3


def test_latest_tombstone_deletes_and_an_unknown_one_is_silent():
    driver = es.testing.Driver(service())
    driver.tombstone("in", "a")
    driver.send("in", "a", row(1.0), 3)
    driver.tombstone("in", "a", 9)
    driver.tombstone("in", "a", 10)
    assert [(r.value is None, r.ts) for r in driver.records("out")] == [(False, 3), (True, 9)]


def test_latest_record_that_cannot_be_decoded_deletes_its_key():
    driver = es.testing.Driver(service())
    driver.send("in", "a", row(1.0))
    driver.send("in", "a", b"{")
    assert driver.table("out") == {}
    assert len(driver.records("out.dlq")) == 1


def test_latest_older_timestamp_at_a_higher_offset_wins(play):
    history = [("in", "a", row(1.0), 9), ("in", "a", row(2.0), 1)]
    for cuts in ([], [1]):
        assert play(service(), history, cuts).table("out") == {"a": row(2.0)}


def test_newest_within_a_partition_goes_by_offset_and_across_them_by_time():
    frame = records(("a", 9, 0, 0), ("a", 1, 0, 5), ("a", 3, 1, 0), ("b", 2, 0, 1), ("b", 2, 1, 0))
    assert sorted(newest(frame).select("$key", "$part", "$off").rows()) == [(b"a", 1, 0), (b"b", 1, 0)]


@pytest.mark.parametrize("together", [True, False])
def test_latest_key_in_two_partitions_is_decided_by_time_however_cut(together):
    driver = es.testing.Driver(service(), partitions=2)
    places = [(0, 5.0, 5), (1, 3.0, 3), (0, 5.0, 8), (1, 7.0, 7)]
    if together:
        with driver.batch():
            for partition, value, ts in places:
                driver.send("in", "a", row(value), ts, partition)
    else:
        for partition, value, ts in places:
            driver.send("in", "a", row(value), ts, partition)
    assert driver.table("out") == {"a": row(5.0)}


@pytest.mark.parametrize("cuts", [[], [1, 1], [2]])
@pytest.mark.parametrize("join", [False, True])
def test_latest_repeated_value_moves_the_row_for_operations_that_order(play, cuts, join):
    history = [("in", "a", {"v": 1}, 5), ("in", "b", {"v": 2}, 3), ("in", "b", {"v": 2}, 9)]
    assert play(last_service(join), history, cuts, 2).table("out") == {"all": {"v": 2}}


VALUES = st.none() | st.builds(row, st.none() | st.floats(), st.sampled_from("xy"))
HISTORIES = st.lists(st.tuples(st.just("in"), st.sampled_from("abcd"), VALUES, st.integers(0, 9)), max_size=20)
SERVICE = service()


@settings(max_examples=examples(30), deadline=None)
@given(HISTORIES, st.lists(st.integers(1, 6), max_size=4), st.integers(1, 3), st.integers(1, 3))
def test_latest_any_history_however_cut_gives_the_last_values(play, history, cuts, shards, partitions):
    driver = play(SERVICE, history, cuts, shards, partitions)
    expected = {}
    for _, key, value, _ in history:
        expected.pop(key, None)
        if value is not None:
            expected[key] = value
    assert repr(driver.table("out")) == repr({key: expected[key] for key in sorted(expected)})


LAST = last_service()
NUMBERS = st.lists(
    st.tuples(
        st.just("in"), st.sampled_from("abc"), st.none() | st.builds(dict, v=st.integers(0, 1)), st.integers(0, 5)
    ),
    max_size=16,
)


@settings(max_examples=examples(30), deadline=None)
@given(NUMBERS, st.lists(st.integers(1, 6), max_size=4), st.integers(1, 3))
def test_latest_order_by_time_is_that_of_the_compacted_topic(play, history, cuts, shards):
    compacted = [
        record for place, record in enumerate(history) if record[1] not in {r[1] for r in history[place + 1 :]}
    ]
    expected = play(LAST, compacted).table("out")
    assert play(LAST, history, cuts, shards).table("out") == expected
