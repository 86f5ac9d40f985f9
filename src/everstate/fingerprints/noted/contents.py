"""Values as text: whole, to be compared, and short, to be shown."""

from __future__ import annotations

import enum
import functools
import hashlib
import re
import types
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.errors import secrets
from everstate.fingerprints.outside import origins

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_DEPTH: Final = 8
_LONGEST: Final = 4_000
#: A text of one line, beyond which a container is written with one entry per line.
_LINE: Final = 60
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")


def digest(content: str) -> str:
    """The hash of a text."""
    return hashlib.sha256(content.encode(errors="backslashreplace")).hexdigest()


def content(thing: Any, depth: int = _DEPTH, *, mask: bool = False) -> str:
    """A value written down, without addresses; functions and classes by name, since they are noted for themselves.

    Args:
        thing: The value.
        depth: How deep it is looked into.
        mask: Texts in a dict whose keys are named like secrets are left out.
    """
    if depth == 0:
        return "..."

    def inner(part: Any, name: Any = None) -> str:
        return (_hidden(name, part) if mask else "") or content(part, depth - 1, mask=mask)

    held = _called(thing, inner) or _container(thing, inner)
    if held is not None:
        return held
    own = getattr(thing, "__dict__", None)
    if isinstance(own, dict) and origins.of_class(type(thing)).kind == "user":
        return f"{type(thing).__name__}({', '.join(f'{name}={inner(part, name)}' for name, part in own.items())})"
    return _plain(thing)


def _called(thing: Any, inner: Callable[..., str]) -> str | None:
    """What is better called by a name, or by what it was made of."""
    if isinstance(thing, types.FunctionType):
        return f"{thing.__qualname__}()"
    if isinstance(thing, type):
        return thing.__qualname__
    if isinstance(thing, enum.Enum):
        return f"{type(thing).__name__}.{thing.name} ({inner(thing.value, thing.name)})"
    if isinstance(thing, pl.Expr):
        return str(thing)  # its repr is cut short
    if isinstance(thing, functools.partial):
        told = [inner(thing.func), *map(inner, thing.args), *(f"{k}={inner(v, k)}" for k, v in thing.keywords.items())]
        return f"partial({', '.join(told)})"
    return None


def _container(thing: Any, inner: Callable[..., str]) -> str | None:
    if isinstance(thing, dict):
        return _around(thing, dict, "{", (f"{inner(key)}: {inner(part, key)}" for key, part in thing.items()), "}")
    if isinstance(thing, (set, frozenset)):
        return _around(thing, set, "{", sorted(map(inner, thing)), "}") if thing else repr(thing)
    if isinstance(thing, list):
        return _around(thing, list, "[", map(inner, thing), "]")
    if isinstance(thing, tuple) and not hasattr(thing, "_fields"):
        return _around(thing, tuple, "(", map(inner, thing), ",)" if len(thing) == 1 else ")")
    return None


def shown(name: str, thing: Any, values: tuple[str, ...] = ()) -> str:
    """A value for people: secrets are masked, and what is long has one entry per line.

    Args:
        name: What it is called.
        thing: The value.
        values: Secrets that the service was given.
    """
    if secrets.is_secret(name) and isinstance(thing, (str, bytes)):
        return secrets.MASK
    text = content(thing, mask=True)
    if len(text) > _LINE and isinstance(thing, (dict, list, tuple, set, frozenset)) and thing:
        text = _spread(thing)
    return secrets.hidden(text[:_LONGEST], values)


def _spread(thing: Any) -> str:
    if isinstance(thing, dict):
        lines = [f"{content(key)}: {_hidden(key, part) or content(part, mask=True)}," for key, part in thing.items()]
    else:
        lines = [f"{content(part, mask=True)}," for part in thing]
        lines = sorted(lines) if isinstance(thing, (set, frozenset)) else lines
    first, last = "[]" if isinstance(thing, list) else "()" if isinstance(thing, tuple) else "{}"
    return "\n".join([first, *(f"    {line}" for line in lines), last])


def _hidden(name: Any, part: Any) -> str:
    """The mask, for a text that is named like a secret; else nothing."""
    return secrets.MASK if isinstance(name, str) and isinstance(part, str) and secrets.is_secret(name) else ""


def _around(thing: Any, kind: type, first: str, parts: Iterable[str], last: str) -> str:
    text = f"{first}{', '.join(parts)}{last}"
    return text if type(thing) is kind else f"{type(thing).__name__}({text})"


def _plain(thing: Any) -> str:
    try:
        return _ADDRESS.sub("", repr(thing))
    except Exception:  # noqa: BLE001 - a text of the user's class may do anything, and nothing depends on it
        return f"a {type(thing).__name__}"
