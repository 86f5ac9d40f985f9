"""User functions as trees: their syntax, and what their globals, closure and defaults give it."""

from __future__ import annotations

import ast
import inspect
import typing
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final

from everstate.fingerprints.code.assembly import Assembly
from everstate.fingerprints.code.literals import spelled
from everstate.fingerprints.code.scopes import all_arguments
from everstate.fingerprints.code.slots import Surroundings, all_known, cells, filled, filled_slot, watch
from everstate.fingerprints.code.sources import FunctionNode, syntax_of
from everstate.fingerprints.code.syntax import HARMLESS, decorators_template, last_name, template_of
from everstate.fingerprints.declarations import DECLARED, declaration_of
from everstate.fingerprints.outside import origins, process
from everstate.fingerprints.outside.outsiders import name_of, package_name
from everstate.fingerprints.tree import atom
from everstate.fingerprints.values import readings
from everstate.location import Location

if TYPE_CHECKING:
    from everstate.fingerprints.code.templates import Template
    from everstate.fingerprints.reach import Reach
    from everstate.fingerprints.tree import Tree

_MISSING: Final = object()
#: What reads the annotations of other functions.
_READERS: Final = frozenset({"__annotations__", "get_type_hints", "get_annotations", "signature", "getfullargspec"})
_NO_SOURCE: Final = 'Keep it in a file, restart if the file was edited, or declare it: @es.declare(version="1")'

#: What Python calls the text that somebody types at its prompt, or passes with -c.
_TYPED: Final = ("<stdin>", "<string>", "<console>", "<python-input")
_NOT_KEPT: Final = (
    "It was typed at Python's prompt, and Python before 3.13 does not keep what is typed there, so a change could not "
    "be seen. Put it into a file and import it, write it as an expression such as es.col('amount') > 100, or work "
    "in IPython or Jupyter, which keep it."
)

_templates: dict[tuple[int, bool], tuple[FunctionNode, Template]] = {}


def _no_source(call: FunctionType) -> str:
    typed = call.__code__.co_filename.startswith(_TYPED) and "__file__" not in call.__globals__
    return _NOT_KEPT if typed else _NO_SOURCE


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
        held = _decorated(reach, call) or [reach.value(content) for content in cells(call).values()]
    return [origin.kind, name_of(call), held]


def _decorated(reach: Reach, call: FunctionType) -> Tree | None:
    """The function that a decorator was put on, and what stands after the `@`; None if it was not written so.

    What another package keeps in its wrapper is its own affair, and may be as large as the user's module.
    """
    inner = inspect.unwrap(call)
    if inner is call or not isinstance(inner, FunctionType) or origins.of_globals(inner.__globals__).kind != "user":
        return None
    node = syntax_of(inner.__code__, inner.__globals__)
    if node is None or isinstance(node, ast.Lambda) or not node.decorator_list:
        return None
    template, around = decorators_template(node), Surroundings(inner)
    if not all_known(around, template):
        return None
    # A wrapper that was put around it by hand has its arguments here alone.
    plain = [leaf for leaf in map(atom, cells(call).values()) if leaf is not None]
    wrapped = reach.value(call.__wrapped__)  # type: ignore[attr-defined]
    return [wrapped, template.tree, filled(reach, around, template), plain]


def outsider(reach: Reach, thing: Any, origin: origins.Origin) -> None:
    """Note that something is reached that is not the user's."""
    reach.name(name_of(thing))
    if isinstance(thing, type):
        name = process.patched(thing)
        if name:
            reach.effect("settings", f"{name_of(thing)}.{name}", process.PATCHED)
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
                raise reach.refused(f"there is no source that compiles to {call.__qualname__}", hint=_no_source(call))
            return ["unseen", said]
        template = _template(node, annotated=_annotations_matter(node, call))
        _facts(reach, call, node)
        around = Surroundings(call)
        tree, slots = _assembled(reach, call, template)
        own = [reach.value(around.cells["__class__"])] if "__class__" in around.cells else []
        defaults = [reach.value(value) for value in call.__defaults__ or ()]
        named = [[name, reach.value(value)] for name, value in sorted((call.__kwdefaults__ or {}).items())]
        private = sorted(_private_names(code)) if template.private else []
        return [tree, slots, own, defaults, named, _attributes(reach, call), said, *private]


