"""Whose code something is: the user's, Python's, a package's, or that of the libraries Everstate stands on."""

from __future__ import annotations

import sys
import sysconfig
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal

from everstate.fingerprints.outside.distributions import owner_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Upgrades of these are not a change by themselves: the results of samples are compared instead.
LIBRARIES: Final = frozenset({"everstate", "polars", "polars-runtime-32", "polars-runtime-64", "pyspark", "py4j"})

_OWN: Final = f"{Path(__file__).resolve().parents[2]}/"
_SITES: Final = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class Origin:
    """Whose code it is.

    Attributes:
        kind: "user" is hashed by content, "standard" and "library" by name, "package" by name and version.
        package: The distribution, where it is one.
    """

    kind: Literal["user", "standard", "package", "library"]
    package: str = ""


_services: Final[ContextVar[frozenset[str]]] = ContextVar("everstate_services", default=frozenset())
#: By identity; holding the class keeps its id from being given to another.
_found: Final[dict[int, tuple[type, bool]]] = {}
#: Flags of CPython's types.
_HEAP: Final = 1 << 9
_BASE: Final = 1 << 10
_FLAGS: Final = _HEAP | _BASE | 1 << 8  # the last one says that it cannot be changed
USER: Final = Origin("user")
STANDARD: Final = Origin("standard")


def of_globals(names: dict[str, Any]) -> Origin:
    """Of code that has these globals."""
    return of_module(names.get("__name__"), names.get("__file__"))


def of_object(thing: Any) -> Origin:
    """Of a class or a function, by the module it says it is from."""
    name = getattr(thing, "__module__", None)
    module = sys.modules.get(name) if isinstance(name, str) else None
    if module is None:
        return of_module(name, None) if isinstance(name, str) else STANDARD
    return of_loaded(module)


def of_class(kind: type) -> Origin:
    """Of a class, by the module it says it is from if that has it.

    A class that was made at run time says that it is from wherever it was made, such as `types`.
    """
    origin = of_object(kind)
    return origin if origin.kind == "user" or not is_made(kind) or _is_found(kind) else USER


def is_made(kind: type) -> bool:
    """Whether Python made a class; those of C cannot be changed or extended, or are found."""
    return kind.__flags__ & _FLAGS == _HEAP | _BASE


def _is_found(kind: type) -> bool:
    known = _found.get(id(kind))
    if known is None:
        module = sys.modules.get(kind.__module__)
        known = _found[id(kind)] = (kind, _named(module, kind) is kind or _is_written_in(module, kind))
    return known[1]


def _named(module: ModuleType | None, kind: type) -> Any:
    place: Any = module
    for name in kind.__qualname__.split("."):
        place = vars(place).get(name) if isinstance(place, (type, ModuleType)) else None
    return place


def _is_written_in(module: ModuleType | None, kind: type) -> bool:
    """Whether a class has a method that stands in a module's file; it may have no name there any more."""
    file = getattr(module, "__file__", None)
    codes = (getattr(part, "__code__", None) for part in vars(kind).values())
    return file is not None and any(code is not None and code.co_filename == file for code in codes)


def of_loaded(module: ModuleType) -> Origin:
    """Of a module."""
    return of_module(module.__name__, getattr(module, "__file__", None))


def of_module(name: str | None, file: str | None) -> Origin:
    """Of a module by its name and file."""
    if file is not None:
        return of_file(file)
    top = (name or "").partition(".")[0]
    return STANDARD if top in sys.stdlib_module_names or top in sys.builtin_module_names else USER


def of_file(file: str) -> Origin:
    """Of a source file, or of a compiled extension."""
    return USER if is_services(file) else _of_file(file)


def is_users_folder(folder: str) -> bool:
    """Whether a folder is neither Python's nor Everstate's, nor among installed packages."""
    path = Path(folder).resolve()
    return not any(site in path.parts for site in _SITES) and _of_file(str(path / "module.py")) == USER


def is_services(file: str) -> bool:
    """Whether a file belongs to the package of the service that is looked at, inside `of_services`."""
    return _of_file(file).package in _services.get()


@contextmanager
def of_services(files: Iterable[str]) -> Iterator[None]:
    """While a service in these files is looked at: if it is installed as a package, that package is the user's code.

    Its version may stay while it is developed, so it says nothing.
    """
    token = _services.set(frozenset(found.package for found in map(_of_file, files) if found.kind == "package"))
    try:
        yield
    finally:
        _services.reset(token)


@cache
def _of_file(file: str) -> Origin:
    path = Path(file).resolve()
    text = str(path)
    if text.startswith(_OWN):
        return Origin("library", "everstate")
    if not any(site in path.parts for site in _SITES):
        return STANDARD if any(text.startswith(folder) for folder in _standard_folders()) else USER
    package = owner_of(path)
    if package is None:
        return USER  # it lies among installed packages and belongs to none, so no version would show a change
    return Origin("library" if package in LIBRARIES else "package", package)


@cache
def _standard_folders() -> tuple[str, ...]:
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
    return tuple(f"{Path(folder).resolve()}/" for folder in folders if folder)
