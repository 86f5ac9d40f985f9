"""Code of the user's as bytes, and back: functions and classes by value, not by the name of their module.

Whoever loads them gets what was written, whatever lies in the file by then; in the process that wrote them, too, where
today's functions and classes stay as they are.
"""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import io
import pickle
import sys
import sysconfig
from collections import ChainMap
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import IO, TYPE_CHECKING, Any, ClassVar, Final

from pyspark import cloudpickle
from pyspark.cloudpickle import cloudpickle as parts

from everstate.engine.query.inner_imports import (
    Importer,
    carried,
    found,
    has_imports,
    importer_of,
    inner_imports,
    is_carried,
)
from everstate.engine.query.reductions import reduced
from everstate.errors import DefinitionError
from everstate.location import Location

if TYPE_CHECKING:
    from collections.abc import Callable

    from everstate.engine.query.inner_imports import Carried, InnerImport
    from everstate.topology.unit import Unit

_PACKAGE: Final = "everstate"
#: What cloudpickle makes classes with, and the place of the argument by which it finds one that this process has.
_TRACKED: Final = {"_make_skeleton_class": 4, "_make_skeleton_enum": 5, "_make_typevar": 5}
#: What it makes functions with, and what is called in its place.
_FUNCTIONS: Final = {"_make_function": "_made", "_function_setstate": "_completed"}
#: What pickle raises for an object that it cannot write; objects may have their own.
_UNWRITABLE: Final = (TypeError, AttributeError, ValueError, pickle.PicklingError, RecursionError)
_HINT: Final = "Make such an object inside of the function that uses it, from plain values."


class Pickler(cloudpickle.Pickler):
    """Writes by value what is the user's.

    Args:
        file: Where it is written to.
        left_out: By module of the user's, names of what is in it and cannot be written; grows as modules are met. None
            to write modules whole.
    """

    # By name: whoever asks a field of a dataclass for its default compares with this very object.
    dispatch_table: ClassVar[ChainMap[type, Callable[[Any], Any]]] = ChainMap(
        {type(dataclasses.MISSING): lambda _: "MISSING"}, cloudpickle.Pickler.dispatch_table
    )

    def __init__(self, file: IO[bytes], left_out: dict[ModuleType, frozenset[str] | None] | None = None) -> None:
        super().__init__(file)
        self._left_out = left_out
        self._imports: dict[tuple[str, tuple[str, ...], int], tuple[InnerImport, Carried]] = {}
        self._users = _Users()

    def reducer_override(self, thing: Any) -> Any:
        """What a function or a class is written as; modules that a function imports when it runs are noted."""
        if self._left_out is not None and isinstance(thing, ModuleType) and self._users.has(thing):
            return parts.dynamic_subimport, (thing.__name__, self._writable(thing, self._left_out))
        own = reduced(thing)
        if own is not NotImplemented:
            return NotImplemented if self._is_elsewhere(thing) else own
        written = super().reducer_override(thing)
        if isinstance(thing, FunctionType) and written is not NotImplemented:
            self._note(thing)
        return written

    def _is_elsewhere(self, thing: Any) -> bool:
        """Whether an object goes by its name in a module that is not the user's."""
        module = sys.modules.get(getattr(thing, "__module__", None) or "")
        if module is None or module.__name__ == "__main__" or self._users.has(module):
            return False
        found: Any = module
        for part in str(getattr(thing, "__qualname__", getattr(thing, "__name__", ""))).split("."):
            found = getattr(found, part, None)
        return found is thing

    def _writable(self, module: ModuleType, left_out: dict[ModuleType, frozenset[str] | None]) -> dict[str, Any]:
        """What is in a module, but for what cannot be written: a lock that none of the written functions needs."""
        names = {name: part for name, part in vars(module).items() if name != "__builtins__"}
        if module not in left_out:
            left_out[module] = None  # it is empty to what is tried now: each part is judged for itself
            tried = {name: part for name, part in names.items() if not name.startswith("__")}
            left_out[module] = frozenset(name for name, part in tried.items() if not self._is_writable(part))
        absent = left_out[module]
        return {} if absent is None else {name: part for name, part in names.items() if name not in absent}

    def _is_writable(self, part: Any) -> bool:
        trial = type(self)(io.BytesIO(), self._left_out)
        trial._users = self._users  # noqa: SLF001 - its modules are the same
        try:
            trial.dump(part)
        except _UNWRITABLE:
            return False
        return True

    def _note(self, call: FunctionType) -> None:
        importer = importer_of(call)
        for one in inner_imports(call):
            module = found(one.module, importer)
            if module is not None and (is_carried(one.module, importer) or self._users.has(module)):
                content = carried(one, module, importer)
                self._users.refresh()  # a module of a package may have been loaded just now
                self._imports.setdefault((one.module, one.names, id(module)), (one, content))

    def write(self, unit: Unit | Callable[..., Any]) -> None:
        """Write a unit, and after it what its functions import, which may import more.

        Raises:
            DefinitionError: If something that a function imports cannot be written.
        """
        with self._users:
            self.dump(unit)
            done: set[object] = set()
            while waiting := [place for place in self._imports if place not in done]:
                for place in waiting:
                    one, content = self._imports[place]
                    try:
                        self.dump(content)
                    except _UNWRITABLE as error:
                        raise _unwritable(one, error) from error
                    done.add(place)