def _assembled(reach: Reach, call: FunctionType, template: Template) -> tuple[Tree, list[Tree]]:
    """A function's tree in its one form, and what is in its slots."""
    form = reach.forms.form(call, template)
    assembly = Assembly(form.tree, plain=reach.forms.plain or reach.forms.looks)
    tree = assembly.tree(form.tree)
    reach.takes |= assembly.takes
    reach.keywords |= assembly.keywords
    reach.spreads |= assembly.spreads
    for included, its, around in form.included:
        reach.stored |= its.stored
        _note_readings(reach, included, its, around)
        watch(reach, around, its)
        reach.function(around)
        for name, line in its.methods.items():
            reach.method(name, Location(around.file, line))
    return tree, [filled_slot(reach, hole.around, hole.slot) for hole in assembly.holes]


def _note_readings(reach: Reach, call: FunctionType, template: Template, around: Surroundings) -> None:
    """What a function reads of names and texts; constants that it takes from outside may name an attribute."""
    node = spelled(around)
    if node is not None:
        reach.read(readings.of_function(node), call.__qualname__)
    for slot in template.slots:
        known = around.named(slot.name)
        if isinstance(known, str):
            reach.read(readings.of_text(known), known)


def template_of_function(call: FunctionType) -> Template | None:
    """The template of a function; None if there is no source of it."""
    node = syntax_of(call.__code__, call.__globals__)
    return None if node is None else _template(node, annotated=_annotations_matter(node, call))


def _template(node: FunctionNode, *, annotated: bool) -> Template:
    place = (id(node), annotated)
    if place not in _templates:
        _templates[place] = (node, template_of(node, annotated=annotated))
    return _templates[place][1]


def _facts(reach: Reach, call: FunctionType, node: FunctionNode) -> None:
    """What a function says that changes no result by itself, with that of the functions and classes which it makes."""

    def inner() -> list[Any]:
        return list(readings.inner(node))

    def hints() -> Tree:
        try:
            meant = typing.get_type_hints(call, include_extras=True)
        except (NameError, TypeError, AttributeError):  # what it names is not there yet
            meant = {}
        own = [[name, reach.value(meant.get(name, part))] for name, part in call.__annotations__.items()]
        return [own, [ast.unparse(hint) for part in inner() for hint in _hints(part)]]

    reach.fact("names", lambda: [call.__name__, call.__qualname__, [part.name for part in inner()]])
    reach.fact("class names", lambda: [part.name for part in inner() if isinstance(part, ast.ClassDef)])
    reach.fact("modules", lambda: [call.__module__])
    reach.fact("docs", lambda: [call.__doc__, [ast.get_docstring(part, clean=False) for part in inner()]])
    reach.fact("hints", hints)


def _hints(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> list[ast.expr]:
    if isinstance(node, ast.ClassDef):
        return [part.annotation for part in node.body if isinstance(part, ast.AnnAssign)]
    hints = [*(argument.annotation for argument in all_arguments(node.args)), node.returns]
    return [hint for hint in hints if hint is not None]


def _attributes(reach: Reach, call: FunctionType) -> Tree:
    own = {name: value for name, value in vars(call).items() if name != DECLARED}
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


def _private_names(code: CodeType) -> set[str]:
    """Names such as `__count` in a class as they are when it runs, with the name of the class."""
    found = {name for name in (*code.co_names, *code.co_freevars) if name.startswith("_") and "__" in name[1:]}
    return found.union(*(_private_names(part) for part in code.co_consts if isinstance(part, CodeType)))


def _mentions(code: CodeType, names: frozenset[str]) -> bool:
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    return bool(names & set(code.co_names)) or any(_mentions(part, names) for part in inner)
