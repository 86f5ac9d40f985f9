"""Modules of the user's that are imported inside of functions, on their way to other processes.

A worker has no folder to find such a module in, and an archive outlives the folder's content. What a function imports
therefore travels with it: of `from rules import late` what is named, of `import rules` the module. Where the function
is loaded, its import statements find that first, and nothing is put into `sys.modules`: two versions of a module may be
in use in one process.
"""

from __future__ import annotations

import builtins
import dis
import importlib
import sys
from dataclasses import dataclass
from importlib.util import resolve_name
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from everstate.location import Location

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

#: By the full name of a module: the module itself, or the names that are needed of it.
Carried: TypeAlias = "dict[str, ModuleType | dict[str, Any]]"


@dataclass(frozen=True)
class InnerImport:
    """One import statement inside of a function.

    Attributes:
        module: Full name of the module.
        names: What is imported from it; empty for the module itself.
        mentioned: All names in the function, among them those that it may take of the packages around the module.
        location: Where the statement stands.
    """

    module: str
    names: tuple[str, ...]
    mentioned: frozenset[str]
    location: Location


def inner_imports(call: FunctionType) -> Iterator[InnerImport]:
    """The import statements of a function, and of those that it makes."""
    package = str(call.__globals__.get("__package__") or "")
    codes = list(_codes(call.__code__))
    mentioned = frozenset(name for code in codes for name in code.co_names)
    for code in codes:
        yield from _imports(code, package, mentioned)


def has_imports(code: CodeType) -> bool:
    """Whether a piece of code imports anything when it runs."""
    return any(step.opname == "IMPORT_NAME" for part in _codes(code) for step in dis.get_instructions(part))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _codes(part)


def _imports(code: CodeType, package: str, mentioned: frozenset[str]) -> Iterator[InnerImport]:
    constants: list[Any] = []
    for step in dis.get_instructions(code):
        if step.opname == "IMPORT_NAME":
            level, names = constants[-2:]
            line = step.positions.lineno if step.positions is not None else None
            location = Location(code.co_filename, line or code.co_firstlineno)
            name = _full(step.argval, package, level)
            if name:
                yield InnerImport(name, tuple(names or ()), mentioned, location)
        elif step.opname == "LOAD_CONST":
            constants.append(step.argval)


def _full(name: str, package: str, level: int) -> str:
    """The full name of a module that is imported by another one; empty if it has none."""
    try:
        return resolve_name("." * level + name, package) if level else name
    except ImportError:
        return ""


def found(module: str, importer: Any) -> ModuleType | None:
    """The module of a name, as a function would get it; None if there is none.

    Args:
        module: Its full name.
        importer: What the function's import statements call.
    """
    if is_carried(module, importer):
        return importer.modules[module]  # type: ignore[no-any-return]  # it is an `Importer`
    try:
        return sys.modules.get(module) or importlib.import_module(module)
    except ImportError:
        return None  # the function may be prepared for that


def is_carried(module: str, importer: Any) -> bool:
    """Whether a module came with the function, so that it is the user's."""
    return isinstance(importer, Importer) and module in importer.modules


def carried(one: InnerImport, module: ModuleType, importer: Any) -> Carried:
    """What a function needs of what it imports.

    Args:
        one: The import.
        module: Its module.
        importer: What the function's import statements call.
    """
    if not one.names:
        return {**_packages(one, importer), one.module: module}
    names: dict[str, Any] = {}
    for name in one.names:
        value = getattr(module, name, None) if hasattr(module, name) else found(f"{one.module}.{name}", importer)
        if value is not None or hasattr(module, name):
            names[name] = value
    return {one.module: names}


def _packages(one: InnerImport, importer: Any) -> Carried:
    """Of the packages around a module, such as `shop` in `import shop.rules`: what the function may take of them."""
    parts: Carried = {}
    package = one.module.rpartition(".")[0]
    while package:
        known = vars(found(package, importer) or ModuleType(package))
        parts[package] = {
            name: known[name] for name in one.mentioned & known.keys() if not isinstance(known[name], ModuleType)
        }
        package = package.rpartition(".")[0]
    return parts


class Importer:
    """Stands in for Python's `__import__` in functions that were loaded with what they import.

    Attributes:
        modules: By full name.
    """

    def __init__(self) -> None:
        self.modules: dict[str, ModuleType] = {}

    def add(self, carried: Carried) -> None:
        """Have more to give."""
        for name, content in carried.items():
            known = self._module(name)
            vars(known).update(vars(content) if isinstance(content, ModuleType) else content)

    def _module(self, name: str) -> ModuleType:
        """The module of a name, in the package that it belongs to."""
        if name not in self.modules:
            self.modules[name] = ModuleType(name)
            parent, _, last = name.rpartition(".")
            if parent:
                setattr(self._module(parent), last, self.modules[name])
        return self.modules[name]

    def __call__(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 - Python's own names
        locals: Mapping[str, Any] | None = None,  # noqa: A002 - as above
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """As `__import__`."""
        full = _full(name, str((globals or {}).get("__package__") or ""), level)
        if full not in self.modules:
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        return self.modules[full if fromlist else full.partition(".")[0]]

    def names(self) -> dict[str, Any]:
        """Python's built-in names, with this import."""
        return {**vars(builtins), "__import__": self}


def importer_of(call: FunctionType) -> Callable[..., Any]:
    """What a function's import statements call."""
    names: dict[str, Callable[..., Any]] = getattr(call, "__builtins__", {})
    return names.get("__import__", builtins.__import__)
