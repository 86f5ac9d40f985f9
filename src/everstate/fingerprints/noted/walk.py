"""From a unit to its notes: each step's call, and every definition of the user's that it reaches."""

from __future__ import annotations

import ast
import enum
import functools
import os
import sys
import types
from contextlib import suppress
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.errors import secrets
from everstate.fingerprints.code.slots import MISSING, Surroundings, attribute, cells, loaded, package_of, root
from everstate.fingerprints.declarations import Declared
from everstate.fingerprints.noted import contents, definitions
from everstate.fingerprints.noted.calls import call_at, names_in
from everstate.fingerprints.noted.notes import Definition, DefinitionKind, Notes, StepNote
from everstate.fingerprints.noted.places import Place, Scope, bindings, current_text, given, place_of
from everstate.fingerprints.outside import origins
from everstate.topology.functions import Function
from everstate.topology.names import node_names
from everstate.topology.nodes import Keying

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from everstate.fingerprints.code.templates import Slot
    from everstate.fingerprints.noted.calls import Call
    from everstate.topology.nodes import Node
    from everstate.topology.unit import Unit

#: Fields of a node that lead to other steps, or change no result.
_ASIDE: Final = frozenset({"inputs", "migrate"})
_DSL: Final = "everstate.dsl"


def note_unit(unit: Unit, settings: Mapping[str, Any]) -> Notes:
    """What the text of an output says.

    Args:
        unit: The output.
        settings: The configuration values that the service has read: those that are secrets are masked.
    """
    walk = Walk(tuple(secrets.named(settings).values()))
    names = node_names(unit)
    with origins.of_services(node.location.file for node in unit.nodes if node.location is not None):
        for number, node in enumerate(unit.nodes):
            # What cannot be noted is explained in other words: no deployment may fail for it.
            with suppress(Exception):
                note = walk.step(node)
                if note is not None:
                    walk.steps[names[number]] = note
    return Notes(walk.steps, {name: found for name, found in walk.definitions.items() if found is not None})


