"""Errors on their way through Java.

What a worker, or a source's planner, raises reaches the driver as text inside a Java exception. It therefore writes an
Everstate error as one line of JSON into that text, and the driver finds it there.
"""

from __future__ import annotations

import base64
import json
import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from everstate.topology import errors
from everstate.topology.errors import EngineError, EverstateError
from everstate.topology.location import Location

if TYPE_CHECKING:
    from collections.abc import Iterator

_MARK: Final = "everstate-error:"
_MARKED: Final = re.compile(re.escape(_MARK) + r"(?P<code>[A-Za-z0-9+/=]+);")


class CarriedError(Exception):
    """An Everstate error on its way from a worker to the driver."""


@contextmanager
def carried() -> Iterator[None]:
    """Inside a worker: let an Everstate error survive the way through Java."""
    try:
        yield
    except EverstateError as error:
        raise CarriedError(encoded(error)) from error


def encoded(error: EverstateError) -> str:
    """An error as text that `decoded` finds again inside any other text."""
    place = [error.location.file, error.location.line] if error.location else None
    document = {"kind": type(error).__name__, "message": error.message, "hint": error.hint, "location": place}
    code = base64.b64encode(json.dumps(document).encode()).decode()
    return f"[{_MARK}{code};] {error.message}"


def decoded(text: str) -> EverstateError | None:
    """The error that a worker wrote into a text, if there is one."""
    document: dict[str, Any] | None = None
    for found in _MARKED.finditer(text):
        # The text may quote a record or an error of the user's that looks like ours.
        with suppress(ValueError):
            document = json.loads(base64.b64decode(found["code"], validate=True))
            break
    if document is None:
        return None
    kind = getattr(errors, document["kind"], EngineError)
    location = Location(*document["location"]) if document["location"] else None
    error: EverstateError = kind.__new__(kind)
    # Constructors differ by class; the message is already made, so the root's does.
    EverstateError.__init__(error, document["message"], location=location, hint=document["hint"])
    return error
