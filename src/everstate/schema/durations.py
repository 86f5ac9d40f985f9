"""Durations as users type them."""

from __future__ import annotations

import re
from typing import Final

from everstate.errors import ConfigurationError

_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_FORM: Final = re.compile(r"(\d+)(ms|s|m|h|d|w)")
#: Ten million years. Some of these lengths, and a time of today, add up to what 64 bits hold; more would turn negative.
LONGEST_MS: Final = 10_000_000 * 365 * 86_400_000
#: A number of so many digits is longer than that in any unit, and Python does not read a number of any length.
_DIGITS: Final = 20
_SHOWN: Final = 40


def milliseconds(text: str) -> int:
    """The length of a duration such as `7d`, `12h` or `1h30m`.

    Raises:
        ConfigurationError: If it is not written like that, or too long to be calculated with.

    Example:
        >>> milliseconds("1h30m")
        5400000
    """
    length = parsed(text)
    if length is None:
        raise ConfigurationError(
            f"{text!r} is not a duration", hint="Write a number and a unit: 500ms, 45s, 30m, 12h, 7d, 2w, or 1h30m."
        )
    if length > LONGEST_MS:
        raise ConfigurationError(
            f"{text[:_SHOWN]!r} is longer than ten million years",
            hint="Write a shorter time, such as 36500d for a hundred years.",
        )
    return length


def parsed(text: str) -> int | None:
    """The length in milliseconds; None if the text is not a duration.

    Example:
        >>> parsed("soon") is None
        True
    """
    compact = text.replace(" ", "").lower()
    parts = _FORM.findall(compact)
    if not parts or "".join(number + unit for number, unit in parts) != compact:
        return None
    return sum(int(number.lstrip("0")[:_DIGITS] or "0") * _UNITS_MS[unit] for number, unit in parts)


def readable(length_ms: int) -> str:
    """A duration in the largest units that give it exactly.

    Example:
        >>> readable(5_400_000)
        '1h30m'
    """
    if length_ms == 0:
        return "0s"
    words = []
    for unit in ("w", "d", "h", "m", "s", "ms"):
        count, length_ms = divmod(length_ms, _UNITS_MS[unit])
        if count:
            words.append(f"{count}{unit}")
    return "".join(words)
