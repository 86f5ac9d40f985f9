"""Integers as exact accumulators: sums in 96 bits, sums of squares in limbs, wide enough for any number of rows."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from everstate.errors import NumberOverflowError
from everstate.kernels.operations.aggregate.exact.limbs import BITS, HALF, LOW, Ints, Limbs, balanced, carried_parts
from everstate.kernels.operations.aggregate.exact.quotients import quotients

#: Integers are their own units.
BASE: Final = 0

#: Below this, what is summed up can be added to a normalised accumulator without a carry.
_PLAIN: Final = 1 << 62


def int_parts(values: pl.Series, sign: pl.Series | None, prefix: str) -> list[pl.Series]:
    """Splits integers into columns that add up to their exact sum.

    Where no sum over these rows can exceed 62 bits, the values themselves are the `lo` column, and `normalise` splits
    the sums: one column to add up instead of two.

    Args:
        values: Integers of up to 64 bits, signed or not; null counts as zero.
        sign: +1 for an addition, -1 for a retraction; additions if not given.
        prefix: Start of the columns' names.

    Returns:
        `prefix.lo` and, where it is needed, `prefix.hi`.
    """
    numbers = _array(values)
    if _largest(numbers) * numbers.size < _PLAIN:
        return [pl.Series(f"{prefix}.lo", _signed(numbers.astype(np.int64), sign))]
    low, high = (numbers & _unit(numbers, LOW)).astype(np.int64), (numbers >> _unit(numbers, BITS)).astype(np.int64)
    return [pl.Series(f"{prefix}.lo", _signed(low, sign)), pl.Series(f"{prefix}.hi", _signed(high, sign))]


def int_squares(values: pl.Series, sign: pl.Series | None, prefix: str) -> list[pl.Series]:
    """Splits the squares of integers into columns `prefix.l<k>` that add up to their exact sum; none if all is zero."""
    numbers = _array(values)
    largest = _largest(numbers)
    if largest * largest * numbers.size < _PLAIN:
        plain = numbers.astype(np.int64)
        limbs: Limbs = {0: plain * plain}
    else:
        limbs = _wide_squares(numbers)
    return [pl.Series(f"{prefix}.l{k}", _signed(limb, sign)) for k, limb in limbs.items() if limb.any()]


def int_total(frame: pl.DataFrame, prefix: str) -> pl.Series:
    """The sums as `Int64`.

    Raises:
        NumberOverflowError: If a sum does not fit; the message names the first such row, as does `first_overflow`.
    """
    row = first_overflow(frame, prefix)
    if row is not None:
        raise NumberOverflowError(
            f"the integer sum {prefix!r} does not fit into 64 bits in row {row}",
            hint="Sum as floats, by a cast of the column to float, or sum over smaller groups.",
        )
    low, high = carried_parts(frame, prefix)
    return pl.Series(prefix, (high << BITS) + low)


def first_overflow(frame: pl.DataFrame, prefix: str) -> int | None:
    """The index of the first row whose sum does not fit into 64 bits."""
    _, high = carried_parts(frame, prefix)
    rows = np.flatnonzero((high < -HALF) | (high >= HALF))
    return int(rows[0]) if rows.size else None


def int_mean(frame: pl.DataFrame, count: str, prefix: str) -> pl.Series:
    """The float nearest to the exact sum divided by the `count` column; null where nothing counts. Never overflows."""
    counts = frame[count].to_numpy().astype(np.int64)
    mean = quotients(balanced(parts_as_limbs(frame, prefix)), BASE, np.maximum(counts, 1))
    return pl.Series(prefix, mean).set(pl.Series(counts <= 0), None)


def parts_as_limbs(frame: pl.DataFrame, prefix: str) -> Limbs:
    """An integer sum in the form that rounding and variance take."""
    low, high = carried_parts(frame, prefix)
    return {0: low, 1: high}


def _wide_squares(numbers: npt.NDArray[np.integer]) -> Limbs:
    """Squares of up to 128 bits in four limbs, each below 2**32."""
    # The absolute value of the smallest Int64 wraps to itself, which as a UInt64 is the right number again.
    size = np.abs(numbers).astype(np.uint64)
    low, high = size & np.uint64(LOW), size >> np.uint64(BITS)
    products = {0: low * low, 1: low * high, 2: high * high}
    limbs: Limbs = {k: np.zeros(size.size, np.int64) for k in range(4)}
    for k, product in products.items():
        times = 2 if k == 1 else 1
        limbs[k] += times * (product & np.uint64(LOW)).astype(np.int64)
        limbs[k + 1] += times * (product >> np.uint64(BITS)).astype(np.int64)
    for k in range(3):
        limbs[k + 1] += limbs[k] >> BITS
        limbs[k] &= LOW
    return limbs


def _array(values: pl.Series) -> npt.NDArray[np.integer]:
    kind = pl.UInt64 if values.dtype == pl.UInt64 else pl.Int64
    numbers: npt.NDArray[np.integer] = values.cast(kind).fill_null(0).to_numpy()
    return numbers


def _largest(numbers: npt.NDArray[np.integer]) -> int:
    return max(int(numbers.max()), -int(numbers.min())) if numbers.size else 0


def _unit(numbers: npt.NDArray[np.integer], value: int) -> np.integer:
    """A constant of the array's own type, so that NumPy does not leave the integers for floats."""
    return numbers.dtype.type(value)


def _signed(numbers: Ints, sign: pl.Series | None) -> Ints:
    return numbers if sign is None else numbers * sign.cast(pl.Int64).to_numpy()
