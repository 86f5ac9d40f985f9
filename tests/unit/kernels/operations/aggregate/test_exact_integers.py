import pickle

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everstate.errors import NumberOverflowError
from everstate.kernels.operations.aggregate.exact import (
    first_overflow,
    int_mean,
    int_parts,
    int_squares,
    int_total,
    merge,
    normalise,
)
from everstate.kernels.operations.aggregate.exact.limbs import exact_integers, limbs_of

UNTIMED = settings(deadline=None)  # a busy machine must not fail a test of numbers
SIGNED = st.integers(-(2**63), 2**63 - 1) | st.integers(-1000, 1000)
SIGNS = st.sampled_from([1, -1])
INTEGERS = [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64]


def accumulated(rows, dtype=pl.Int64):
    """One row a key, out of rows (key, value, sign)."""
    frame = pl.DataFrame(rows, schema={"key": pl.Int64, "value": dtype, "sign": pl.Int8}, orient="row")
    columns = int_parts(frame["value"], frame["sign"], "s") + int_squares(frame["value"], frame["sign"], "q")
    return frame.select("key").with_columns(columns).group_by("key").agg(pl.all().exclude("key").sum())


def fits(number):
    return -(2**63) <= number < 2**63


@UNTIMED
@given(st.lists(st.tuples(SIGNED, SIGNS), min_size=1, max_size=30))
def test_int_total_any_integers_is_exact_or_a_named_error(rows):
    frame = accumulated([(0, value, sign) for value, sign in rows])
    exact = sum(value * sign for value, sign in rows)
    if fits(exact):
        assert int_total(frame, "s").to_list() == [exact]
        assert int_total(normalise(frame, "s"), "s").to_list() == [exact]
    else:
        with pytest.raises(NumberOverflowError):
            int_total(frame, "s")


@UNTIMED
@given(st.lists(st.tuples(st.integers(0, 3), SIGNED, SIGNS), min_size=1, max_size=40), st.data())
def test_int_parts_any_order_and_any_cut_gives_the_same_columns(rows, data):
    whole = normalise(accumulated(rows), "s", "q").sort("key")
    shuffled = data.draw(st.permutations(rows))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    state = normalise(accumulated([]), "s", "q")
    for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        state = normalise(merge([state, accumulated(shuffled[start:end])], ["key"]), "s", "q")
    assert state.sort("key").select(sorted(state.columns)).equals(whole.select(sorted(whole.columns)))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_int_total_every_integer_type_takes_its_limits(dtype):
    low, high = pl.select(pl.lit(0, dtype).lower_bound()).item(), pl.select(pl.lit(0, dtype).upper_bound()).item()
    values = pl.Series([low, high, None, high, high], dtype=dtype)
    signs = pl.Series([1, 1, 1, 1, -1], dtype=pl.Int8)
    frame = pl.DataFrame(int_parts(values, signs, "s")).sum()
    squares = pl.DataFrame(int_squares(values, None, "q")).sum()
    if dtype == pl.UInt64:
        assert first_overflow(frame, "s") == 0
    else:
        assert int_total(frame, "s").to_list() == [low + high]
    assert exact_integers(limbs_of(squares, "q"), np.array([0])) == [low**2 + 3 * high**2]


def test_int_total_overflow_names_the_first_row_and_survives_pickling():
    frame = pl.DataFrame({"s.lo": [1, 2**62, 2**62], "s.hi": [0, 2**30, 2**30]})
    with pytest.raises(NumberOverflowError, match=r"row 1\b") as caught:
        int_total(frame, "s")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert first_overflow(frame, "s") == 1
    assert first_overflow(frame.head(1), "s") is None


def test_int_total_at_the_limits_of_64_bits_fits():
    frame = pl.DataFrame({"s.lo": [2**32 - 1, 0, -1, None], "s.hi": [2**31 - 1, -(2**31), None, 3]})
    assert int_total(frame, "s").to_list() == [2**63 - 1, -(2**63), -1, 3 << 32]


def test_int_total_without_any_rows_added_is_zero():
    assert int_total(pl.DataFrame({"key": [1, 2]}), "s").to_list() == [0, 0]


def test_int_parts_small_values_take_one_column_and_large_ones_two():
    assert [part.name for part in int_parts(pl.Series([5, -3]), None, "s")] == ["s.lo"]
    assert [part.name for part in int_parts(pl.Series([2**62, -3]), None, "s")] == ["s.lo", "s.hi"]
    assert [part.name for part in int_parts(pl.Series([], dtype=pl.Int64), None, "s")] == ["s.lo"]


@UNTIMED
@given(st.lists(st.tuples(SIGNED, SIGNS), min_size=1, max_size=20))
def test_int_squares_any_integers_add_up_exactly(rows):
    frame = accumulated([(0, value, sign) for value, sign in rows])
    assert exact_integers(limbs_of(frame, "q"), np.array([0])) == [sum(value**2 * sign for value, sign in rows)]


@UNTIMED
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20))
def test_int_mean_any_integers_is_the_float_nearest_to_the_exact_mean(values):
    frame = accumulated([(0, value, 1) for value in values]).with_columns(count=pl.lit(len(values)))
    assert int_mean(frame, "count", "s").item() == sum(values) / len(values)  # which Python rounds once


def test_int_mean_nothing_counted_is_null():
    assert int_mean(pl.DataFrame({"count": [0, 4], "s.lo": [0, 10]}), "count", "s").to_list() == [None, 2.5]
