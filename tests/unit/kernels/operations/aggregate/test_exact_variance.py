import math
import statistics
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from everstate.kernels.operations.aggregate.exact import (
    float_limbs,
    float_squares,
    float_variance,
    int_parts,
    int_squares,
    int_variance,
    merge,
    normalise,
    quotients,
)
from tests.equivalence.oracles import nearest_root

UNTIMED = settings(deadline=None)  # a busy machine must not fail a test of numbers
FINITE = st.floats(allow_nan=False, allow_infinity=False)
MONEY = st.integers(-(10**7), 10**7).map(lambda cents: cents / 100)
EDGES = st.sampled_from([5e-324, 2.0**-1022, 1e-160, 1e-200, 1e308, -1.7976931348623157e308, 1e154, 0.0])
FLOATS = st.lists(MONEY, min_size=1, max_size=20) | st.lists(MONEY | FINITE | EDGES, min_size=1, max_size=12)
DDOF = st.sampled_from([0, 1])


def floats_accumulated(rows):
    """One row a key, out of rows (key, value, sign)."""
    frame = pl.DataFrame(rows, schema={"key": pl.Int64, "value": pl.Float64, "sign": pl.Int8}, orient="row")
    columns = float_limbs(frame["value"], frame["sign"], "s") + float_squares(frame["value"], frame["sign"], "q")
    columns.append(frame["sign"].cast(pl.Int64).alias("n"))
    return frame.select("key").with_columns(columns).group_by("key").agg(pl.all().exclude("key").sum())


def ints_accumulated(values):
    series = pl.Series(values, dtype=pl.Int64)
    columns = int_parts(series, None, "s") + int_squares(series, None, "q")
    return pl.DataFrame(columns).sum().with_columns(n=pl.lit(len(values)))


def float_variance_of(values, ddof):
    return float_variance(floats_accumulated([(0, value, 1) for value in values]), "n", "s", "q", ddof).item()


def nearest(number):
    try:
        return number.numerator / number.denominator
    except OverflowError:
        return math.inf


def exact_variance(values, ddof, rounded=nearest):
    n = len(values)
    if n <= ddof:
        return None
    total = sum(map(Fraction, values), Fraction(0))
    squares = sum((Fraction(value) ** 2 for value in values), Fraction(0))
    return rounded((n * squares - total**2) / (n * (n - ddof)))


@UNTIMED
@given(FLOATS, DDOF)
@example([1e-200, 3e-200, 5e-324], 1)
@example([1e308, -1e308], 1)
@example([0.1, 0.1, 0.1], 1)
@example([1.0, 1.0 + 2.0**-52], 0)
@example([1e-155, 3e-155], 1)
@example([1e200, 3e200], 1)
@example([2 * (2.0**27 - 1), 0.0], 0)  # a tie
@example([2 * (2.0**27 - 1), -(2.0**-100)], 0)  # above a tie, by less than a hundred bits can show
@example([180000003.0, 0.0, 2.0**-80], 1)  # below a tie, likewise
def test_float_variance_any_finite_floats_is_the_float_nearest_to_the_exact_variance(values, ddof):
    assert float_variance_of(values, ddof) == exact_variance(values, ddof)


@UNTIMED
@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-1000, 1000), min_size=1, max_size=20), DDOF)
def test_int_variance_any_integers_is_the_float_nearest_to_the_exact_variance(values, ddof):
    assert int_variance(ints_accumulated(values), "n", "s", "q", ddof).item() == exact_variance(values, ddof)


@UNTIMED
@given(FLOATS, DDOF)
@example([1e308, -1e308], 1)  # the variance is beyond the largest float, its root is not
@example([5e-324, 0.0], 0)
@example([1e-200, 3e-200, 5e-324], 1)
@example([3.0, 3.0], 1)
@example([2.0**27 - 1, -(2.0**27) + 1, 2.0**-80], 0)
def test_float_deviation_is_the_float_nearest_to_the_root_of_the_exact_variance(values, ddof):
    frame = floats_accumulated([(0, value, 1) for value in values])
    assert float_variance(frame, "n", "s", "q", ddof, root=True).item() == exact_variance(values, ddof, nearest_root)


@UNTIMED
@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-1000, 1000), min_size=1, max_size=20), DDOF)
def test_int_deviation_is_the_float_nearest_to_the_root_of_the_exact_variance(values, ddof):
    found = int_variance(ints_accumulated(values), "n", "s", "q", ddof, root=True).item()
    assert found == exact_variance(values, ddof, nearest_root)


@UNTIMED
@given(st.lists(MONEY, min_size=2, max_size=20))
def test_float_variance_equals_the_statistics_module(values):
    assert float_variance_of(values, 1) == statistics.variance(values)
    assert float_variance_of(values, 0) == statistics.pvariance(values)


