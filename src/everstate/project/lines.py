"""In which line of a TOML file a key stands: Python's reader does not say."""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

_HEADER: Final = re.compile(r"\s*\[\[?(?P<name>[^\[\]]+)\]\]?\s*(?:#.*)?$")
_KEY: Final = re.compile(r"\s*(?P<name>(?:[\w-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[\w-]+|\"[^\"]*\"|'[^']*'))*)\s*=")


def lines_of(text: str) -> dict[tuple[str, ...], int]:
    r"""The line of each key and table by its path, from 1; those inside of inline tables are left out.

    Example:
        >>> lines_of('log = "x"\n[services]\norders = "shop.orders"\n')
        {('log',): 1, ('services',): 2, ('services', 'orders'): 3}
    """
    found: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        header, key = _HEADER.match(line), _KEY.match(line)
        if header is not None:
            table = _path(header["name"])
            found.setdefault(table, number)
        elif key is not None:
            found.setdefault((*table, *_path(key["name"])), number)
    return found


def _path(name: str) -> tuple[str, ...]:
    """The parts of a dotted key, as TOML itself reads it."""
    try:
        inner: Any = tomllib.loads(f"{name} = 0")
    except tomllib.TOMLDecodeError:
        return (name,)
    parts = []
    while isinstance(inner, dict):
        ((part, inner),) = inner.items()
        parts.append(part)
    return tuple(parts)
