"""What is known of a name outside the user's code: that it is pure, which effect it has, or nothing at all."""

from __future__ import annotations

from functools import cache
from typing import Final

from everstate.fingerprints.outside import known_packages, known_standard

#: Of a name that nobody has looked at.
UNKNOWN: Final = "unknown"

#: Modules that hold what others show, where taking the underscore away does not lead there.
_BEHIND: Final = {
    "_collections_abc": "collections",
    "_elementtree": "xml.etree.ElementTree",
    "_io": "io",
    "_pydatetime": "datetime",
    "_pydecimal": "decimal",
    "_sitebuiltins": "builtins",
    "_strptime": "time",
    "_sre": "re",
    "_thread": "threading",
    "_weakrefset": "weakref",
    "genericpath": "os.path",
    "nt": "os",
    "ntpath": "os.path",
    "posix": "os",
    "posixpath": "os.path",
    "sre_compile": "re",
    "sre_constants": "re",
}
#: Kinds of paths that have what Path has.
_PATHS: Final = {"PosixPath": "Path", "WindowsPath": "Path"}


@cache
def kind_of(name: str) -> str:
    """The kind of effect that a dotted name has; empty if it is pure, `UNKNOWN` if nobody has looked."""
    parts = name.split(".")
    if parts[-1] == "__hash__":
        return "random"
    top = _BEHIND.get(parts[0], parts[0].lstrip("_") if parts[0] != "__future__" else parts[0])
    parts[:1] = top.split(".")
    if parts[:1] == ["pathlib"]:
        parts = [_PATHS.get(part, part) for part in parts]
    for length in range(len(parts), 0, -1):
        above, last = ".".join(parts[: length - 1]), parts[length - 1]
        found = _NAMES.get(f"{above}.{last}" if above else last)
        if found is None:
            found = next((kind for begin, kind in _BEGINNINGS.get(above, ()) if last.startswith(begin)), None)
        if found is not None:
            return found
    return UNKNOWN


@cache
def has_effects(name: str) -> bool:
    """Whether something below a name has an effect."""
    return bool(kind_of(name)) or any(kind and known.startswith(f"{name}.") for known, kind in _NAMES.items())


def effects_below(attribute: str) -> tuple[tuple[str, str], ...]:
    """The names with an effect whose last part this is, with their kinds."""
    return _BY_LAST.get(attribute, ())


def methods_of(attribute: str) -> tuple[tuple[str, str], ...]:
    """The modules of which something has a method of this name that has an effect, with its kind."""
    return _METHODS.get(attribute, ())


def _table() -> dict[str, str]:
    found: dict[str, str] = {}
    for source in (known_standard, known_packages):
        found |= dict.fromkeys(source.PURE.split(), "")
        for kind, names in source.EFFECTS.items():
            found |= dict.fromkeys(names.split(), kind)
    for method, modules in _METHODS.items():
        found |= {f"{module}.*.{method}": kind for module, kind in modules}
    return found


def _beginnings() -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    # The longest first, so that what is said of `with_*` wins over what is said of all.
    for name, kind in sorted(_NAMES.items(), key=lambda item: -len(item[0])):
        if name.endswith("*"):
            above, _, begin = name[:-1].rpartition(".")
            found.setdefault(above, []).append((begin, kind))
    return found


def _by_last() -> dict[str, tuple[tuple[str, str], ...]]:
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for name, kind in _NAMES.items():
        last = name.rpartition(".")[2]
        if kind and "." in name and "*" not in name:
            found[last] = (*found.get(last, ()), (name, kind))
    return found


def _methods() -> dict[str, tuple[tuple[str, str], ...]]:
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for module, text in {**known_standard.METHODS, **known_packages.METHODS}.items():
        for group in text.split(";"):
            kind, _, names = group.partition(":")
            for name in names.split():
                found[name] = (*found.get(name, ()), (module, kind.strip()))
    return found


_METHODS: Final = _methods()
_NAMES: Final = _table()
_BEGINNINGS: Final = _beginnings()
_BY_LAST: Final = _by_last()
