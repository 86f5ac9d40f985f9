"""User functions as trees: their syntax, and what their globals, closure and defaults give it."""

from __future__ import annotations

import ast
import builtins
import importlib
import sys
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from everstate.topology.declarations import DECLARED, declaration_of
from everstate.topology.fingerprints import origins
from everstate.topology.fingerprints.distributions import owner_of_top
from everstate.topology.fingerprints.outsiders import name_of, package_name
from everstate.topology.fingerprints.sources import FunctionNode, syntax_of
from everstate.topology.fingerprints.syntax import HARMLESS, Slot, Template, last_name, template_of
from everstate.topology.fingerprints.tree import Tree, atom
from everstate.topology.location import Location

if TYPE_CHECKING:
    from everstate.topology.fingerprints.reach import Reach
    from everstate.topology.fingerprints.scopes import Imported

_MISSING: Final = object()
#: What reads the annotations of other functions.
_READERS: Final = frozenset({"__annotations__", "get_type_hints", "get_annotations", "signature", "getfullargspec"})
_NO_SOURCE: Final = 'Keep it in a file, restart if the file was edited, or declare it: @es.declare(version="1")'

_templates: dict[tuple[int, bool], tuple[FunctionNode, Template]] = {}


def function(reach: Reach, call: FunctionType) -> Tree:
    """A function: the user's by its meaning, another one by its name."""
    origin = origins.of_globals(call.__globals__)
    if origin.kind == "user":
        return reach.define(call, lambda: _definition(reach, call))
    return (
        reach.define(call, lambda: _foreign(reach, call, origin)) if call.__closure__ else _named(reach, call, origin)
    )


def _named(reach: Reach, call: FunctionType, origin: origins.Origin) -> Tree:
    outsider(reach, call, origin)
    return [origin.kind, name_of(call)]


def _foreign(reach: Reach, call: FunctionType, origin: origins.Origin) -> Tree:
    """What a decorator of another package made: it may hold a function of the user's."""
    outsider(reach, call, origin)
    registry = getattr(call, "registry", None)
    if registry is not None and hasattr(call, "dispatch"):
        held = [[reach.value(kind), reach.value(implementation)] for kind, implementation in registry.items()]
    else:
        held = [reach.value(content) for content in cells(call).values()]
    return [origin.kind, name_of(call), held]


def outsider(reach: Reach, thing: Any, origin: origins.Origin) -> None:
    """Note that something is reached that is not the user's."""
    reach.name(name_of(thing))
    if origin.kind == "package":
        reach.package(origin.package)
    if origin.kind in ("package", "library"):
        reach.name(package_name(thing))


def _definition(reach: Reach, call: FunctionType) -> Tree:
    code = call.__code__
    declaration = declaration_of(call)
    said = None if declaration is None else reach.declare(declaration)
    with reach.at(Location(code.co_filename, code.co_firstlineno)):
        node = syntax_of(code, call.__globals__)
        if node is None:
            if declaration is None or not declaration.version:
                raise reach.refused(f"there is no source that compiles to {call.__qualname__}", hint=_NO_SOURCE)
            return ["unseen", said]
        template = _template(node, annotated=_annotations_matter(node, call))
        reach.keywords |= template.keywords
        reach.spreads |= template.spreads
        for name, line in template.methods.items():
            reach.method(name, Location(code.co_filename, line))
        closed = cells(call)
        slots = [_slot(reach, call, closed, slot) for slot in template.slots]
        own = [reach.value(closed["__class__"])] if "__class__" in closed else []
        defaults = [reach.value(value) for value in call.__defaults__ or ()]
        named = [[name, reach.value(value)] for name, value in sorted((call.__kwdefaults__ or {}).items())]
        return [template.tree, slots, own, defaults, named, _attributes(reach, call), said]


def annotation(reach: Reach, kind: type, template: Template) -> Tree:
    """An annotation of a class that is kept as text."""
    names = vars(sys.modules.get(kind.__module__, builtins))
    inside = {**names, **{name: part for name, part in vars(kind).items() if not name.startswith("__")}}
    slots = [_taken(reach, inside.get(s.name, getattr(builtins, s.name, _MISSING)), s) for s in template.slots]
    return ["text", template.tree, slots]


def _template(node: FunctionNode, *, annotated: bool) -> Template:
    place = (id(node), annotated)
    if place not in _templates:
        _templates[place] = (node, template_of(node, annotated=annotated))
    return _templates[place][1]


