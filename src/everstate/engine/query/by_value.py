"""Code of the user's as bytes, and back: functions and classes by value, not by the name of their module.

Whoever loads them gets what was written, whatever lies in the file by then; in the process that wrote them, too, where
today's functions and classes stay as they are.
"""

from __future__ import annotations

import dataclasses
import io
import pickle
import sys
import sysconfig
from collections import ChainMap
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Final

from pyspark import cloudpickle
from pyspark.cloudpickle import cloudpickle as parts

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from everstate.topology.unit import Unit

_PACKAGE: Final = "everstate"
#: What cloudpickle makes classes with, and the place of the argument by which it finds one that this process has.
_TRACKED: Final = {"_make_skeleton_class": 4, "_make_skeleton_enum": 5, "_make_typevar": 5}


class Pickler(cloudpickle.Pickler):
    """Writes by value what is the user's."""

    # By name: whoever asks a field of a dataclass for its default compares with this very object.
    dispatch_table: ClassVar[ChainMap[type, Callable[[Any], Any]]] = ChainMap(
        {type(dataclasses.MISSING): lambda _: "MISSING"}, cloudpickle.Pickler.dispatch_table
    )


class Unpickler(pickle.Unpickler):
    """Reads what `Pickler` wrote; classes become new ones, and none of this process is touched.

    Otherwise a class that this process wrote would be found by an id, and get the members of the written one: today's
    class would have functions that are copies, and a fingerprint of its own.
    """

    def find_class(self, module: str, name: str) -> Any:
        """The object of a name; what makes classes does not look for known ones."""
        found = super().find_class(module, name)
        place = _TRACKED.get(name) if module == parts.__name__ else None
        if place is None:
            return found
        return lambda *given: found(*given[:place], None, *given[place + 1 :])


def unpickled(payload: bytes) -> Unit:
    """A unit that `pickled` wrote."""
    unit: Unit = Unpickler(io.BytesIO(payload)).load()
    return unit


def pickled(unit: Unit, pickler: Callable[[IO[bytes]], Any] = Pickler) -> bytes:
    """A unit by value, together with every module of the user's that is loaded.

    Args:
        unit: The unit.
        pickler: What writes it.
    """
    from everstate.fingerprints.outside import origins  # noqa: PLC0415 - not in processes that only ask about a query

    # A service that was installed as a package is its user's code like any other: a new version of it may be installed
    # while this one still runs.
    with origins.of_services(node.location.file for node in unit.nodes if node.location is not None):
        registered = [module for module in list(sys.modules.values()) if _is_users(module, origins.is_services)]
    for module in registered:
        cloudpickle.register_pickle_by_value(module)
    content = io.BytesIO()
    try:
        pickler(content).dump(unit)
    finally:
        for module in registered:
            cloudpickle.unregister_pickle_by_value(module)
    return content.getvalue()


def _is_users(module: ModuleType | Any, is_services: Callable[[str], bool]) -> bool:
    """Whether a module is the user's own: not part of Python, not Everstate, not installed but with the service."""
    file = getattr(module, "__file__", None)
    name = getattr(module, "__name__", "")
    if not file or name == "__main__" or name.partition(".")[0] == _PACKAGE:
        return False  # cloudpickle takes __main__ by value anyway
    return str(file).endswith(".py") and (not _is_installed(file) or is_services(file))


@cache
def _is_installed(file: str) -> bool:
    path = Path(file).resolve()
    return any(path.is_relative_to(folder) for folder in _installed())


@cache
def _installed() -> list[Path]:
    folders = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return [Path(folder).resolve() for folder in {*folders, sys.prefix, sys.base_prefix} if folder and folder != "/usr"]