class Unpickler(pickle.Unpickler):
    """Reads what `Pickler` wrote; classes become new ones, and none of this process is touched.

    Otherwise a class that this process wrote would be found by an id, and get the members of the written one: today's
    class would have functions that are copies, and a fingerprint of its own.
    """

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        self._importer = Importer()
        self._names = self._importer.names()

    def unit(self) -> Any:
        """A unit, whose functions find what they import; earlier versions wrote nothing of that."""
        unit = self.load()
        with contextlib.suppress(EOFError):
            while True:
                self._importer.add(self.load())
        return unit

    def find_class(self, module: str, name: str) -> Any:
        """The object of a name; what makes classes does not look for known ones."""
        found = super().find_class(module, name)
        if module != parts.__name__:
            return found
        if name in _FUNCTIONS:
            return getattr(self, _FUNCTIONS[name])
        place = _TRACKED.get(name)
        return found if place is None else lambda *given: found(*given[:place], None, *given[place + 1 :])

    def _made(self, code: CodeType, names: dict[str, Any], *given: Any) -> FunctionType:
        """A function; one that imports something when it runs looks first into what was written with it."""
        if has_imports(code):
            names["__builtins__"] = self._names
        names.setdefault("__builtins__", vars(builtins))
        return FunctionType(code, names, *given)

    def _completed(self, call: FunctionType, state: Any) -> None:
        names = call.__globals__["__builtins__"]
        parts._function_setstate(call, state)  # noqa: SLF001 - what it writes functions with
        call.__globals__["__builtins__"] = names


def unpickled(payload: bytes) -> Unit:
    """A unit that `pickled` wrote."""
    unit: Unit = Unpickler(io.BytesIO(payload)).unit()
    return unit


def pickled(unit: Unit, pickler: type[Pickler] = Pickler) -> bytes:
    """A unit by value, together with every module of the user's that it reaches.

    Args:
        unit: The unit.
        pickler: What writes it.

    Raises:
        DefinitionError: If something that one of its functions needs cannot be written.
    """
    # A service that was installed as a package is its user's code like any other: a new version of it may be installed
    # while this one still runs.
    files = [node.location.file for node in unit.nodes if node.location is not None]
    return _written(unit, files, f"the output {unit.output.topic}", unit.output.location, pickler)


def own_copy(call: Callable[..., Any], file: str) -> Callable[..., Any]:
    """A function as it is now, with all of the user's that it reaches: what it hands to workers goes by value, too.

    Raises:
        DefinitionError: If something that it imports cannot be written.
    """
    name = f"the function {getattr(call, '__name__', call)}"
    code = getattr(call, "__code__", None)
    place = None if code is None else Location(file, code.co_firstlineno)
    copied: Callable[..., Any] = Unpickler(io.BytesIO(_written(call, [file], name, place, Pickler))).unit()
    return copied


def _written(
    thing: Unit | Callable[..., Any], files: list[str], called: str, place: Location | None, pickler: type[Pickler]
) -> bytes:
    """A thing by value; on a second try without what lies in its modules, is not needed, and cannot be written."""
    from everstate.fingerprints.outside import origins  # noqa: PLC0415 - not in processes that only ask about a query

    content, once_more = io.BytesIO(), io.BytesIO()
    with origins.of_services(files):
        try:
            pickler(content).write(thing)
        except (*_UNWRITABLE, DefinitionError):
            try:
                pickler(once_more, {}).write(thing)
            except DefinitionError:
                raise
            except _UNWRITABLE as error:
                raise DefinitionError(
                    f"{called} needs something that cannot be sent to workers: {error}",
                    location=place,
                    hint=_HINT,
                ) from error
            return once_more.getvalue()
    return content.getvalue()


def _unwritable(one: InnerImport, error: Exception) -> DefinitionError:
    return DefinitionError(
        f"what a function imports from {one.module!r} cannot be sent to workers: {error}",
        location=one.location,
        hint=_HINT,
    )


class _Users:
    """The user's modules that are loaded; inside of the context all that is in them is written by value."""

    def __init__(self) -> None:
        self._registered: dict[str, ModuleType] = {}
        self._others: set[str] = set()

    def __enter__(self) -> None:
        self.refresh()

    def __exit__(self, *_: object) -> None:
        for module in self._registered.values():
            cloudpickle.unregister_pickle_by_value(module)

    def has(self, module: ModuleType) -> bool:
        """Whether a module is the user's; it may have been loaded just now, with others."""
        name = module.__name__
        if name not in self._others and name not in self._registered:
            self.refresh()
            if name not in self._registered and not _is_spread(module):
                self._others.add(name)
        return name not in self._others

    def refresh(self) -> None:
        """Take in what has been loaded since."""
        from everstate.fingerprints.outside import origins  # noqa: PLC0415 - as above

        for module in list(sys.modules.values()):
            name = getattr(module, "__name__", "")
            if name not in self._registered and _is_users(module, origins.is_services):
                cloudpickle.register_pickle_by_value(module)
                self._registered[name] = module


def _is_users(module: ModuleType | Any, is_services: Callable[[str], bool]) -> bool:
    """Whether a module is the user's own: not part of Python, not Everstate, not installed but with the service."""
    file = getattr(module, "__file__", None)
    name = getattr(module, "__name__", "")
    if not file or name == "__main__" or name.partition(".")[0] == _PACKAGE:
        return False  # cloudpickle takes __main__ by value anyway
    return str(file).endswith(".py") and (not _is_installed(file) or is_services(file))


def _is_spread(module: ModuleType) -> bool:
    """Whether a module is a package of the user's without a file of its own."""
    folders = [] if getattr(module, "__file__", None) else list(getattr(module, "__path__", ()))
    return bool(folders) and not any(map(_is_installed, folders))


@cache
def _is_installed(file: str) -> bool:
    path = Path(file).resolve()
    return any(path.is_relative_to(folder) for folder in _installed())


@cache
def _installed() -> list[Path]:
    folders = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return [Path(folder).resolve() for folder in {*folders, sys.prefix, sys.base_prefix} if folder and folder != "/usr"]