def cells(call: FunctionType) -> dict[str, Any]:
    """What a function closes over, by name."""
    found = {}
    for name, cell in zip(call.__code__.co_freevars, call.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # it is filled later, as the last name of two functions that call each other may be
            continue
    return found


def _attributes(reach: Reach, call: FunctionType) -> Tree:
    own = {name: value for name, value in vars(call).items() if not name.startswith("__") and name != DECLARED}
    return [[name, reach.value(value)] for name, value in sorted(own.items())]


def _annotations_matter(node: FunctionNode, call: FunctionType) -> bool:
    """Whether a decorator may act on annotations: one of another package, or one that reads them."""
    if isinstance(node, ast.Lambda):
        return False
    return any(
        last_name(decorator) not in HARMLESS and _reads_annotations(decorator, call)
        for decorator in node.decorator_list
    )


def _reads_annotations(decorator: ast.expr, call: FunctionType) -> bool:
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    found: Any = _MISSING
    if isinstance(named, ast.Name):
        found = {**call.__globals__, **cells(call)}.get(named.id, _MISSING)
    elif isinstance(named, ast.Attribute) and isinstance(named.value, ast.Name):
        found = getattr(call.__globals__.get(named.value.id), named.attr, _MISSING)
    if not isinstance(found, FunctionType):
        return origins.of_object(found).kind != "standard" if found is not _MISSING else True
    origin = origins.of_globals(found.__globals__)
    return origin.kind == "package" or (origin.kind == "user" and _mentions(found.__code__, _READERS))


def _mentions(code: CodeType, names: frozenset[str]) -> bool:
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    return bool(names & set(code.co_names)) or any(_mentions(part, names) for part in inner)


def _slot(reach: Reach, call: FunctionType, closed: dict[str, Any], slot: Slot) -> Tree:
    """What a name from outside stands for, with the attributes that are left to be taken when the function runs."""
    with reach.at(Location(call.__code__.co_filename, slot.line)):
        if slot.imported is not None:
            package = _package_of(slot.imported)
            if package is not None:
                return _unloaded(reach, package, slot)
            thing = _import(slot.imported, call)
        elif slot.name in closed:
            thing = closed[slot.name]
        else:
            thing = call.__globals__.get(slot.name, getattr(builtins, slot.name, _MISSING))
        return _taken(reach, thing, slot)


def _taken(reach: Reach, thing: Any, slot: Slot) -> Tree:
    rest = list(slot.attributes)
    while rest and isinstance(thing, (ModuleType, type)):
        if isinstance(thing, type) and origins.of_object(thing).kind == "user":
            plain = _plain_attribute(thing, rest[0])
            return [plain, *rest[1:]] if plain is not None else [reach.value(thing), *rest]
        name = rest.pop(0)
        if isinstance(thing, ModuleType) and origins.of_loaded(thing).kind != "user":
            reach.name(f"{thing.__name__}.{name}")
        thing = _attribute(thing, name)
    if thing is _MISSING:
        return ["unbound", slot.name, *slot.attributes]
    if rest and not isinstance(thing, (ModuleType, type)):
        _note_method(reach, thing, rest[0])
    return [reach.value(thing), *rest]


def _plain_attribute(kind: type, name: str) -> Tree | None:
    """A class attribute that is a plain value stands for itself, whatever else is in its class."""
    for base in kind.__mro__:
        if name in vars(base):
            return atom(vars(base)[name])
    return None


def _note_method(reach: Reach, thing: Any, name: str) -> None:
    """A method of an object: `folder.read_text` reads a file whichever folder it is."""
    for base in type(thing).__mro__:
        # By each class that has it: which of them defines it differs between versions.
        if hasattr(base, name) and origins.of_object(base).kind != "user":
            reach.name(f"{name_of(base)}.{name}")


def _attribute(thing: Any, name: str) -> Any:
    found = getattr(thing, name, _MISSING)
    if found is _MISSING and isinstance(thing, ModuleType) and hasattr(thing, "__path__"):
        return _module(f"{thing.__name__}.{name}")
    return found


def _package_of(imported: Imported) -> str | None:
    """The package that an import inside a function is of; such a module is not loaded just to look at it."""
    top = imported.module.partition(".")[0]
    if imported.level or top in sys.stdlib_module_names:
        return None
    loaded = sys.modules.get(top)
    if loaded is not None and getattr(loaded, "__file__", None):
        origin = origins.of_loaded(loaded)
        return origin.package or None
    return owner_of_top(top)


def _unloaded(reach: Reach, package: str, slot: Slot) -> Tree:
    assert slot.imported is not None
    inside = [part for part in (slot.imported.module, slot.imported.name, *slot.attributes) if part]
    dotted = ".".join(inside)
    reach.name(dotted)
    if package not in origins.LIBRARIES:
        reach.package(package)
    return ["package", dotted]


def _import(imported: Imported, call: FunctionType) -> Any:
    name = imported.module
    if imported.level:
        package = str(call.__globals__.get("__package__") or "").split(".")
        above = package[: len(package) - imported.level + 1]
        name = ".".join([*above, name] if name else above)
    module = _module(name)
    if imported.name is None or module is _MISSING:
        return module
    return _attribute(module, imported.name)


def _module(name: str) -> Any:
    if name in sys.modules:
        return sys.modules[name]
    try:
        return importlib.import_module(name)
    except ImportError:
        return _MISSING
