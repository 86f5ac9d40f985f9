from __future__ import annotations

import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everstate.generations.compare.difference import difference, same_value

KEYS = st.dictionaries(st.sampled_from([b"a", b"b", b"c", b"d"]), st.sampled_from([b"1", b"2", b'{"x":1}']))


def table(rows, ts=5):
    frame = pl.DataFrame(list(rows.items()), schema={"key": pl.Binary, "value": pl.Binary}, orient="row")
    return frame.with_columns(pl.lit(ts, pl.Int64).alias("ts"), pl.lit(3, pl.Int32).alias("partition"))


@pytest.mark.slow
@given(KEYS, KEYS)
def test_difference_applied_to_the_topic_gives_the_table(wanted, there):
    found = difference(table(wanted), table(there))
    after = dict(there)
    for key, value in found.records.select("key", "value").iter_rows():
        assert after.get(key) != value
        after[key] = value
    assert {key: value for key, value in after.items() if value is not None} == wanted
    assert found.records.height == found.new + found.changed + found.stale
    assert found.live == len(there)
    assert found.unchanged == sum(wanted.get(key) == value for key, value in there.items())


def test_difference_tombstone_keeps_time_and_partition_of_what_it_removes():
    found = difference(table({}), table({b"a": b"1"}, ts=77))
    assert found.records.rows() == [(b"a", None, 77, 3)]
    assert found.rows("stale") == [(b"a", b"1", None)]


def test_difference_values_that_only_look_different_are_not_written():
    there = {b"a": b'{"x": 1, "y": "\\u00e9"}', b"b": b'{"n": NaN}'}
    now = {b"a": '{"y":"é","x":1}'.encode(), b"b": b'{"n":NaN}'}
    assert difference(table(now), table(there)).records.is_empty()
    assert difference(table(now), table(there), text=True).changed == 2


@pytest.mark.parametrize(
    ("one", "other"), [("1", "1.0"), ("true", "1"), ("null", "0"), ("[1, 2]", "[2, 1]"), ('{"a": 1}', "{}"), ("x", "y")]
)
def test_same_value_other_values_and_types_differ(one, other):
    assert not same_value(one.encode(), other.encode())
    assert same_value(one.encode(), one.encode())


@pytest.mark.slow
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_same_value_does_not_depend_on_how_json_is_written(value):
    assert same_value(json.dumps(value).encode(), json.dumps(value, indent=2, ensure_ascii=False).encode())
