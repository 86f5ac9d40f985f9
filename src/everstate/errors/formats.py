"""What is written down has a number that says how, and an error says so where a newer version has written it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from everstate.errors import EverstateError

#: The key of the number in documents; one that has none is of the first format.
KEY: Final = "format"


def require(document: dict[str, Any], known: int, kind: type[EverstateError], what: str) -> dict[str, Any]:
    """A document without the number of its format.

    Args:
        document: What was read.
        known: The newest format that this version reads.
        kind: The error for another one.
        what: What it is, for the message.

    Raises:
        EverstateError: If a newer version of Everstate has written it.
        ValueError: If its number is not one.

    Example:
        >>> require({"shards": 2, "format": 1}, 1, Exception, "the state")
        {'shards': 2}
    """
    found = document.get(KEY, 1)
    if not isinstance(found, int) or found < 1:
        raise ValueError(f"{found!r} is not a format")
    if found > known:
        raise newer(kind, what, found, known)
    return {name: value for name, value in document.items() if name != KEY}


def newer(kind: type[EverstateError], what: str, found: int, known: int) -> EverstateError:
    """The error for something in a format that this version does not read."""
    return kind(
        f"{what} has format {found}; this version of Everstate reads format {known}",
        hint="Use the version of Everstate that wrote it; nothing was changed.",
    )
