"""Checks of plain arguments: numbers, words and switches as a user gave them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everstate.errors import DefinitionError, EverstateError
from everstate.errors.calls import suggestion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.location import Location


def whole_number(
    name: str,
    given: Any,
    location: Location | None,
    *,
    least: int = 1,
    kind: type[EverstateError] = DefinitionError,
) -> int:
    """A whole number; `True` and 3.0 are none, since they are most likely meant for another argument.

    Raises:
        DefinitionError: If it is none, or too small; or another error that is asked for.
    """
    if isinstance(given, int) and not isinstance(given, bool) and given >= least:
        return given
    raise kind(
        f"{name}={shown(given)} is not a whole number of at least {least}",
        location=location,
        hint=f"Pass a number without quotes: {name}={max(least, 3)}",
    )


def one_of(
    name: str,
    given: Any,
    allowed: Sequence[str],
    location: Location | None,
    kind: type[EverstateError] = DefinitionError,
) -> None:
    """One of a few words.

    Raises:
        DefinitionError: If it is another; or another error that is asked for.
    """
    if isinstance(given, str) and given in allowed:
        return
    raise kind(
        f"{name}={shown(given)} is not one of {', '.join(allowed)}",
        location=location,
        hint=f"{suggestion(given, allowed)}Write {name}={allowed[0]!r}, for instance.",
    )


def switch(name: str, given: Any, location: Location | None) -> bool:
    """True or false; "no" and 0 are neither.

    Raises:
        DefinitionError: If it is neither.
    """
    if isinstance(given, bool):
        return given
    raise DefinitionError(
        f"{name}={shown(given)} is neither True nor False",
        location=location,
        hint=f"Write {name}=True, or leave it out.",
    )


def text(name: str, given: Any, location: Location | None, example: str) -> str:
    """Text that is not empty.

    Raises:
        DefinitionError: If it is none.
    """
    if isinstance(given, str) and given:
        return given
    raise DefinitionError(f"{name}={shown(given)} is not a name", location=location, hint=f"Write {example}")


def shown(given: object) -> str:
    """A value for a message: short, and without an address in memory."""
    if given is None or isinstance(given, (str, int, float, bytes, bool)):
        written = repr(given)
        return written if len(written) <= 60 else f"{written[:57]}..."
    if isinstance(given, (list, tuple, dict, set)) and len(given) <= 5 and all(_plain(part) for part in given):
        return repr(given)
    return f"<{given.__name__}>" if isinstance(given, type) else f"<{type(given).__name__}>"


def _plain(part: object) -> bool:
    return part is None or (isinstance(part, (str, int, float, bool)) and len(repr(part)) < 30)
