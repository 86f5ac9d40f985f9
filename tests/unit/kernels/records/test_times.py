import polars as pl
import pytest

from everstate.kernels.output import with_headers
from everstate.kernels.records.times import heard, running, told
from everstate.kernels.rows import OFF, STREAM_TIME, TS
from everstate.log.records import HEADERS


def records(*rows):
    """Each is a time and the text of its header, or None."""
    headers = [None if text is None else [{"name": "es-st", "value": text}] for _, text in rows]
    frame = pl.DataFrame({"offset": range(len(rows)), "ts": [ts for ts, _ in rows]})
    return frame.with_columns(pl.Series("headers", headers, dtype=HEADERS))


def times(frame):
    rows = frame.select(pl.col("offset").alias(OFF), pl.col("ts").alias(TS))
    found = running(rows, heard(frame))
    return found[STREAM_TIME].to_list(), found["least"].to_list()


def test_times_that_are_written_are_read():
    rows = pl.DataFrame({STREAM_TIME: [3, 7], TS: [1, 7]})
    written = pl.DataFrame({"key": [b"a", b"b"], "value": [b"1", b"2"], "ts": rows[TS]}).hstack(told(rows, None, 5))
    found = heard(with_headers(written, "s", "1").with_row_index("offset").cast({"offset": pl.Int64}))
    assert found is not None
    assert found.rows() == [(0, 1, 3, 5), (1, 7, 7, 5)]


def test_times_told_by_one_of_several_shards_promise_no_more_than_before_the_micro_batch():
    rows = pl.DataFrame({STREAM_TIME: [3, 7], TS: [1, 7]})
    assert told(rows, 2, None)[1].to_list() == [2, 2]
    assert told(rows, None, None)[1].to_list() == [None, None]


def test_times_told_by_the_only_shard_promise_what_follows():
    rows = pl.DataFrame({STREAM_TIME: [3, 7, 20], TS: [1, 7, 20]})
    assert told(rows, 2, 12)[1].to_list() == [7, 12, 12]


def test_times_of_records_out_of_order_are_their_own():
    assert times(records((50, b"50,0"), (3, b"10,0"), (40, b"45,20"), (22, b"22"))) == (
        [50, 10, 45, 22],
        [0, 0, 20, 20],
    )


def test_times_that_a_record_promises_hold_from_the_next_one_on():
    assert times(records((5, b"5,9"), (6, b"6,9"), (12, b"12,12"))) == ([5, 9, 12], [9, 9, 12])


def test_times_of_records_that_say_nothing_go_by_their_order():
    assert times(records((5, None), (9, None), (7, None))) == ([5, 9, 9], [5, 9, 9])


def test_times_of_a_mixed_topic_never_fall_below_what_has_been_reached():
    assert times(records((30, None), (20, b"20,10"), (40, b"40,35"), (1, None))) == ([30, 30, 40, 35], [30, 30, 35, 35])


@pytest.mark.parametrize("text", [b"", b"x", b"\xff", b",5", b"-4,1", b"1e3", b"99999999999999999999", None])
def test_times_that_are_no_numbers_are_not_believed(text):
    frame = records((5, b"9,1"), (7, None)).with_columns(
        pl.Series("headers", [None, [{"name": "es-st", "value": text}]], dtype=HEADERS)
    )
    assert times(frame) == ([5, 7], [5, 7])


def test_times_of_a_record_are_not_believed_of_a_row_with_another_time():
    frame = records((5, b"900,800"))
    rows = pl.DataFrame({OFF: [0], TS: [6]})
    assert running(rows, heard(frame))[STREAM_TIME].to_list() == [6]
