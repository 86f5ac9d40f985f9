"""Decimals as exact accumulators: the limbs of their 128-bit integers, so that no sum on the way can overflow."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl
import pyarrow as pa

from everstate.errors import NumberOverflowError
from everstate.kernels.operations.aggregate.exact.limbs import (
    BITS,
    HALF,
    LOW,
    Ints,
    Limbs,
    balanced,
    exact_integers,
    limbs_of,
    scaled,
)
from everstate.kernels.operations.aggregate.exact.quotients import scaled_root

#: The digits of the widest decimal.
DIGITS: Final = 38
_LIMIT: Final = 10**DIGITS


def decimal_limbs(values: pl.Series, sign: pl.Series | None, prefix: str) -> list[pl.Series]:
    """Splits decimals into columns `prefix.l<k>` that add up to their exact sum; none if all is zero.

    Args:
        values: Decimals; null counts as zero.
        sign: +1 for an addition, -1 for a retraction; additions if not given.
        prefix: Start of the columns' names.
    """
    words = _words(values)
    low, high = words[:, 0].view(np.uint64), words[:, 1]
    limbs = [
        (low & np.uint64(LOW)).astype(np.int64),
        (low >> np.uint64(BITS)).astype(np.int64),
        high & LOW,
        high >> BITS,
    ]
    signs = None if sign is None else sign.cast(pl.Int64).to_numpy()
    return [
        pl.Series(f"{prefix}.l{k}", limb if signs is None else limb * signs)
        for k, limb in enumerate(limbs)
        if limb.any()
    ]


def decimal_total(groups: pl.DataFrame, prefix: str, scale: int) -> pl.Series:
    """The sums as decimals of 38 digits.

    Args:
        groups: Has `$key` and the accumulator's columns.
        prefix: Start of the columns' names.
        scale: Digits after the point.

    Raises:
        NumberOverflowError: If a sum has more digits; the message names the group.
    """
    limbs = balanced(limbs_of(groups, prefix))
    zero = np.zeros(groups.height, np.int64)
    carried, carry = [], zero
    for k in range(4):
        limb = limbs.get(k, zero) + carry
        carried.append(limb & LOW if k < 3 else limb)
        carry = limb >> BITS
    top = carried[3]
    doubtful = (top >= HALF // 2) | (top < -HALF // 2)
    for k, limb in limbs.items():
        doubtful |= (limb != 0) if k > 3 else False
    for row in np.flatnonzero(doubtful).tolist():
        if abs(sum(int(limb[row]) << (BITS * k) for k, limb in limbs.items())) >= _LIMIT:
            key = groups["$key"][row].decode(errors="replace")
            raise NumberOverflowError(
                f"the sum of the group {key!r} does not fit into {DIGITS} digits",
                hint="Sum fewer digits after the decimal point, or over smaller groups.",
            )
    words = np.empty((groups.height, 2), np.int64)
    words[:, 0] = carried[0] | (carried[1] << BITS)
    words[:, 1] = carried[2] | (top << BITS)
    array = pa.Array.from_buffers(pa.decimal128(DIGITS, scale), groups.height, [None, pa.py_buffer(words.tobytes())])
    return pl.Series(prefix, array)


def decimal_squares(values: pl.Series, sign: pl.Series | None, prefix: str) -> list[pl.Series]:
    """Splits the squares of decimals into columns `prefix.l<k>` that add up to their exact sum; none if all is zero."""
    split = {int(column.name.removeprefix(".l")): column.to_numpy() for column in decimal_limbs(values, None, "")}
    limbs = balanced(split)
    squares: Limbs = {}
    for i, left in limbs.items():
        for j, right in limbs.items():
            # Balanced limbs have products of up to 62 bits, which lie in two limbs.
            product = left * right
            for k, part in ((i + j, product & LOW), (i + j + 1, product >> BITS)):
                squares[k] = squares[k] + part if k in squares else part
    signs = None if sign is None else sign.cast(pl.Int64).to_numpy()
    return [pl.Series(f"{prefix}.l{k}", limb if signs is None else limb * signs) for k, limb in squares.items()]


def decimal_mean(groups: pl.DataFrame, count: str, prefix: str, scale: int) -> pl.Series:
    """The float nearest to the exact sum divided by the `count` column; null where nothing counts."""
    counts = groups[count].to_list()
    means = [
        scaled(total, 0, n * 10**scale) if n > 0 else None
        for total, n in zip(_integers(groups, prefix), counts, strict=True)
    ]
    return pl.Series(prefix, means, dtype=pl.Float64)


def decimal_variance(
    groups: pl.DataFrame, count: str, total: str, squares: str, ddof: int, *, scale: int, root: bool
) -> pl.Series:
    """The variance of decimals, or the standard deviation, rounded once; null where there are not more than `ddof`."""
    exactly = scaled_root if root else scaled
    rows = zip(groups[count].to_list(), _integers(groups, total), _integers(groups, squares), strict=True)
    found = [
        exactly(n * square - sum_ * sum_, 0, n * (n - ddof) * 10 ** (2 * scale)) if n > ddof else None
        for n, sum_, square in rows
    ]
    return pl.Series(squares, found, dtype=pl.Float64)


def _integers(groups: pl.DataFrame, prefix: str) -> list[int]:
    return exact_integers(limbs_of(groups, prefix), np.arange(groups.height))


def _words(values: pl.Series) -> Ints:
    """The low and the high half of each decimal's integer."""
    scale = values.dtype.scale if isinstance(values.dtype, pl.Decimal) else 0
    # Arrow knows decimals by their buffer: 16 bytes each, little-endian.
    array = values.cast(pl.Decimal(DIGITS, scale)).fill_null(0).rechunk().to_arrow()
    buffer = array.buffers()[1]
    held = np.frombuffer(memoryview(buffer), np.int64) if buffer and len(array) else np.empty(0, np.int64)
    words: Ints = held.reshape(-1, 2)[array.offset : array.offset + len(array)]
    return words
