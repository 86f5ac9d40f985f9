import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from everstate.kernels.operations.aggregate.exact import merge, normalise
from everstate.kernels.operations.aggregate.exact.limbs import balanced, exact_integers, nearest, scaled

UNTIMED = settings(deadline=None)  # a busy machine must not fail a test of numbers
LIMBS = st.dictionaries(st.integers(0, 12), st.integers(-(2**62), 2**62) | st.integers(-(2**32), 2**32), max_size=6)


def as_limbs(rows):
    """The limbs of several rows, missing ones as zero."""
    return {k: np.array([row.get(k, 0) for row in rows], np.int64) for k in sorted({k for row in rows for k in row})}


def number(row):
    return sum(limb << (32 * k) for k, limb in row.items())


@UNTIMED
@given(st.lists(LIMBS, min_size=1, max_size=5))
def test_balanced_any_limbs_keeps_the_numbers_and_bounds_the_limbs(rows):
    result = balanced(as_limbs(rows))
    assert exact_integers(result, np.arange(len(rows))) == [number(row) for row in rows]
    assert all(limb.min() >= -(2**31) and limb.max() < 2**31 and limb.any() for limb in result.values())


@UNTIMED
@given(st.lists(LIMBS, min_size=1, max_size=5), st.integers(-1074, 400))
def test_nearest_any_limbs_and_base_equals_the_division_of_integers(rows, base):
    expected = [scaled(number(row), base) for row in rows]
    assert nearest(as_limbs(rows), base, len(rows)).tolist() == expected


@UNTIMED
@given(st.integers(2**52, 2**53 - 1), st.integers(0, 40), st.sampled_from([-1, 0, 1]), st.sampled_from([-1, 1]))
def test_nearest_ties_and_their_neighbours_round_to_even_or_to_the_nearer(mantissa, shift, beside, sign):
    exact = sign * ((((mantissa << 1) + 1) << (shift + 100)) + beside)
    rows = [{k: (abs(exact) >> (32 * k) & 0xFFFFFFFF) * (1 if exact > 0 else -1) for k in range(8)}]
    assert number(rows[0]) == exact
    assert nearest(as_limbs(rows), -1000, 1).tolist() == [scaled(exact, -1000)]


def test_merge_frames_with_different_limbs_adds_by_key():
    first = pl.DataFrame({"key": ["a", "b"], "s.l1": [1, 2]})
    second = pl.DataFrame({"key": ["b", "c"], "s.l2": [5, 6], "s.nan": [1, 0]})
    merged = merge([first, second, pl.DataFrame({"key": []}, schema={"key": pl.String})], ["key"]).sort("key")
    assert merged.rows(named=True) == [
        {"key": "a", "s.l1": 1, "s.l2": 0, "s.nan": 0},
        {"key": "b", "s.l1": 2, "s.l2": 5, "s.nan": 1},
        {"key": "c", "s.l1": 0, "s.l2": 6, "s.nan": 0},
    ]


def test_normalise_several_prefixes_leaves_other_columns_alone():
    frame = pl.DataFrame(
        {"s.l1": [2**40, None], "key": [1, 2], "s.last": [3, 4], "s.nan": [0, None], "t.lo": [-1, 2**33]}
    )
    assert normalise(frame, "s", "t").to_dict(as_series=False) == {
        "key": [1, 2],
        "s.last": [3, 4],
        "s.l2": [256, 0],
        "t.lo": [2**32 - 1, 0],
        "t.hi": [-1, 2],
    }


def test_normalise_no_rows_and_no_columns_of_the_prefix_changes_nothing():
    frame = pl.DataFrame({"key": [1]})
    assert normalise(frame, "s").equals(frame)
    assert normalise(frame.clear().with_columns(pl.Series("s.l1", [], pl.Int64)), "s").columns == ["key"]