class Walk:
    """Collects definitions, each once.

    Args:
        values: Secrets that the service was given.
    """

    def __init__(self, values: tuple[str, ...] = ()) -> None:
        self.steps: dict[str, StepNote] = {}
        self.definitions: dict[str, Definition | None] = {}
        self._values = values
        self._names: dict[int, str] = {}
        # What a decorator put in the place of a function, and that function: people call both by its name.
        self._decorated: dict[str, str] = {}
        self._kept: list[object] = []  # a name belongs to an object, so its address must not be given to another
        self._inside: set[int] = set()
        self._modules: dict[str, dict[str, Any]] | None = None

    def step(self, node: Node) -> StepNote | None:
        """The note of one step; None if its call cannot be told."""
        if node.location is None:
            return None
        names = self._module(node.location.file)
        text = current_text(node.location.file, names)
        call = None if text is None else call_at(text, node.location)
        passed = [use for function in _functions(node) for use in self.reached(function.call)]
        if call is None:
            source = "" if text is None else text.text.splitlines()[node.location.line - 1].strip()
            return (
                StepNote(f"{node.verb}()", node.location.file, node.location.line, "", "", _once(passed))
                if (source or passed)
                else None
            )
        uses = [*passed, *self._named(call.names(), Scope.of(names), call)]
        digest = contents.digest(call.dump)
        return StepNote(call.label, node.location.file, call.line, self._shown(call), digest, _once(uses))

    def source(self, node: Node) -> str:
        """The text of the call that made a step, from its dot on; empty if it cannot be told."""
        if node.location is None:
            return ""
        text = current_text(node.location.file, self._module(node.location.file))
        call = None if text is None else call_at(text, node.location)
        return "" if call is None else self._shown(call)

    def _shown(self, call: Call) -> str:
        return secrets.hidden(definitions.without_secrets(call.source, call.nodes), self._values)

    def reached(self, thing: Any, place: Place | None = None) -> Sequence[str]:
        """The definitions that a thing is, or holds.

        Args:
            thing: Anything.
            place: Where it was given a name, if it is one of the user's: then plain values are noted, too.
        """
        if isinstance(thing, types.FunctionType):
            return self._function(thing)
        if isinstance(thing, type):
            return [self._class(thing)] if origins.of_class(thing).kind == "user" else []
        if isinstance(thing, (types.ModuleType, type(os.environ))) or type(thing).__module__.startswith(_DSL):
            return []  # the environment is nobody's text, and has secrets in it
        held = self._held(thing)
        if place is None or not place.scope.is_users or (callable(thing) and held and not _is_told(thing)):
            return held
        return [self._constant(thing, place, held)]

    # -- functions ----------------------------------------------------------------------------------------------------

    def _function(self, call: types.FunctionType) -> Sequence[str]:
        if origins.of_globals(call.__globals__).kind != "user":
            parts = [*getattr(call, "registry", {}).values(), *cells(call).values()]
            return _once(use for part in parts if callable(part) for use in self.reached(part))
        decorated = definitions.decorated_by(call)
        name, known = self._name(call, definitions.name_of(call))
        if not known:
            found = definitions.function(call, name, self._values)
            template = definitions.template_of(call)
            around = Surroundings(call)
            slots = [] if template is None else template.slots
            uses = [use for slot in slots for use in self._slot(around, slot, name)]
            uses += self._defaults(call, name)
            inner = self._function(decorated) if decorated is not None else []
            self.definitions[name] = replace(found, uses=_once(use for use in uses if use not in {name, *inner}))
            for use in inner:
                self._decorated[name] = use
                below = self.definitions[use]
                if below is not None:
                    self.definitions[use] = replace(below, uses=_once((*below.uses, name)))
        return [self._decorated.get(name, name)]

    def _slot(self, around: Surroundings, slot: Slot, function: str) -> Sequence[str]:
        """What a name of a function stands for."""
        rest, place = list(slot.attributes), None
        if slot.imported is not None:
            if package_of(slot.imported) is not None:
                return []
            module = loaded(slot.imported, around.package)
            thing = root(around, slot)
            if slot.imported.name is not None and isinstance(module, types.ModuleType):
                place = place_of(Scope.of(vars(module)), slot.imported.name)
        else:
            thing = around.named(slot.name)
            if slot.name in around.cells:
                return self._closed(thing, around, slot, function)
            place = place_of(Scope.of(around.globals), slot.name) if slot.name in around.globals else None
        return self._taken(thing, rest, place)

    def _taken(self, thing: Any, rest: list[str], place: Place | None) -> Sequence[str]:
        """What is taken of a thing: attributes of modules, and plain values of classes."""
        while rest and isinstance(thing, types.ModuleType):
            users = origins.of_loaded(thing).kind == "user"
            place = place_of(Scope.of(vars(thing)), rest[0]) if users else None  # a library's values are not noted
            thing = attribute(thing, rest.pop(0))
        if thing is MISSING:
            return []
        if rest and isinstance(thing, type) and origins.of_class(thing).kind == "user":
            return [self._member(thing, rest[0]) or self._class(thing)]
        return self.reached(thing, place)

    def _closed(self, thing: Any, around: Surroundings, slot: Slot, function: str) -> Sequence[str]:
        """A value that a function closes over."""
        uses = self.reached(thing)
        if callable(thing) or type(thing).__module__.startswith(_DSL):
            return uses
        name = f"{function}[{slot.name}]"
        self._value(name, "closure", slot.name, (around.file, slot.line), thing, uses)
        return [name]

    def _defaults(self, call: types.FunctionType, function: str) -> Iterator[str]:
        for parameter, value, node in definitions.defaults(call):
            uses = [*self.reached(value), *self._named(names_in(node), Scope.of(call.__globals__), None)]
            if callable(value):
                yield from uses
                continue
            name = f"{function}({parameter})"
            self._value(name, "default", parameter, (call.__code__.co_filename, node.lineno), value, uses)
            yield name

    # -- classes ------------------------------------------------------------------------------------------------------

    def _class(self, kind: type) -> str:
        name, known = self._name(kind, f"{kind.__module__}.{kind.__qualname__}")
        if not known:
            scope = Scope.of(vars(sys.modules.get(kind.__module__, types.ModuleType(""))))
            found, body = definitions.class_(kind, name, scope, self._values)
            uses = [use for base in kind.__bases__ for use in self.reached(base)]
            uses += [use for part in vars(kind).values() for use in self._held_in_class(part)]
            uses += [use for part in body for use in self._named(names_in(part), scope, None)]
            self.definitions[name] = replace(found, uses=_once(use for use in uses if use != name))
        return name

    def _held_in_class(self, part: Any) -> Sequence[str]:
        inner = getattr(part, "__func__", part)  # of a static or a class method
        if isinstance(inner, property):
            return [use for each in (inner.fget, inner.fset) if each is not None for use in self.reached(each)]
        return self.reached(inner) if isinstance(inner, types.FunctionType) else self._held(inner)

    def _member(self, kind: type, attribute_: str) -> str:
        """A plain value of a class that stands for itself; empty if it is not one."""
        base = next((base for base in kind.__mro__ if attribute_ in vars(base)), None)
        if base is None or not isinstance(vars(base)[attribute_], (str, int, float, bytes, type(None))):
            return ""
        name = f"{base.__module__}.{base.__qualname__}.{attribute_}"
        scope = Scope.of(vars(sys.modules.get(base.__module__, types.ModuleType(""))))
        statement = definitions.member(base, attribute_, scope)
        place = (scope.file, 0 if statement is None else statement.lineno)
        value = vars(base)[attribute_]
        value = value.value if isinstance(value, enum.Enum) else value
        self._value(name, "constant", f"{base.__name__}.{attribute_}", place, value, [], statement)
        return name

    # -- values -------------------------------------------------------------------------------------------------------

    def _held(self, thing: Any) -> Sequence[str]:
        """Functions and classes inside a value."""
        if id(thing) in self._inside or isinstance(thing, (str, bytes, int, float, type(None))):
            return []
        self._inside.add(id(thing))
        try:
            return _once(use for part in _parts(thing) for use in self.reached(part))
        finally:
            self._inside.discard(id(thing))

    def _constant(self, thing: Any, place: Place, held: Sequence[str]) -> str:
        name = f"{place.scope.module}.{place.name}"
        if name not in self.definitions:
            self.definitions[name] = None
            value = given(place.statement)
            uses = [*held, *(self._named(names_in(value), place.scope, None) if value is not None else ())]
            self._value(name, "constant", place.name, (place.scope.file, place.line), thing, uses, place.statement)
        return name

    def _value(
        self,
        name: str,
        kind: DefinitionKind,
        label: str,
        place: tuple[str, int],
        thing: Any,
        uses: Iterable[str],
        statement: ast.stmt | None = None,
    ) -> None:
        written = "" if statement is None else contents.digest(ast.dump(statement))
        value = getattr(statement, "value", None)
        if isinstance(thing, pl.Expr) and isinstance(value, ast.expr):
            text = self._source(place[0], value)  # as the user wrote it, not as Polars shows it
        else:
            text = contents.shown(label, thing, self._values)
        digest = contents.digest(contents.content(thing))
        own = _once(use for use in uses if use != name)
        self.definitions[name] = Definition(name, kind, label, *place, text, digest, written, own)

    # -- names in the text --------------------------------------------------------------------------------------------

    def _named(self, names: Iterable[ast.Name | ast.Attribute], scope: Scope, call: Call | None) -> Sequence[str]:
        """What names in a piece of the user's text stand for."""
        local = bindings(call.around.body) if call is not None and call.around is not None else {}
        found: list[str] = []
        for part in names:
            first, *rest = ast.unparse(part).split(".")
            if first in local and call is not None and call.around is not None:
                found += self._local(first, local, scope, call)
            elif first in scope.names:
                thing = scope.names[first]
                place = place_of(scope, first)
                grouped = type(thing).__module__.startswith(_DSL) and type(thing).__name__ == "Grouped"
                # Of a loop's variable the last value is left: what it went through says more.
                if grouped or isinstance(place.statement, ast.For):
                    found += self._written(first, place)
                else:
                    found += self._taken(thing, rest, place)
        return _once(found)

    def _local(self, name: str, local: dict[str, ast.stmt], scope: Scope, call: Call) -> Sequence[str]:
        """A variable of the function in which a service is put together: its value is gone, its text is there."""
        statement = local[name]
        value = given(statement)
        if value is None or not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.For)):
            return []
        if any(isinstance(part, ast.Call) and _is_step(part) for part in ast.walk(value)):
            return []  # a stream or a table: its steps are noted for themselves
        return self._written(name, Place(scope, name, statement), call)

    def _written(self, label: str, place: Place, call: Call | None = None) -> Sequence[str]:
        value = given(place.statement)
        if value is None:
            return []
        inside = f"{call.around.name}." if call is not None and call.around is not None else ""
        name = f"{place.scope.module}.{inside}{label}"
        if name not in self.definitions:
            self.definitions[name] = None
            uses = self._named(names_in(value), place.scope, call)
            text = self._source(place.scope.file, value)
            digest = contents.digest(ast.dump(value))
            self.definitions[name] = Definition(
                name, "text", label, place.scope.file, place.line, text, digest, digest, _once(uses)
            )
        return [name]

    def _source(self, file: str, part: ast.expr) -> str:
        """The text of an expression."""
        text = current_text(file, {})
        found = None if text is None else ast.get_source_segment(text.text, part)
        return secrets.hidden(definitions.without_secrets(found or ast.unparse(part), (part,)), self._values)

    def _name(self, thing: object, wanted: str) -> tuple[str, bool]:
        """The name of an object, and whether it has been met before."""
        if id(thing) in self._names:
            return self._names[id(thing)], True
        name, number = wanted, 1
        while name in self.definitions:
            number += 1
            name = f"{wanted}#{number}"
        self._names[id(thing)] = name
        self._kept.append(thing)
        self.definitions[name] = None
        return name, False

    def _module(self, file: str) -> dict[str, Any]:
        if self._modules is None:
            known = [vars(module) for module in list(sys.modules.values()) if isinstance(module, types.ModuleType)]
            self._modules = {str(names["__file__"]): names for names in known if names.get("__file__")}
        return self._modules.get(file, {})


