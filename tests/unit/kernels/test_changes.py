import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everstate.kernels.changes import consolidate, differences, shaped
from everstate.kernels.rows import KEY, OP, ORDER, SYSTEM, TS

NESTED = pl.List(pl.Struct({"name": pl.String(), "weights": pl.List(pl.Float64())}))


def table(values, dtype=None, ts=1, offset=0):
    """One row a key with the one column `v`."""
    return pl.DataFrame(
        {
            KEY: [key.encode() for key in values],
            TS: [ts] * len(values),
            "$topic": [0] * len(values),
            "$part": [0] * len(values),
            "$off": [offset] * len(values),
            "v": pl.Series(list(values.values()), dtype=dtype or pl.Int64, strict=False),
        },
        schema_overrides={name: dtype for name, dtype in SYSTEM.items() if name in ORDER} | {KEY: pl.Binary},
    )


def rows(*changes, dtype=None):
    """(key, op, value) in order, offsets as they come."""
    return pl.DataFrame(
        {
            KEY: [key.encode() for key, _, _ in changes],
            OP: [op for _, op, _ in changes],
            TS: [1] * len(changes),
            "$topic": [0] * len(changes),
            "$part": [0] * len(changes),
            "$off": list(range(len(changes))),
            "$st": [1] * len(changes),
            "v": pl.Series([value for *_, value in changes], dtype=dtype or pl.Int64, strict=False),
        },
        schema_overrides=SYSTEM,
    )


def seen(frame):
    return sorted(((key.decode(), op, value) for key, op, value in frame.select(KEY, OP, "v").rows()), key=repr)


def test_differences_of_insert_update_delete_give_one_row_a_side():
    old, new = table({"a": 1, "b": 2, "c": 3}), table({"a": 1, "b": 5, "d": 4}, ts=2)
    result = differences(old, new, ["v"])
    assert seen(result) == [("b", -1, 2), ("b", 1, 5), ("c", -1, 3), ("d", 1, 4)]
    assert dict(result.collect_schema()) == SYSTEM | {"v": pl.Int64()}


def test_differences_retractions_come_first():
    result = differences(table({"a": 1, "b": 2}), table({"a": 3, "b": 4}), ["v"])
    assert result[OP].to_list() == [-1, -1, 1, 1]


def test_differences_retraction_takes_the_time_of_its_cause():
    old, new = table({"a": 1, "b": 2}, ts=1), table({"a": 3}, ts=7)
    causes = table({"a": 0, "b": 0}, ts=9, offset=4)
    assert differences(old, new, ["v"])[TS].to_list() == [7, 1, 7]
    assert differences(old, new, ["v"], causes=causes).select(TS, "$off").rows() == [(9, 4), (9, 4), (7, 0)]


def test_differences_with_moves_report_a_row_that_only_moved():
    old, new = table({"a": 1}, ts=1), table({"a": 1}, ts=2)
    assert differences(old, new, ["v"]).is_empty()
    assert seen(differences(old, new, ["v"], moves=True)) == [("a", -1, 1), ("a", 1, 1)]
    assert differences(old, old, ["v"], moves=True).is_empty()


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (pl.Int64(), None),
        (pl.Float64(), math.nan),
        (pl.List(pl.Float64()), [1.0, math.nan, None]),
        (pl.Struct({"a": pl.Int64(), "b": pl.Float64()}), {"a": None, "b": math.nan}),
        (NESTED, [{"name": None, "weights": [math.nan, None]}, {"name": "x", "weights": None}]),
    ],
)
def test_differences_of_equal_special_values_are_none(dtype, value):
    old = new = table({"a": value}, dtype)
    assert differences(old, new, ["v"]).is_empty()
    assert consolidate(rows(("a", -1, value), ("a", 1, value), dtype=dtype), ["v"]).is_empty()


@pytest.mark.parametrize(
    ("dtype", "one", "other"),
    [
        (pl.Float64(), 0.0, -0.0),
        (pl.Float64(), None, math.nan),
        (pl.List(pl.Float64()), [0.0], [-0.0]),
        (pl.List(pl.Float64()), [], None),
        (pl.Struct({"a": pl.Float64()}), {"a": 0.0}, {"a": -0.0}),
        (pl.Struct({"a": pl.Float64()}), {"a": None}, None),
        (NESTED, [{"name": "x", "weights": [0.0]}], [{"name": "x", "weights": [-0.0]}]),
    ],
)
def test_differences_of_values_that_functions_can_tell_apart_are_changes(dtype, one, other):
    assert differences(table({"a": one}, dtype), table({"a": other}, dtype), ["v"]).height == 2
    assert consolidate(rows(("a", -1, one), ("a", 1, other), dtype=dtype), ["v"]).height == 2


def test_differences_without_columns_compare_presence_only():
    result = differences(table({"a": 1, "b": 1}), table({"b": 2, "c": 3}), [])
    assert sorted(result.select(KEY, OP).rows()) == [(b"a", -1), (b"c", 1)]


def test_consolidate_equal_pair_cancels_unless_moves_count():
    change = rows(("a", -1, 1), ("a", 1, 1), ("b", -1, 1), ("b", 1, 2))
    assert seen(consolidate(change, ["v"])) == [("b", -1, 1), ("b", 1, 2)]
    assert consolidate(change, ["v"], moves=True).height == 4


def test_consolidate_chain_of_changes_keeps_its_ends():
    change = rows(
        ("a", 1, 1), ("a", -1, 1), ("a", 1, 2), ("a", -1, 2), ("a", 1, 3), ("b", -1, 1), ("b", 1, 2), ("b", -1, 2)
    )
    assert seen(consolidate(change, ["v"])) == [("a", 1, 3), ("b", -1, 1)]


def test_consolidate_empty_rows_stay_empty():
    assert consolidate(rows(), ["v"]).is_empty()


def test_shaped_missing_column_is_null():
    frame = shaped(pl.DataFrame(schema={KEY: pl.Binary()}), {KEY: pl.Binary(), "v": NESTED})
    assert dict(frame.collect_schema()) == {KEY: pl.Binary(), "v": NESTED}


VALUES = st.dictionaries(st.sampled_from("abcd"), st.none() | st.floats(), max_size=4)


@given(VALUES, VALUES)
def test_differences_applied_to_the_old_table_give_the_new_one(old, new):
    held = {key: repr(value) for key, value in old.items()}
    result = differences(table(old, pl.Float64), table(new, pl.Float64), ["v"])
    for key, op, value in result.sort(OP).select(KEY, OP, "v").rows():
        if op < 0:
            assert held.pop(key.decode()) == repr(value)
        else:
            held[key.decode()] = repr(value)
    assert held == {key: repr(value) for key, value in new.items()}
    assert result.select(KEY, OP).is_unique().all()
