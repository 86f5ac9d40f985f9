"""The names of things that are not the user's: the public ones, which Python versions have in common.

`hashlib.sha256` is `openssl_sha256` of a private module in one version and something else in the next; it is the module
that users import it from which says what it is.
"""

from __future__ import annotations

import builtins
import sys
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final

from everstate.fingerprints.outside import origins

#: Where the contents of private modules are to be found; `_x` is looked for in `x`, `x._y` in `x`.
_PUBLIC: Final[dict[str, str]] = {
    "posix": "os",
    "nt": "os",
    "posixpath": "os.path",
    "ntpath": "os.path",
    "genericpath": "os.path",
    "_md5": "hashlib",
    "_sha1": "hashlib",
    "_sha2": "hashlib",
    "_sha256": "hashlib",
    "_sha512": "hashlib",
    "_sha3": "hashlib",
    "_blake2": "hashlib",
    "_io": "io",
    "_pydatetime": "datetime",
    "_pydecimal": "decimal",
    "_strptime": "time",
    "_thread": "threading",
}
_named: dict[int, tuple[object, str]] = {}


def name_of(thing: Any) -> str:
    """The dotted name of a function, class or method that is not the user's."""
    known = _named.get(id(thing))
    if known is None:
        known = _named[id(thing)] = (thing, _found(thing))
    return known[1]


def _found(thing: Any) -> str:
    holder = getattr(thing, "__objclass__", None) or getattr(thing, "__self__", None)
    if holder is not None and not isinstance(holder, ModuleType) and not isinstance(thing, type):
        owner = holder if isinstance(holder, type) else type(holder)
        return f"{name_of(owner)}.{getattr(thing, '__name__', type(thing).__name__)}"
    module, name = _place(thing)
    public = _public_name(module, thing)
    return public or f"{module}.{name}"


def _place(thing: Any) -> tuple[str, str]:
    if isinstance(thing, FunctionType):
        # functools.wraps overwrites the names of the function, but not those of its code.
        return str(thing.__globals__.get("__name__", "")), thing.__code__.co_qualname
    module = getattr(thing, "__module__", None) or ""
    if not isinstance(module, str):  # it answers anything that it is asked for
        return type(thing).__module__, type(thing).__qualname__
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", None) or type(thing).__name__
    return module, str(name)


def _public_name(module: str, thing: object) -> str | None:
    """The name under which a public module has it; the first by alphabet if it has several."""
    name = getattr(thing, "__name__", "")  # of a class whose metaclass answers anything it may be anything
    if isinstance(name, str) and getattr(builtins, name, None) is thing:
        return f"builtins.{name}"
    for candidate in _candidates(module):
        loaded = sys.modules.get(candidate)
        if loaded is None:
            continue
        names = sorted(name for name, value in vars(loaded).items() if value is thing and not name.startswith("_"))
        if names:
            return f"{candidate}.{names[0]}"
    return None


def _candidates(module: str) -> list[str]:
    if module in _PUBLIC:
        return [_PUBLIC[module]]
    parts = module.split(".")
    while len(parts) > 1 and parts[-1].startswith("_"):
        parts.pop()
    above = ".".join(parts)
    return [above.lstrip("_"), above]


def package_name(thing: Any) -> str:
    """A name that an effect may be known by: the package and the name in it, as users write it."""
    module, name = _place(thing)
    holder = getattr(thing, "__self__", None)
    if isinstance(thing, BuiltinFunctionType) and holder is not None and not isinstance(holder, ModuleType):
        owner = holder if isinstance(holder, type) else type(holder)
        module, name = owner.__module__, f"{owner.__qualname__}.{thing.__name__}"
    return f"{module.partition('.')[0]}.{name}"


def kept_name(thing: Any) -> str | None:
    """The shortest name under which a package keeps an object of one of its own classes; None if it does not."""
    place = str(type(thing).__module__)
    if origins.of_object(type(thing)).kind != "package":
        return None
    parts = place.split(".")
    for length in range(1, len(parts) + 1):
        module = ".".join(parts[:length])
        held = vars(sys.modules[module]) if module in sys.modules else {}
        name = next((name for name, value in held.items() if value is thing), None)
        if name is not None:
            return f"{module}.{name}"
    return None
