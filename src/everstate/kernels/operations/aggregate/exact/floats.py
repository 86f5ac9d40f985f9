"""Floats as exact accumulators: a float is an integer times a power of two, so it can be laid into integer limbs.

Sums lie on a grid that starts at the smallest float, squares on one that starts at its square. Both are split by float
arithmetic that happens to be exact: scaling by powers of two, truncation, and the subtraction of what was cut off.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import polars as pl

from everstate.kernels.operations.aggregate.exact.limbs import (
    BITS,
    COUNTERS,
    Floats,
    Limbs,
    balanced,
    counters_of,
    limbs_of,
    nearest,
)
from everstate.kernels.operations.aggregate.exact.quotients import quotients, two_product

#: Exponent of the smallest float: limb k of a sum of floats stands for 2**(32 * k - 1074).
SUM_BASE: Final = -1074

#: Limb k of a sum of squares stands for 2**(32 * k - 2148).
SQUARE_BASE: Final = 2 * SUM_BASE

#: Rows that are split at a time; three arrays of this length stay in the processor's cache.
_BLOCK: Final = 8192

#: Between 2**-400 and 2**400 squares neither overflow nor lose bits below the smallest float. Others are brought there
#: by a power of two whose square is a whole number of limbs.
_SQUARE_SAFE: Final = 400
_SQUARE_SHIFT: Final = 608


def float_limbs(values: pl.Series, sign: pl.Series | None, prefix: str) -> list[pl.Series]:
    """Splits floats into columns that add up to their exact sum.

    Args:
        values: Floats; null counts as zero.
        sign: +1 for an addition, -1 for a retraction; additions if not given.
        prefix: Start of the columns' names.

    Returns:
        `prefix.l<k>` for each limb that occurs and `prefix.nan`, `.pinf`, `.ninf` if they occur; none if all is zero.
    """
    numbers, signs = _arrays(values, sign)
    limbs: Limbs = {}
    for start in range(0, numbers.size, _BLOCK):
        block = _signed_finite(numbers, signs, start)
        _peel(block, SUM_BASE, limbs, start, numbers.size)
    return _series(limbs, prefix) + _counters(numbers, signs, prefix)


def float_squares(values: pl.Series, sign: pl.Series | None, prefix: str) -> list[pl.Series]:
    """Splits the squares of floats into columns that add up to their exact sum.

    NaN and infinities are left to the counters of the values' own sum, which a variance needs anyway.
    """
    numbers, signs = _arrays(values, sign)
    limbs: Limbs = {}
    for start in range(0, numbers.size, _BLOCK):
        block = _signed_finite(numbers, None, start)
        factor = None if signs is None else signs[start : start + _BLOCK]
        for part, base in _square_ranges(block):
            product, error = two_product(part, part)
            for piece in (product, error):
                _peel(piece if factor is None else piece * factor, base, limbs, start, numbers.size)
    return _series(limbs, prefix)


def float_total(frame: pl.DataFrame, prefix: str) -> pl.Series:
    """The float nearest to each exact sum: what `math.fsum` gives.

    NaN if there is a NaN or both infinities, infinite if there is one of them or the sum is beyond the largest float.
    """
    total = nearest(limbs_of(frame, prefix), SUM_BASE, frame.height)
    _mark(total, frame, prefix)
    return pl.Series(prefix, total)


def float_mean(frame: pl.DataFrame, count: str, prefix: str) -> pl.Series:
    """The float nearest to the exact sum divided by the `count` column; null where nothing counts.

    It is finite wherever the mean is, also if the sum has no float. NaN and infinities as in `float_total`.
    """
    counts = frame[count].to_numpy().astype(np.int64)
    mean = quotients(balanced(limbs_of(frame, prefix)), SUM_BASE, np.maximum(counts, 1))
    _mark(mean, frame, prefix)
    return pl.Series(prefix, mean).set(pl.Series(counts <= 0), None)


def _mark(numbers: Floats, frame: pl.DataFrame, prefix: str) -> None:
    """Put NaN and infinities where they were among the values."""
    counters = counters_of(frame, prefix)
    if counters is not None:
        nan, positive, negative = (count != 0 for count in counters)
        numbers[positive] = math.inf
        numbers[negative] = -math.inf
        numbers[nan | (positive & negative)] = math.nan


def _arrays(values: pl.Series, sign: pl.Series | None) -> tuple[Floats, Floats | None]:
    numbers = values.cast(pl.Float64).fill_null(0.0).to_numpy()
    return numbers, None if sign is None else sign.cast(pl.Float64).to_numpy()


def _signed_finite(numbers: Floats, signs: Floats | None, start: int) -> Floats:
    """A copy of one block, times the sign, with zeros for NaN and infinities."""
    block = numbers[start : start + _BLOCK]
    finite = np.isfinite(block)
    block = block.copy() if finite.all() else np.where(finite, block, 0.0)
    if signs is not None:
        block *= signs[start : start + _BLOCK]
    return block


def _square_ranges(block: Floats) -> list[tuple[Floats, int]]:
    """The block in pieces whose squares are safe, each with the base of the limbs of its squares."""
    size = np.abs(block)
    small, large = (size < 2.0**-_SQUARE_SAFE) & (size > 0), size > 2.0**_SQUARE_SAFE
    if not small.any() and not large.any():
        return [(block, SQUARE_BASE)]
    return [
        (np.where(small | large, 0.0, block), SQUARE_BASE),
        (np.where(small, block, 0.0) * 2.0**_SQUARE_SHIFT, SQUARE_BASE + 2 * _SQUARE_SHIFT),
        (np.where(large, block, 0.0) * 2.0**-_SQUARE_SHIFT, SQUARE_BASE - 2 * _SQUARE_SHIFT),
    ]


def _peel(rest: Floats, base: int, limbs: Limbs, start: int, rows: int) -> None:
    """Cuts limbs off a block from the top until nothing is left; destroys the block.

    Limbs are found where the block's largest number is, so a limb that no number reaches costs nothing.
    """
    while largest := max(float(rest.max()), -float(rest.min())):
        k = (math.frexp(largest)[1] - 1 - base) // BITS
        exponent = BITS * k + base
        # 2**-exponent itself can be beyond the largest float; two steps never are.
        piece = rest * math.ldexp(1.0, min(-exponent, 1000))
        if exponent < -1000:
            piece *= math.ldexp(1.0, -exponent - 1000)
        np.trunc(piece, out=piece)
        if k not in limbs:
            limbs[k] = np.zeros(rows, np.int64)
        limbs[k][start : start + rest.size] += piece.astype(np.int64)
        piece *= math.ldexp(1.0, exponent)
        rest -= piece


def _series(limbs: Limbs, prefix: str) -> list[pl.Series]:
    return [pl.Series(f"{prefix}.l{k}", limbs[k]) for k in sorted(limbs)]


def _counters(numbers: Floats, signs: Floats | None, prefix: str) -> list[pl.Series]:
    if np.isfinite(numbers).all():
        return []
    found = (np.isnan(numbers), numbers == math.inf, numbers == -math.inf)
    weight = np.int64(1) if signs is None else signs.astype(np.int64)
    counters = zip(COUNTERS, found, strict=True)
    return [pl.Series(f"{prefix}.{name}", where * weight) for name, where in counters if where.any()]
