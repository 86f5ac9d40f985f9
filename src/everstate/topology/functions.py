"""User functions as parts of a description."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from everstate.location import Location

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, eq=False)
class Function:
    """A plain Python function of the user's, with the place where it is written.

    Attributes:
        call: The function.
        name: What errors, `describe()` and dead letters call it.
        location: The user's file and line.
    """

    call: Callable[..., Any]
    name: str
    location: Location | None

    @classmethod
    def of(cls, call: Callable[..., Any], fallback: Location | None) -> Function:
        """Wrap a callable; its own first line is where errors point, else the line that passed it."""
        code = getattr(call, "__code__", None)
        location = Location(code.co_filename, code.co_firstlineno) if code is not None else fallback
        name = getattr(call, "__qualname__", None) or type(call).__name__
        return cls(call, name.removeprefix("<locals>."), location)