def _functions(node: Node) -> Iterator[Function]:
    """The functions that a step was given."""
    waiting = [getattr(node, field.name) for field in fields(node) if field.name not in _ASIDE]
    for value in waiting:
        if isinstance(value, Function):
            yield value
        elif isinstance(value, Keying):
            waiting.append(value.fn)
        elif isinstance(value, tuple):
            waiting.extend(value)


def _parts(thing: Any) -> Iterator[Any]:
    """What a value holds that may be, or hold, a function."""
    if isinstance(thing, dict):
        yield from thing.values()
    elif isinstance(thing, (list, tuple, set, frozenset)):
        yield from thing
    elif isinstance(thing, types.MethodType):
        yield from (thing.__func__, thing.__self__)
    elif isinstance(thing, functools.partial):
        yield from (thing.func, *thing.args, *thing.keywords.values())
    elif isinstance(thing, Declared):
        yield thing.call
    elif isinstance(thing, functools._lru_cache_wrapper):  # noqa: SLF001 - the only name of this type
        yield thing.__wrapped__
    elif isinstance(thing, functools.cached_property):
        yield thing.func
    elif origins.of_class(type(thing)).kind == "user":
        yield type(thing)
        yield from getattr(thing, "__dict__", {}).values()


def _is_told(thing: Any) -> bool:
    """Whether a callable is also a value, with arguments that somebody wrote: a function with some of them given."""
    return isinstance(thing, functools.partial) or origins.of_class(type(thing)).kind == "user"


def _is_step(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in {"stream", "table", "global_table", "to"}


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
