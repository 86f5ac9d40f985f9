import math
import struct
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from everstate.kernels.operations.aggregate.exact import (
    float_limbs,
    float_mean,
    float_squares,
    float_total,
    merge,
    normalise,
)
from everstate.kernels.operations.aggregate.exact.floats import SQUARE_BASE, SUM_BASE
from everstate.kernels.operations.aggregate.exact.limbs import exact_integers, limbs_of

UNTIMED = settings(deadline=None)  # a busy machine must not fail a test of numbers
FINITE = st.floats(allow_nan=False, allow_infinity=False)
# Sums of these leave ties, cancellations and carries behind far more often than floats of all kinds do.
ROUGH = st.builds(math.ldexp, st.integers(-(2**53), 2**53).map(float), st.integers(-120, 60))
EDGES = st.sampled_from([5e-324, 2.0**-1022, 2.0**-1074 * 3, 1e308, 1.7976931348623157e308, -1e308, 2.0**-42, 2.0**-32])
TIES = st.sampled_from(
    [1.0, 2.0**53, 2.0**-53, -(2.0**-53), 2.0**-106, -(2.0**-106), 2.0**53 + 2, 2.0**-1074, -(2.0**-54)]
)
NUMBERS = st.lists(FINITE | ROUGH | EDGES | TIES, max_size=30)


def accumulated(rows, prefix="s"):
    """One row a key, out of rows (key, value, sign)."""
    frame = pl.DataFrame(rows, schema={"key": pl.Int64, "value": pl.Float64, "sign": pl.Int8}, orient="row")
    columns = float_limbs(frame["value"], frame["sign"], prefix)
    return frame.select("key").with_columns(columns).group_by("key").agg(pl.all().exclude("key").sum())


def total_of(values, signs=None):
    signs = signs or [1] * len(values)
    frame = accumulated([(0, value, sign) for value, sign in zip(values, signs, strict=True)])
    return float_total(frame, "s").item() if frame.height else 0.0


def nearest_float(exact):
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def bits(value):
    return struct.pack("<d", value)


@UNTIMED
@given(NUMBERS)
@example([1e308, 1e308, -1e308])
@example([1.7976931348623157e308, 2.0**970])
@example([1.7976931348623157e308, math.nextafter(2.0**970, 0)])
@example([-1.7976931348623157e308, -(2.0**970), 5e-324])
@example([1.0, 2.0**-53, 2.0**-1074])
@example([1.0, 2.0**-53, -(2.0**-1074)])
@example([1.0 + 2.0**-52, 2.0**-53, -(2.0**-200)])
@example([2.0, -(2.0**-53), -(2.0**-500)])
@example([-0.0, -0.0])
def test_float_total_any_finite_floats_is_the_float_nearest_to_the_exact_sum(values):
    total = total_of(values)
    assert bits(total) == bits(nearest_float(sum(map(Fraction, values), Fraction(0))))
    try:
        expected = math.fsum(values)
    except OverflowError:
        return
    assert bits(total) == bits(expected)


@UNTIMED
@given(st.lists(st.tuples(st.integers(0, 3), FINITE | ROUGH | EDGES | TIES), min_size=1, max_size=40), st.data())
def test_float_total_any_order_and_any_cut_gives_the_same_bits_and_the_same_columns(rows, data):
    rows = [(key, value, 1) for key, value in rows]
    whole = normalise(accumulated(rows), "s").sort("key")
    shuffled = data.draw(st.permutations(rows))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    state = accumulated([])
    for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        batch = accumulated(shuffled[start:end])
        if data.draw(st.booleans()):
            batch = normalise(batch, "s")
        state = normalise(merge([state, batch], ["key"]), "s")
    state = state.sort("key")
    assert state.equals(whole)
    assert float_total(state, "s").to_numpy().tobytes() == float_total(whole, "s").to_numpy().tobytes()


@UNTIMED
@given(NUMBERS, st.lists(FINITE | ROUGH | EDGES, min_size=1, max_size=10), st.randoms(use_true_random=False))
def test_float_total_retractions_leave_no_trace(kept, passing, random):
    rows = [(0, value, 1) for value in [*kept, *passing]] + [(0, value, -1) for value in passing]
    random.shuffle(rows)
    state = normalise(accumulated(rows), "s")
    expected = normalise(accumulated([(0, 0.0, 1), *((0, value, 1) for value in kept)]), "s")
    assert state.equals(expected)


@UNTIMED
@given(st.lists(FINITE | ROUGH, min_size=1, max_size=30), st.permutations([0, 1, 2]))
def test_float_total_of_cancelled_sums_is_positive_zero(values, order):
    doubled = [*values, *[-value for value in values]]
    assert bits(total_of(doubled)) == bits(0.0)
    assert normalise(accumulated([(key, value, 1) for key in order for value in doubled]), "s").columns == ["key"]