@UNTIMED
@given(st.lists(st.tuples(st.integers(0, 2), MONEY | FINITE), min_size=1, max_size=20), st.data())
def test_float_variance_any_order_cut_and_passing_rows_gives_the_same_bits(rows, data):
    kept = [(key, value, 1) for key, value in rows]
    passing = data.draw(st.lists(st.tuples(st.integers(0, 2), MONEY | FINITE), max_size=5))
    changes = kept + [(key, value, sign) for key, value in passing for sign in (1, -1)]
    shuffled = data.draw(st.permutations(changes))
    cut = data.draw(st.integers(0, len(shuffled)))
    parts = [floats_accumulated(shuffled[:cut]), floats_accumulated(shuffled[cut:])]
    state = normalise(merge(parts, ["key"]), "s", "q").filter(pl.col("n") > 0).sort("key")
    whole = normalise(floats_accumulated(kept), "s", "q").sort("key")
    assert state["key"].equals(whole["key"])
    for ddof in (0, 1):
        result, expected = (float_variance(frame, "n", "s", "q", ddof) for frame in (state, whole))
        assert result.equals(expected, null_equal=True)


@pytest.mark.parametrize(
    "values", [[math.inf], [math.nan], [1.0, math.nan], [math.inf, 1.0], [math.inf, -math.inf], [2.0]]
)
@pytest.mark.parametrize("ddof", [0, 1])
def test_float_variance_nan_infinity_and_few_values_follow_polars(values, ddof):
    expected = pl.Series([pl.Series(values).var(ddof=ddof)], dtype=pl.Float64)
    assert pl.Series([float_variance_of(values, ddof)], dtype=pl.Float64).equals(expected, null_equal=True)


def test_float_variance_infinity_that_was_retracted_leaves_no_trace():
    rows = [(0, 1.0, 1), (0, math.inf, 1), (0, 3.0, 1), (0, math.inf, -1), (0, math.nan, 1), (0, math.nan, -1)]
    assert float_variance(floats_accumulated(rows), "n", "s", "q", 1).to_list() == [2.0]


def test_variance_groups_without_values_are_null():
    frame = pl.DataFrame({"n": [0, 1, 2], "s.lo": [0, 3, 4], "q.l0": [0, 9, 10]})
    assert int_variance(frame, "n", "s", "q", 0).to_list() == [None, 0.0, 1.0]
    assert int_variance(frame, "n", "s", "q", 1).to_list() == [None, None, 2.0]
    assert float_variance(frame.select("n"), "n", "s", "q", 1).to_list() == [None, None, 0.0]


def test_float_variance_many_keys_are_settled_without_python_integers(monkeypatch):
    random = np.random.default_rng(3)
    keys, values = random.integers(0, 2000, 20_000), np.round(random.gamma(2, 50, 20_000), 2)
    frame = floats_accumulated(list(zip(keys.tolist(), values.tolist(), [1] * 20_000, strict=True))).filter(
        pl.col("n") > 1
    )
    monkeypatch.setattr(quotients, "scaled", None)
    monkeypatch.setattr(quotients, "scaled_root", None)
    quotient = float_variance(frame, "n", "s", "q", 1)
    float_variance(frame, "n", "s", "q", 1, root=True)
    expected = {key: statistics.variance(values[keys == key].tolist()) for key in range(0, 2000, 20)}
    found = dict(zip(frame["key"].to_list(), quotient.to_list(), strict=True))
    assert {key: found[key] for key in expected} == expected


def test_variance_of_very_many_values_falls_back_to_python_integers():
    n = 2**40
    frame = pl.DataFrame({"n": [n, 3], "s.lo": [5, 6], "s.hi": [2**20, 0], "q.l0": [7, 14], "q.l1": [2**34, 0]})
    total, squares = 5 + 2**52, 7 + 2**66
    expected = Fraction(n * squares - total**2, n * (n - 1))
    assert int_variance(frame, "n", "s", "q", 1).to_list() == [expected.numerator / expected.denominator, 1.0]


def test_variance_of_a_billion_values_divides_by_a_divisor_that_is_no_float():
    counts = [10**9 + 2 * step + 1 for step in range(50)]
    totals, squares = [3 * n + step for step, n in enumerate(counts)], [977 * n + step for step, n in enumerate(counts)]
    frame = pl.DataFrame({"n": counts, "s.lo": totals, "q.l0": squares})
    rows = zip(counts, totals, squares, strict=True)
    exact = [Fraction(n * square - total**2, n * (n - 1)) for n, total, square in rows]
    assert int_variance(frame, "n", "s", "q", 1).to_list() == [float(value) for value in exact]
