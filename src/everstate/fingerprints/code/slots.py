"""What the names that a function takes from outside stand for."""

from __future__ import annotations

import builtins
import importlib
import sys
import typing
from abc import ABCMeta
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from everstate.fingerprints.code.sources import imports_of
from everstate.fingerprints.outside import origins, process
from everstate.fingerprints.outside.distributions import owner_of_top
from everstate.fingerprints.outside.lookup import kind_of, methods_of
from everstate.fingerprints.outside.outsiders import kept_name, name_of, package_name
from everstate.fingerprints.tree import Tree, atom
from everstate.fingerprints.values import readings
from everstate.location import Location

if TYPE_CHECKING:
    from everstate.fingerprints.code.scopes import Imported
    from everstate.fingerprints.code.templates import Slot, Template
    from everstate.fingerprints.reach import Reach

MISSING: Final = object()
#: What a function or class says of itself; where it is asked for by name, only that counts.
_SAID: Final = frozenset({"__name__", "__qualname__", "__module__", "__doc__"})


class Surroundings:
    """The names around a function: its globals, and what it closes over."""

    def __init__(self, call: FunctionType) -> None:
        self.file = call.__code__.co_filename
        self.package = str(call.__globals__.get("__package__") or "")
        self.globals = call.__globals__
        self.cells = cells(call)
        self._names = call.__code__.co_names
        self.call = call

    def named(self, name: str) -> Any:
        """What a name stands for; `MISSING` if it is not there yet."""
        if name.startswith("__") and not name.endswith("__"):  # in a class it has the name of the class before it
            name = next((known for known in self._names if known != name and known.endswith(name)), name)
        if name in self.cells:
            return self.cells[name]
        return self.globals.get(name, getattr(builtins, name, MISSING))


