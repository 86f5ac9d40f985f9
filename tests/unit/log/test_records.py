from __future__ import annotations

import polars as pl
import pytest

from everstate.errors import LogError
from everstate.log import records


def test_content_text_and_smaller_integers_are_brought_into_shape():
    frame = pl.DataFrame({"key": ["a"], "value": ["1"], "ts": pl.Series([5], dtype=pl.Int32)})
    found = records.content(frame, now_ms=9)
    assert found.schema == records.CONTENT
    assert found.row(0) == (b"a", b"1", 5, None)


def test_content_missing_time_is_now():
    assert records.content(pl.DataFrame({"key": [b"a"], "value": [b"1"]}), now_ms=9)["ts"].to_list() == [9]


def test_content_type_that_does_not_fit_is_refused():
    with pytest.raises(LogError, match="these are not records"):
        records.content(pl.DataFrame({"key": [b"a"], "value": [[1]]}), now_ms=0)


def test_partitions_for_rows_without_key_or_partition_take_turns():
    frame = pl.DataFrame({"key": [None, None, None], "partition": [None, 1, None]}, schema_overrides={"key": pl.Binary})
    assert records.partitions_for(frame, 4, turn=2).to_list() == [2, 1, 3]


def test_to_records_headers_become_pairs():
    frame = pl.DataFrame(
        {
            "key": [b"a"],
            "value": [None],
            "ts": [1],
            "headers": [[{"name": "h", "value": b"v"}]],
            "offset": [3],
            "partition": [0],
        },
        schema=records.SCHEMA,
    )
    assert next(records.to_records("t", frame)) == records.Record("t", 0, 3, b"a", None, 1, (("h", b"v"),))


def test_content_times_that_are_missing_in_some_rows_are_now():
    frame = pl.DataFrame({"key": [b"a", b"b"], "value": [b"1", b"2"], "ts": [None, 3]})
    assert records.content(frame, now_ms=9)["ts"].to_list() == [9, 3]


def test_content_of_no_records_has_the_columns():
    assert records.content(pl.DataFrame({"value": []}), now_ms=0).schema == records.CONTENT
