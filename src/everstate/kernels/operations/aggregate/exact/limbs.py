"""Long integers as columns: one limb of 32 bits for each power of 2**32 that occurs.

An accumulator with prefix `p` is the sum over its columns of `p.l<k> * 2**(32 * k + base)`. The base is fixed by what
is summed (floats, their squares, integers). A limb is an `Int64`, so 2**30 rows can be added before it has to carry.
Columns are sparse: a limb that is zero in every row has no column, and a missing or null limb means zero.

Integer sums use two columns instead, `p.lo + p.hi * 2**32`, which is what fits them without a search for columns.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: Limbs by their index.
Limbs = dict[int, Ints]

BITS: Final = 32
LOW: Final = (1 << BITS) - 1
HALF: Final = 1 << (BITS - 1)

#: Occurrences of NaN, infinity and minus infinity: they are counted, since they cannot be subtracted again.
COUNTERS: Final = ("nan", "pinf", "ninf")


def merge(frames: Iterable[pl.DataFrame], by: list[str]) -> pl.DataFrame:
    """Adds accumulators of the same key.

    All columns but `by` are added. The frames need not have the same limbs. The order of the result is not defined.
    """
    return pl.concat(frames, how="diagonal").group_by(by).agg(pl.all().exclude(by).sum())


def normalise(frame: pl.DataFrame, *prefixes: str) -> pl.DataFrame:
    """Carries, so that 2**30 more rows can be added, and drops limbs that are zero everywhere.

    The result depends on the exact sums alone, not on how they came about: limbs lie in [-2**31, 2**31), the `lo` of an
    integer sum in [0, 2**32). To be called after each group-wise sum and each merge.
    """
    for prefix in prefixes:
        columns = [pl.Series(f"{prefix}.l{k}", limb) for k, limb in balanced(limbs_of(frame, prefix)).items()]
        counters = zip(COUNTERS, counters_of(frame, prefix) or (), strict=False)
        columns += [pl.Series(f"{prefix}.{name}", counter) for name, counter in counters if counter.any()]
        if f"{prefix}.lo" in frame.columns:
            low, high = carried_parts(frame, prefix)
            columns += [pl.Series(f"{prefix}.lo", low), pl.Series(f"{prefix}.hi", high)]
        replaced = set(accumulator_columns(frame, prefix))
        frame = frame[[name for name in frame.columns if name not in replaced]].hstack(columns)
    return frame


def accumulator_columns(frame: pl.DataFrame, prefix: str) -> list[str]:
    """The columns of a frame that belong to the accumulator with this prefix."""
    fixed = {f"{prefix}.{name}" for name in (*COUNTERS, "lo", "hi")}
    limbs = {f"{prefix}.l{k}" for k in _indices(frame, prefix)}
    return [name for name in frame.columns if name in fixed or name in limbs]


def limbs_of(frame: pl.DataFrame, prefix: str) -> Limbs:
    """The limbs of an accumulator, lowest first; read-only views where there are no nulls."""
    return {k: _column(frame, f"{prefix}.l{k}") for k in _indices(frame, prefix)}


def counters_of(frame: pl.DataFrame, prefix: str) -> tuple[Ints, Ints, Ints] | None:
    """How often NaN, infinity and minus infinity occur in each row; nothing if they occur in none."""
    if not any(f"{prefix}.{name}" in frame.columns for name in COUNTERS):
        return None
    nan, positive, negative = (_column(frame, f"{prefix}.{name}") for name in COUNTERS)
    return nan, positive, negative


def carried_parts(frame: pl.DataFrame, prefix: str) -> tuple[Ints, Ints]:
    """The two parts of an integer sum, `lo` in [0, 2**32)."""
    low, high = (_column(frame, f"{prefix}.{part}") for part in ("lo", "hi"))
    return low & LOW, high + (low >> BITS)


def balanced(limbs: Limbs) -> Limbs:
    """The one way to write the same numbers with limbs in [-2**31, 2**31), without columns of zeros.

    Balanced limbs keep small negative numbers short, and each is at most half a unit of the next one: rounding relies
    on it.
    """
    result: Limbs = {}
    pending = dict(limbs)
    while pending:
        k = min(pending)
        limb = pending.pop(k)
        if limb.size and (limb.max() >= HALF or limb.min() < -HALF):
            carry = (limb + HALF) >> BITS
            limb = limb - (carry << BITS)
            pending[k + 1] = pending[k + 1] + carry if k + 1 in pending else carry
        if limb.any():
            result[k] = limb
    return result


def nearest(limbs: Limbs, base: int, rows: int) -> Floats:
    """The float nearest to each number, ties to even; infinite beyond the largest float.

    `base` must be at least -1074, so that every limb is a multiple of the smallest float and no sum underflows.
    """
    limbs = balanced(limbs)
    # Limbs above this one could overflow on the way to a result that does not.
    highest = (1022 - BITS - base) // BITS
    total, error, sticky = np.zeros(rows), np.zeros(rows), np.zeros(rows)
    for k in sorted((k for k in limbs if k <= highest), reverse=True):
        part = limbs[k] * math.ldexp(1.0, BITS * k + base)
        # What comes after the first rounding error is smaller than the error's last bit: its sign is all that counts.
        np.copyto(sticky, part, where=(error != 0) & (sticky == 0))
        np.copyto(part, 0.0, where=error != 0)
        rounded = total + part
        error += part - (rounded - total)
        total = rounded
    # The error lies exactly between two floats and the rest decides for the one that was not taken.
    step = 2 * error
    beyond = total + step
    np.copyto(total, beyond, where=(np.sign(error) * sticky > 0) & (beyond - total == step))
    extreme = [limb != 0 for k, limb in limbs.items() if k > highest]
    if extreme:
        at = np.flatnonzero(np.logical_or.reduce(extreme))
        total[at] = [scaled(number, base) for number in exact_integers(limbs, at)]
    return total


def exact_integers(limbs: Limbs, at: npt.NDArray[np.intp]) -> list[int]:
    """The numbers of the rows `at`, in units of the base."""
    numbers = [0] * at.size
    for k, limb in limbs.items():
        shift = BITS * k
        numbers = [number + (part << shift) for number, part in zip(numbers, limb[at].tolist(), strict=True)]
    return numbers


def scaled(number: int, exponent: int, divisor: int = 1) -> float:
    """The float nearest to `number * 2**exponent / divisor`."""
    try:
        # Python divides integers of any size with one rounding.
        return (number << max(exponent, 0)) / (divisor << max(-exponent, 0))
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _indices(frame: pl.DataFrame, prefix: str) -> list[int]:
    start = f"{prefix}.l"
    tails = (name[len(start) :] for name in frame.columns if name.startswith(start))
    return sorted(int(tail) for tail in tails if tail.isdecimal())


def _column(frame: pl.DataFrame, name: str) -> Ints:
    """A column's numbers, zero where they are null or the column is missing."""
    if name not in frame.columns:
        return np.zeros(frame.height, np.int64)
    column = frame[name]
    return (column.fill_null(0) if column.null_count() else column).to_numpy()