@pytest.mark.parametrize(
    ("values", "signs", "expected"),
    [
        ([1.0, math.nan], [1, 1], math.nan),
        ([1.0, math.nan, math.nan], [1, 1, -1], 1.0),
        ([math.inf, 1.0], [1, 1], math.inf),
        ([-math.inf, 1.0], [1, 1], -math.inf),
        ([math.inf, -math.inf], [1, 1], math.nan),
        ([math.inf, -math.inf, -math.inf], [1, 1, -1], math.inf),
        ([math.inf, math.inf, 2.0], [1, -1, 1], 2.0),
        ([math.inf, math.inf, math.inf], [1, 1, -1], math.inf),
        ([math.inf, math.nan], [1, 1], math.nan),
        ([None, 2.5], [1, 1], 2.5),
        ([None], [1], 0.0),
    ],
)
def test_float_total_nan_infinity_and_null_follow_addition_and_can_be_retracted(values, signs, expected):
    total = total_of(values, signs)
    assert total == expected or (math.isnan(total) and math.isnan(expected))


def test_float_limbs_only_limbs_and_counters_that_occur_have_columns():
    assert float_limbs(pl.Series([0.0, -0.0, None]), None, "s") == []
    money = float_limbs(pl.Series([12.99, -3.5]), None, "s")
    assert [column.name for column in money] == ["s.l32", "s.l33"]
    apart = float_limbs(pl.Series([1e300, 1e-300, math.nan]), None, "s")
    assert [column.name for column in apart] == ["s.l0", "s.l1", "s.l2", "s.l63", "s.l64", "s.nan"]
    assert {column.dtype for column in [*money, *apart]} == {pl.Int64()}


def test_float_limbs_float32_and_no_rows_are_accepted():
    frame = pl.DataFrame(float_limbs(pl.Series([0.1, 0.2], dtype=pl.Float32), None, "s")).sum()
    assert float_total(frame, "s").item() == float(np.float32(0.1)) + float(np.float32(0.2))
    assert float_limbs(pl.Series([], dtype=pl.Float64), None, "s") == []


def test_float_total_more_rows_than_one_block_equals_fsum_on_every_key():
    random = np.random.default_rng(7)
    values = np.round(random.gamma(2, 50, 50_000), 2) * random.choice([-1, 1], 50_000)
    values[::1000] *= 10.0 ** random.integers(-300, 290, 50)
    rows = list(zip(random.integers(0, 500, 50_000).tolist(), values.tolist(), [1] * 50_000, strict=True))
    groups = {}
    for key, value, _ in rows:
        groups.setdefault(key, []).append(value)
    sums = accumulated(rows)
    totals = dict(zip(sums["key"].to_list(), float_total(sums, "s").to_list(), strict=True))
    assert totals == {key: math.fsum(values) for key, values in groups.items()}


def test_float_total_full_limbs_of_a_billion_rows_do_not_overflow():
    count = 2**30
    limbs = {f"s.l{k}": [(2**32 - 1) * count, -(2**32 - 1) * count] for k in (33, 34)}
    frame = pl.DataFrame({"key": [0, 1], **limbs})
    exact = Fraction((2**64 - 1) * count) * Fraction(2) ** (32 * 33 + SUM_BASE)
    carried = normalise(frame, "s")
    assert float_total(frame, "s").to_list() == [nearest_float(exact), nearest_float(-exact)]
    assert float_total(carried, "s").to_list() == [nearest_float(exact), nearest_float(-exact)]
    assert carried.select(pl.all().exclude("key").abs().max()).row(0) <= (2**31,) * 3


@UNTIMED
@given(st.lists(FINITE | ROUGH | EDGES, min_size=1, max_size=30))
@example([1e308, 1.7e308, 0.0, 1.0])
@example([-1.7e308, -1.7e308])
@example([5e-324, 0.0])
@example([1.0, 1.0 + 2.0**-52])  # a tie
@example([1.0, 1.0 + 2.0**-52, 5e-324])
def test_float_mean_is_the_float_nearest_to_the_exact_mean(values):
    frame = accumulated([(0, value, 1) for value in values]).with_columns(count=pl.lit(len(values)))
    exact = sum(map(Fraction, values), Fraction(0)) / len(values)
    assert bits(float_mean(frame, "count", "s").item()) == bits(exact.numerator / exact.denominator)


@UNTIMED
@given(st.lists(FINITE, min_size=1, max_size=5), st.sampled_from([math.inf, -math.inf, math.nan]))
def test_float_mean_with_an_infinity_is_infinite_and_with_nan_is_nan(values, unusual):
    frame = accumulated([(0, value, 1) for value in [*values, unusual]]).with_columns(count=pl.lit(len(values) + 1))
    assert bits(float_mean(frame, "count", "s").item()) == bits(unusual)


def test_float_mean_nothing_counted_is_null():
    frame = pl.DataFrame({"count": [0, 2], "s.l33": [0, 2**18]})
    assert float_mean(frame, "count", "s").to_list() == [None, 0.5]


@UNTIMED
@given(st.lists(st.tuples(FINITE | ROUGH | EDGES, st.sampled_from([1, -1])), min_size=1, max_size=20))
def test_float_squares_any_finite_floats_add_up_exactly(rows):
    values, signs = zip(*rows, strict=True)
    frame = pl.DataFrame(float_squares(pl.Series(values), pl.Series(signs, dtype=pl.Int8), "q")).sum()
    exact = sum((Fraction(value) ** 2 * sign for value, sign in rows), Fraction(0))
    units = exact_integers(limbs_of(frame, "q"), np.array([0]))[0] if frame.width else 0
    assert units * Fraction(2) ** SQUARE_BASE == exact


def test_float_squares_nan_infinity_and_null_count_as_nothing():
    assert float_squares(pl.Series([math.nan, math.inf, -math.inf, None]), None, "q") == []
