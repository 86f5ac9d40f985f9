"""Windows of time, as a user describes them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from everstate.dsl.arguments import shown
from everstate.errors import DefinitionError
from everstate.errors.calls import explained
from everstate.location import caller
from everstate.schema.durations import LONGEST_MS, milliseconds, parsed, readable

if TYPE_CHECKING:
    from everstate.location import Location

#: A thousand years: together with the last time that a row may have, this is before the last year that can be written.
_LONGEST_WINDOW_MS: Final = 1000 * 365 * 86_400_000


@dataclass(frozen=True)
class Window:
    """What `es.tumbling`, `es.hopping`, `es.sliding` and `es.session` return.

    Attributes:
        shape: Which kind of window.
        size: How long a window is; the gap of a session.
        advance: From the start of one window to that of the next; None if one begins where the other ends.
        grace: How long after its end a window still takes rows.
    """

    shape: str
    size: str
    advance: str | None
    grace: str


@explained
def tumbling(size: str | timedelta, *, grace: str | timedelta = "0s") -> Window:
    """Windows of one size, one after the other; each row belongs to one of them.

    A window begins at a multiple of its size since 1970, UTC; its end belongs to the next one.

    Example:
        >>> import everstate as es
        >>> es.tumbling("90s", grace="5m")
        Window(shape='tumbling', size='1m30s', advance=None, grace='5m')

    Args:
        size: How long a window is: "5m", "1h30m", or a timedelta.
        grace: How long after its end a window still takes rows.
    """
    location = caller()
    length = _size(size, location)
    return Window("tumbling", length, None, duration("grace", grace, location, least=0))


@explained
def hopping(size: str | timedelta, advance: str | timedelta, *, grace: str | timedelta = "0s") -> Window:
    """Windows of one size that overlap: one begins with each `advance`, so a row belongs to several of them.

    Example:
        >>> import everstate as es
        >>> es.hopping("1h", "5m")
        Window(shape='hopping', size='1h', advance='5m', grace='0s')

    Args:
        size: How long a window is.
        advance: From the start of one window to that of the next; at most the size.
        grace: How long after its end a window still takes rows.
    """
    location = caller()
    length, step = _size(size, location), duration("advance", advance, location)
    if milliseconds(step) > milliseconds(length):
        raise DefinitionError(
            f"advance={step} is longer than the window, {length}: rows in between would belong to none",
            location=location,
            hint=f"Write es.tumbling({length!r}), or a shorter advance.",
        )
    return Window("hopping", length, step, duration("grace", grace, location, least=0))


@explained
def session(gap: str | timedelta, *, grace: str | timedelta = "0s") -> Window:
    """Windows that last as long as rows keep coming: a session ends when its group has had no row for the gap.

    It begins with its first row and ends with its last one. A row between two sessions may join them: the results of
    both are then replaced by one. The rows of a session are kept until it is final, two gaps plus the grace after its
    end: until then a row that is not late may still join it.

    Example:
        >>> import everstate as es
        >>> es.session("30m")
        Window(shape='session', size='30m', advance=None, grace='0s')

    Args:
        gap: The longest pause within a session.
        grace: How long after that it still takes rows.
    """
    location = caller()
    return Window("session", duration("gap", gap, location), None, duration("grace", grace, location, least=0))


@explained
def sliding(size: str | timedelta, *, grace: str | timedelta = "0s") -> Window:
    """A window for each set of rows that lie within `size` of each other: one ends with each row, one begins after it.

    Both ends belong to a window. The rows of a window are kept until it is final.

    Example:
        >>> import everstate as es
        >>> es.sliding("10m")
        Window(shape='sliding', size='10m', advance=None, grace='0s')

    Args:
        size: The longest time between two rows of a window.
        grace: How long after its end a window still takes rows.
    """
    location = caller()
    return Window("sliding", _size(size, location), None, duration("grace", grace, location, least=0))


def _size(given: object, location: Location | None) -> str:
    """How long a window is: its end has to be a time that can be written."""
    size = duration("size", given, location)
    if milliseconds(size) > _LONGEST_WINDOW_MS:
        raise DefinitionError(
            f"size={shown(given)} is longer than a thousand years",
            location=location,
            hint="Aggregate without a window to take in all rows: .group_by(...).agg(...)",
        )
    return size


def duration(name: str, given: object, location: Location | None, *, least: int = 1) -> str:
    """A length of time in its one written form.

    Raises:
        DefinitionError: If it is none, too short, or too long to be calculated with.
    """
    length = -1
    if isinstance(given, timedelta):
        length = given // timedelta(milliseconds=1)
        length = length if given == timedelta(milliseconds=length) else -1
    elif isinstance(given, str):
        known = parsed(given)
        length = -1 if known is None else known
    if length > LONGEST_MS:
        raise DefinitionError(
            f"{name}={shown(given)} is longer than ten million years",
            location=location,
            hint=f"Write a shorter time, such as {name}='36500d' for a hundred years.",
        )
    if length == 0 and least > 0:
        raise DefinitionError(
            f"{name}={shown(given)} is no time at all",
            location=location,
            hint=f"Write a longer one, such as {name}='5m' or '500ms'.",
        )
    if length < least:
        raise DefinitionError(
            f"{name}={shown(given)} is not a duration",
            location=location,
            hint=f"Write a number and a unit, such as {name}='5m', '1h30m' or '500ms', or pass a timedelta.",
        )
    return readable(length)
