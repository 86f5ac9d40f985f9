"""Variances out of exact sums: one rounding at the very end, so nothing cancels and nothing drifts.

The variance is (n * sum of squares - (sum)**2) / (n * (n - ddof)). The numerator is worked out in limbs, without any
rounding; the quotient to about a hundred bits. Where these do not settle which float is nearest, and for numbers at the
ends of the range of floats, that row is divided as Python integers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from everstate.kernels.exact.floats import SQUARE_BASE, two_product
from everstate.kernels.exact.integers import BASE, parts_as_limbs
from everstate.kernels.exact.limbs import (
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

if TYPE_CHECKING:
    import numpy.typing as npt

#: Squaring costs the square of the number of limbs; beyond this many, Python's integers are faster.
_MOST_LIMBS: Final = 24

#: Counts up to here leave room in 64 bits for a product with a limb.
_LARGEST_COUNT: Final = (1 << 31) - 1

#: Exponents between which no intermediate result of the quotient can overflow or lose bits.
_SAFE: Final = 600

#: Bound of the quotient's relative error; the true one is below 2**-100.
_ERROR: Final = 2.0**-95


def float_variance(frame: pl.DataFrame, count: str, total: str, squares: str, ddof: int) -> pl.Series:
    """The variance of floats, correctly rounded; its square root is the standard deviation.

    Args:
        frame: Has all the columns below.
        count: The column with the number of values.
        total: Prefix of the accumulator made by `float_limbs`.
        squares: Prefix of the accumulator made by `float_squares`.
        ddof: 1 for a sample, 0 for a population.

    Returns:
        Null where there are not more than `ddof` values; NaN where one is NaN or infinite.
    """
    counts = frame[count].to_numpy().astype(np.int64)
    result = _quotients(counts, limbs_of(frame, total), limbs_of(frame, squares), ddof, SQUARE_BASE)
    counters = counters_of(frame, total)
    if counters is not None:
        result[np.logical_or.reduce([counter != 0 for counter in counters])] = math.nan
    return pl.Series(squares, result).set(pl.Series(counts <= ddof), None)


def int_variance(frame: pl.DataFrame, count: str, total: str, squares: str, ddof: int) -> pl.Series:
    """The variance of integers, out of accumulators made by `int_parts` and `int_squares`; see `float_variance`."""
    counts = frame[count].to_numpy().astype(np.int64)
    result = _quotients(counts, parts_as_limbs(frame, total), limbs_of(frame, squares), ddof, BASE)
    return pl.Series(squares, result).set(pl.Series(counts <= ddof), None)


def _quotients(counts: Ints, total: Limbs, squares: Limbs, ddof: int, base: int) -> Floats:
    result = np.zeros(counts.size)
    total, squares = balanced(total), balanced(squares)
    defined = counts > ddof
    if max(len(total), len(squares)) > _MOST_LIMBS or (counts > _LARGEST_COUNT).any():
        unsettled = defined
    else:
        divisor = np.where(defined, counts * (counts - ddof), 1)
        result, settled = _divide(_numerator(counts, total, squares), base, divisor)
        unsettled = defined & ~settled
    at = np.flatnonzero(unsettled)
    rows = zip(counts[at].tolist(), exact_integers(total, at), exact_integers(squares, at), strict=True)
    result[at] = [scaled(n * square - sum_ * sum_, base, n * (n - ddof)) for n, sum_, square in rows]
    return result


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


def _divide(numerator: Limbs, base: int, divisor: Ints) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """The nearest floats to the quotients, and where they are proven to be."""
    high, low, safe = _leading(numerator, base, divisor.size)
    divisor_high = divisor.astype(np.float64)
    divisor_low = (divisor - divisor_high.astype(np.int64)).astype(np.float64)
    first = high / divisor_high
    product, error = two_product(first, divisor_high)
    second = ((high - product) - error + (low - first * divisor_low)) / divisor_high
    quotient = first + second
    rest = second - (quotient - first)
    margin = np.abs(quotient) * _ERROR
    settled = (quotient + (rest + margin) == quotient) & (quotient + (rest - margin) == quotient)
    return quotient, safe & settled


def _leading(limbs: Limbs, base: int, rows: int) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
    """Each number as the sum of two floats, good to a hundred bits where the third result says so."""
    high, low = np.zeros(rows), np.zeros(rows)
    above, below = np.zeros(rows, np.bool_), np.zeros(rows, np.bool_)
    for k in sorted(limbs, reverse=True):
        exponent = BITS * k + base
        if exponent > _SAFE:
            above |= limbs[k] != 0
        elif exponent < -_SAFE - 400:
            below |= limbs[k] != 0
        else:
            part = limbs[k] * math.ldexp(1.0, exponent)
            summed = high + part
            low += part - (summed - high)
            high = summed
    leading = high + low
    # What lies below is left out: too little to matter for a number in the safe range, but not for nought.
    safe = ~above & ((np.abs(leading) > 2.0**-_SAFE) | ((leading == 0) & ~below))
    return leading, low - (leading - high), safe