def cells(call: FunctionType) -> dict[str, Any]:
    """What a function closes over, by name."""
    found = {}
    for name, cell in zip(call.__code__.co_freevars, call.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # it is filled later, as the last name of two functions that call each other may be
            continue
    return found


def filled(reach: Reach, around: Surroundings, template: Template) -> list[Tree]:
    """The trees of a template's slots."""
    watch(reach, around, template)
    return [filled_slot(reach, around, slot) for slot in template.slots]


def watch(reach: Reach, around: Surroundings, template: Template) -> None:
    """Note what is taken of slots that have got another name inside a function."""
    for slot in template.watched:
        _watch(reach, around, slot)


def all_known(around: Surroundings, template: Template) -> bool:
    """Whether every name of a template stands for something."""
    return all(around.named(slot.name) is not MISSING for slot in template.slots)


def annotation(reach: Reach, kind: type, template: Template) -> Tree:
    """An annotation of a class that is kept as text."""
    names = vars(sys.modules.get(kind.__module__, builtins))
    inside = {**names, **{name: part for name, part in vars(kind).items() if not name.startswith("__")}}
    slots = [_taken(reach, inside.get(s.name, getattr(builtins, s.name, MISSING)), s) for s in template.slots]
    return ["text", template.tree, slots]


def filled_slot(reach: Reach, around: Surroundings, slot: Slot) -> Tree:
    """What a name from outside stands for, with the attributes that are left to be taken when the function runs."""
    with reach.at(Location(around.file, slot.line)), reach.of_slot(around, slot):
        package = None if slot.imported is None else package_of(slot.imported)
        if package is not None:
            return _unloaded(reach, package, slot)
        thing = root(around, slot)
        if slot.imported is None:
            _note_imported(reach, around, slot.name, thing)
        return _taken(reach, thing, slot)


def _note_imported(reach: Reach, around: Surroundings, name: str, thing: Any) -> None:
    """What the file imports from elsewhere, as `from sys import argv`: a plain value does not say where it is from."""
    module, inside = imports_of(around.file).get(name, ("", ""))
    known = sys.modules.get(module)
    if known is None or isinstance(thing, ModuleType) or origins.of_loaded(known).kind == "user":
        return
    if getattr(known, inside, MISSING) is thing:
        reach.name(f"{module}.{inside}")


def root(around: Surroundings, slot: Slot) -> Any:
    """What the name of a slot stands for; `MISSING` if it is not there."""
    return around.named(slot.name) if slot.imported is None else _import(slot.imported, around.package)


def _watch(reach: Reach, around: Surroundings, slot: Slot) -> None:
    """Note what is taken of something under another name, as `d.now` after `d = datetime`."""
    thing = root(around, slot)
    kind = origins.of_class(thing) if isinstance(thing, type) else None
    if isinstance(thing, ModuleType) or (kind is not None and kind.kind != "user"):
        with reach.at(Location(around.file, slot.line)):
            _taken(reach, thing, slot)


def _taken(reach: Reach, thing: Any, slot: Slot) -> Tree:
    rest = list(slot.attributes)
    impure = ""
    while rest and isinstance(thing, (ModuleType, type)):
        if isinstance(thing, type) and origins.of_class(thing).kind == "user":
            return _of_class(reach, thing, rest)
        name = rest.pop(0)
        thing, impure = _step(reach, thing, name)
    if thing is MISSING:
        if slot.imported is not None:
            reach.name(_imported_name(slot))
        return ["unbound", slot.name, *slot.attributes]
    if rest and not isinstance(thing, (ModuleType, type)):
        if rest[0] in _SAID and isinstance(thing, FunctionType | typing.NewType):
            return [reach.value(thing), rest[0], reach.value(getattr(thing, rest[0])), *rest[1:]]
        _note_method(reach, thing, rest[0])
    for name in rest:
        reach.read(readings.of_attribute(name), name)
    if impure and not callable(thing):
        return ["standard", impure, *rest]  # what is declared of it is hashed, not what happens to be in it
    return [_held(reach, thing), *rest]


def _step(reach: Reach, thing: ModuleType | type, name: str) -> tuple[Any, str]:
    """What is taken of a module, or of a class that is not the user's; its name if it has an effect."""
    if name == "__subclasses__" and isinstance(thing, type) and thing is not type:
        raise reach.refused(f"{thing.__name__} has subclasses from every module", hint="List the ones you mean.")
    found = attribute(thing, name)
    if isinstance(found, ModuleType):
        return found, ""  # a module on the way says nothing: what is taken of it does
    _note_replaced(reach, thing, name, found)
    return found, _note_taken(reach, thing, name)


def _held(reach: Reach, thing: Any) -> Tree:
    """What a name stands for; what a package keeps to be called, and that is no function, by its name."""
    name = None if isinstance(thing, (type, FunctionType)) or not callable(thing) else kept_name(thing)
    if name is None:
        return reach.value(thing)
    reach.name(name)
    reach.package(origins.of_object(type(thing)).package)
    return ["package", name]


def _note_taken(reach: Reach, thing: ModuleType | type, name: str) -> str:
    """Something of a module or a class that is not the user's; its name if it has an effect, or is one."""
    if isinstance(thing, type):
        above = {name_of(thing), package_name(thing)}
        tops = {part.partition(".")[0] for part in above}
        names = {f"{part}.{name}" for part in above}
        names |= {f"{module}.*.{name}" for module, _ in methods_of(name) if module in tops - {"pathlib"}}
    else:
        names = {f"{thing.__name__}.{name}"} if origins.of_loaded(thing).kind != "user" else set()
    for dotted in names:
        reach.name(dotted)
    return next((dotted for dotted in sorted(names) if kind_of(dotted)), "")


def _note_replaced(reach: Reach, thing: ModuleType | type, name: str, found: Any) -> None:
    """A function of the user's that was put into a module which is not."""
    foreign = isinstance(thing, ModuleType) and origins.of_loaded(thing).kind != "user"
    if foreign and isinstance(found, FunctionType) and process.is_users(found.__code__):
        reach.effect("settings", f"{thing.__name__}.{name}", process.PATCHED)


def _of_class(reach: Reach, kind: type, names: list[str]) -> Tree:
    if names[0] in _SAID:
        return [reach.value(kind), names[0], reach.value(getattr(kind, names[0])), *names[1:]]
    for name in names:
        reach.read(readings.of_attribute(name), name)
    plain = _plain_attribute(kind, names[0])
    return [plain, *names[1:]] if plain is not None else [reach.value(kind), *names]


def _plain_attribute(kind: type, name: str) -> Tree | None:
    """A class attribute that is a plain value stands for itself, whatever else is in its class."""
    if type(kind) not in (type, ABCMeta):
        return None  # a metaclass may give something else
    for base in kind.__mro__:
        if name in vars(base):
            return atom(vars(base)[name])
    return None


def _note_method(reach: Reach, thing: Any, name: str) -> None:
    """A method of an object: `folder.read_text` reads a file whichever folder it is."""
    if thing is sys.stdout or thing is sys.stderr:
        reach.name(f"sys.stdout.{name}")  # tests put something else there
        return
    for base in type(thing).__mro__:
        # By each class that has it: which of them defines it differs between versions.
        if hasattr(base, name) and origins.of_class(base).kind != "user":
            reach.name(f"{name_of(base)}.{name}")


def attribute(thing: Any, name: str) -> Any:
    """An attribute, or a module of a package; `MISSING` if there is none."""
    found = getattr(thing, name, MISSING)
    if found is MISSING and isinstance(thing, ModuleType) and hasattr(thing, "__path__"):
        return _module(f"{thing.__name__}.{name}")
    return found


def package_of(imported: Imported) -> str | None:
    """The package that an import inside a function is of; such a module is not loaded just to look at it."""
    top = imported.module.partition(".")[0]
    if imported.level or top in sys.stdlib_module_names:
        return None
    known = sys.modules.get(top)
    if known is not None and getattr(known, "__file__", None):
        origin = origins.of_loaded(known)
        return origin.package or None
    return owner_of_top(top)


def _unloaded(reach: Reach, package: str, slot: Slot) -> Tree:
    dotted = _imported_name(slot)
    reach.name(dotted)
    if package not in origins.LIBRARIES:
        reach.package(package)
    return ["package", dotted]


def _imported_name(slot: Slot) -> str:
    assert slot.imported is not None
    return ".".join(part for part in (slot.imported.module, slot.imported.name, *slot.attributes) if part)


def _import(imported: Imported, package: str) -> Any:
    module = loaded(imported, package)
    return module if imported.name is None or module is MISSING else attribute(module, imported.name)


def loaded(imported: Imported, package: str) -> Any:
    """The module that an import inside a function is of; `MISSING` if there is none."""
    name = imported.module
    if imported.level:
        parts = package.split(".")
        above = parts[: len(parts) - imported.level + 1]
        name = ".".join([*above, name] if name else above)
    return _module(name)


def _module(name: str) -> Any:
    if name in sys.modules:
        return sys.modules[name]
    try:
        return importlib.import_module(name)
    except ImportError:
        return MISSING
