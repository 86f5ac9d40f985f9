"""Whose code something is: the user's, Python's, a package's, or that of the libraries Everstate stands on."""

from __future__ import annotations

import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from everstate.topology.fingerprints.distributions import owner_of

if TYPE_CHECKING:
    from types import ModuleType

#: Upgrades of these are not a change by themselves: the results of samples are compared instead.
LIBRARIES: Final = frozenset({"everstate", "polars", "polars-runtime-32", "polars-runtime-64", "pyspark", "py4j"})

_OWN: Final = str(Path(__file__).resolve().parents[2])
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


def of_loaded(module: ModuleType) -> Origin:
    """Of a module."""
    return of_module(module.__name__, getattr(module, "__file__", None))


@cache
def of_module(name: str | None, file: str | None) -> Origin:
    """Of a module by its name and file."""
    top = (name or "").partition(".")[0]
    if file is None:
        return STANDARD if top in sys.stdlib_module_names or top in sys.builtin_module_names else USER
    return of_file(file)


@cache
def of_file(file: str) -> Origin:
    """Of a source file, or of a compiled extension."""
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
