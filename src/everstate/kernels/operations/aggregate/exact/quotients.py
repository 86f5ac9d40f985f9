"""Long integers divided: quotients and their square roots, each rounded once, to the nearest float.

A quotient is worked out to about a hundred bits. Where these do not settle which float is nearest, and for numbers at
the ends of the range of floats, that row is divided as Python integers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from everstate.kernels.operations.aggregate.exact.limbs import BITS, Floats, Ints, Limbs, exact_integers, scaled

if TYPE_CHECKING:
    import numpy.typing as npt

    Pair = tuple[Floats, Floats]

#: Exponents between which no intermediate result of the quotient can overflow or lose bits.
_SAFE: Final = 600

#: Bound of the relative error of a quotient and of its root; the true one is below 2**-100.
_ERROR: Final = 2.0**-95

#: Bits of a root that are worked out before it is rounded; more than a float has, with some to spare.
_ROOT_BITS: Final = 128

#: Multiplying by this cuts a float into two halves of at most 26 bits (Veltkamp).
_SPLITTER: Final = float((1 << 27) + 1)


def quotients(numerator: Limbs, base: int, divisor: Ints, *, root: bool = False) -> Floats:
    """The floats nearest to `numerator * 2**base / divisor`, or to the square roots of these.

    Args:
        numerator: Balanced limbs; not negative if roots are asked for.
        base: The exponent of the lowest limb.
        divisor: Positive numbers.
        root: Give the square roots.
    """
    high, low, safe = _leading(numerator, base, divisor.size)
    parts = _divided(high, low, divisor)
    result, settled = _rounded(*(_rooted(*parts) if root else parts))
    at = np.flatnonzero(~(safe & settled))
    rows = zip(exact_integers(numerator, at), divisor[at].tolist(), strict=True)
    exactly = scaled_root if root else scaled
    result[at] = [exactly(number, base, by) for number, by in rows]
    return result


def scaled_root(number: int, exponent: int, divisor: int = 1) -> float:
    """The float nearest to the square root of `number * 2**exponent / divisor`."""
    if number == 0:
        return 0.0
    # Enough bits, an even exponent, and the rest as one more bit below all others: then one rounding is right.
    shift = max(0, 2 * _ROOT_BITS - number.bit_length() + divisor.bit_length())
    shift += (exponent - shift) % 2
    whole, rest = divmod(number << shift, divisor)
    found = math.isqrt(whole)
    below = int(rest != 0 or found * found != whole)
    return scaled(2 * found + below, (exponent - shift) // 2 - 1)


def two_product(left: Floats, right: Floats) -> Pair:
    """The product as a float and its rounding error, which together are exact (Dekker)."""
    product = left * right
    left_high, left_low = _halves(left)
    right_high, right_low = (left_high, left_low) if left is right else _halves(right)
    error = left_high * right_high - product
    error += left_high * right_low
    error += left_low * right_high
    error += left_low * right_low
    return product, error


def _halves(values: Floats) -> Pair:
    spread = values * _SPLITTER
    high = spread - (spread - values)
    return high, values - high


def _divided(high: Floats, low: Floats, divisor: Ints) -> Pair:
    """Quotients, as a float and what is left of them."""
    divisor_high = divisor.astype(np.float64)
    divisor_low = (divisor - divisor_high.astype(np.int64)).astype(np.float64)
    first = high / divisor_high
    product, error = two_product(first, divisor_high)
    return first, ((high - product) - error + (low - first * divisor_low)) / divisor_high


def _rooted(high: Floats, low: Floats) -> Pair:
    """Square roots, as a float and what is left of them: one step of Newton's method."""
    first = np.sqrt(np.maximum(high, 0.0))
    square, error = two_product(first, first)
    rest = ((high - square) - error) + low
    return first, np.divide(rest, 2 * first, out=np.zeros_like(rest), where=first != 0)


def _rounded(first: Floats, second: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """The nearest floats to the sums of two, and where they are proven to be."""
    nearest = first + second
    rest = second - (nearest - first)
    margin = np.abs(nearest) * _ERROR
    return nearest, (nearest + (rest + margin) == nearest) & (nearest + (rest - margin) == nearest)


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
