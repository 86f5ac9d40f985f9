"""Variances and deviations out of exact sums: one rounding at the very end, so nothing cancels and nothing drifts.

The variance is (n * sum of squares - (sum)**2) / (n * (n - ddof)). The numerator is worked out in limbs, without any
rounding; the division, or its square root, is rounded once (`quotients.py`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from everstate.kernels.operations.aggregate.exact.floats import SQUARE_BASE
from everstate.kernels.operations.aggregate.exact.integers import BASE, parts_as_limbs
from everstate.kernels.operations.aggregate.exact.limbs import (
    BITS,
    LOW,
    Floats,
    Ints,
    Limbs,
    balanced,
    counters_of,
    exact_integers,
    limbs_of,
    scaled,
)
from everstate.kernels.operations.aggregate.exact.quotients import quotients, scaled_root

if TYPE_CHECKING:
    import numpy.typing as npt

#: Squaring costs the square of the number of limbs; beyond this many, Python's integers are faster.
_MOST_LIMBS: Final = 24

#: Counts up to here leave room in 64 bits for a product with a limb.
_LARGEST_COUNT: Final = (1 << 31) - 1


def float_variance(
    frame: pl.DataFrame, count: str, total: str, squares: str, ddof: int, *, root: bool = False
) -> pl.Series:
    """The variance of floats, or the standard deviation, correctly rounded.

    Args:
        frame: Has all the columns below.
        count: The column with the number of values.
        total: Prefix of the accumulator made by `float_limbs`.
        squares: Prefix of the accumulator made by `float_squares`.
        ddof: 1 for a sample, 0 for a population.
        root: The standard deviation: the square root of the exact variance, finite where that has no float.

    Returns:
        Null where there are not more than `ddof` values; NaN where one is NaN or infinite.
    """
    counts = frame[count].to_numpy().astype(np.int64)
    result = _spread(counts, limbs_of(frame, total), limbs_of(frame, squares), ddof, SQUARE_BASE, root=root)
    counters = counters_of(frame, total)
    if counters is not None:
        result[np.logical_or.reduce([counter != 0 for counter in counters])] = math.nan
    return pl.Series(squares, result).set(pl.Series(counts <= ddof), None)


def int_variance(
    frame: pl.DataFrame, count: str, total: str, squares: str, ddof: int, *, root: bool = False
) -> pl.Series:
    """The variance of integers, out of accumulators made by `int_parts` and `int_squares`; see `float_variance`."""
    counts = frame[count].to_numpy().astype(np.int64)
    result = _spread(counts, parts_as_limbs(frame, total), limbs_of(frame, squares), ddof, BASE, root=root)
    return pl.Series(squares, result).set(pl.Series(counts <= ddof), None)


def _spread(counts: Ints, total: Limbs, squares: Limbs, ddof: int, base: int, *, root: bool) -> Floats:
    total, squares = balanced(total), balanced(squares)
    defined = counts > ddof
    if max(len(total), len(squares)) <= _MOST_LIMBS and not (counts > _LARGEST_COUNT).any():
        divisor = np.where(defined, counts * (counts - ddof), 1)
        numerator = _numerator(np.where(defined, counts, 0), _where(defined, total), _where(defined, squares))
        return quotients(numerator, base, divisor, root=root)
    result = np.zeros(counts.size)
    at = np.flatnonzero(defined)
    rows = zip(counts[at].tolist(), exact_integers(total, at), exact_integers(squares, at), strict=True)
    exactly = scaled_root if root else scaled
    result[at] = [exactly(n * square - sum_ * sum_, base, n * (n - ddof)) for n, sum_, square in rows]
    return result


def _where(rows: npt.NDArray[np.bool_], limbs: Limbs) -> Limbs:
    return limbs if rows.all() else {k: np.where(rows, limb, 0) for k, limb in limbs.items()}


def _numerator(counts: Ints, total: Limbs, squares: Limbs) -> Limbs:
    """The count times the sum of squares, minus the square of the sum; in balanced limbs."""
    result: Limbs = {}

    def add(k: int, product: Ints, times: int) -> None:
        # A product has up to 62 bits; in two limbs there is room for many of them.
        for index, part in ((k, product & LOW), (k + 1, product >> BITS)):
            term = part * times
            result[index] = result[index] + term if index in result else term

    for k, limb in squares.items():
        add(k, counts * limb, 1)
    for i, left in total.items():
        for j, right in total.items():
            if i <= j:
                add(i + j, left * right, -1 if i == j else -2)
    return balanced(result)
