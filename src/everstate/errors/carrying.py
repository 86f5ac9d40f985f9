"""Errors on their way through Java, as text that nobody else can write.

What a worker, or a source's planner, raises reaches the driver as text inside a Java exception, and that text may quote
records and exceptions of the user's. An Everstate error is therefore written with a seal, made with a key that only
this process and those that Spark starts for it have: it is drawn at random, and they inherit it in their environment.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from everstate import errors
from everstate.errors import EngineError, EverstateError
from everstate.location import Location

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Set before Java starts, since the driver imports this module to start it.
KEY: Final = os.environ.setdefault("EVERSTATE_SEAL", os.urandom(32).hex())

_MARK: Final = "everstate-error:"
_MARKED: Final = re.compile(re.escape(_MARK) + r"(?P<seal>[0-9a-f]{64}):(?P<code>[A-Za-z0-9+/=]+);")

#: What an error quotes may be a record of megabytes, and Java copies and logs the text many times.
_LONGEST: Final = 4_000


class CarriedError(Exception):
    """An Everstate error on its way from a worker to the driver."""


@contextmanager
def carried() -> Iterator[None]:
    """Inside a worker: let an Everstate error survive the way through Java."""
    try:
        yield
    except EverstateError as error:
        # Without its cause: that would be written out twice more on the way, with all that it quotes.
        raise CarriedError(encoded(error)) from None


def encoded(error: EverstateError, key: str = KEY) -> str:
    """An error as text that `decoded` finds again inside any other text."""
    place = [error.location.file, error.location.line] if error.location else None
    message = error.message if len(error.message) <= _LONGEST else f"{error.message[:_LONGEST]} ..."
    document = {"kind": type(error).__name__, "message": message, "hint": error.hint, "location": place}
    code = base64.b64encode(json.dumps(document).encode()).decode()
    return f"[{_MARK}{_seal(code, key)}:{code};] {message}"


def decoded(text: str, key: str = KEY) -> EverstateError | None:
    """The error that one of this service's processes wrote into a text, if there is one."""
    for found in _MARKED.finditer(text):
        if hmac.compare_digest(found["seal"], _seal(found["code"], key)):
            with suppress(ValueError, KeyError, TypeError):
                return _error(json.loads(base64.b64decode(found["code"], validate=True)))
    return None


def _seal(code: str, key: str) -> str:
    return hmac.new(key.encode(), code.encode(), hashlib.sha256).hexdigest()


def _error(document: dict[str, Any]) -> EverstateError:
    kind = getattr(errors, document["kind"], EngineError)
    if not (isinstance(kind, type) and issubclass(kind, EverstateError)):
        kind = EngineError
    location = Location(*document["location"]) if document["location"] else None
    error: EverstateError = kind.__new__(kind)
    # Constructors differ by class; the message is already made, so the root's does.
    EverstateError.__init__(error, document["message"], location=location, hint=document["hint"])
    return error
