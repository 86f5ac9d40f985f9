"""Values as trees: by content, never by address or by a text that may be cut short."""

from __future__ import annotations

import enum
import functools
import types
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.fingerprints.code import functions
from everstate.fingerprints.declarations import Declared
from everstate.fingerprints.expressions import expression
from everstate.fingerprints.outside import origins
from everstate.fingerprints.outside.outsiders import name_of
from everstate.fingerprints.tree import Tree, atom
from everstate.fingerprints.values import classes, instances, readings
from everstate.fingerprints.values.contents import CONSTANT, CONTENTS, DERIVED, family
from everstate.fingerprints.values.hints import hint, is_hint

if TYPE_CHECKING:
    from collections.abc import Callable

    from everstate.fingerprints.reach import Reach

_CONSTANTS: Final = {
    id(thing): ["constant", text]
    for thing, text in ((None, "None"), (Ellipsis, "..."), (NotImplemented, "NotImplemented"))
}


def value(reach: Reach, thing: Any) -> Tree:
    """The tree of any value.

    Raises:
        FingerprintError: If it cannot be told from its content.
    """
    leaf = atom(thing)
    if leaf is not None:
        if leaf.kind == "str" and "_" in thing:
            reach.read(readings.of_text(thing), thing)
        # A number that does not equal itself is found in a list only if it is the very one.
        return leaf if thing == thing else reach.define(thing, lambda: leaf)  # noqa: PLR0124
    if id(thing) in _CONSTANTS:
        return _CONSTANTS[id(thing)]
    kind = type(thing)
    known = _BY_TYPE.get(kind)
    if known is not None:
        return known(reach, thing)
    base = family(kind)
    if base is not None:
        return held(reach, thing, base)
    if isinstance(thing, type) and not is_hint(thing):
        return classes.class_(reach, thing)
    for kinds, make in _BY_BASE:
        if isinstance(thing, kinds):
            return make(reach, thing)
    if is_hint(thing):
        return hint(reach, thing)
    return _builtin(reach, thing) if _is_compiled(thing) else instances.instance(reach, thing)


def held(reach: Reach, thing: Any, kind: type) -> Tree:
    """An object of a well-known type: what it holds, and the attributes that it was given."""
    if kind in CONSTANT:
        return [kind.__name__, CONTENTS[kind](reach, thing)]

    # Of what can be changed it matters which one it is: a list that stands in two places is not two lists.
    def build() -> Tree:
        more = instances.attributes(reach, thing, DERIVED.get(kind, frozenset()))
        return [kind.__name__, CONTENTS[kind](reach, thing), *more]

    return reach.define(thing, build)


def _is_compiled(thing: Any) -> bool:
    """Whether it is a function that was compiled by Cython or the like."""
    names = (getattr(thing, "__qualname__", None), getattr(thing, "__module__", None))
    if not (all(isinstance(name, str) for name in names) and callable(thing)):
        return False
    # An object of a Python class that was given a function's names by functools.wraps holds more than these.
    return not origins.is_made(type(thing)) and origins.of_object(thing).kind != "user"


def _member(reach: Reach, thing: enum.Enum) -> Tree:
    kind = type(thing)
    if thing.name in kind.__members__:
        return ["member", reach.value(kind), thing.name]
    return ["members", reach.value(kind), reach.value(thing.value)]  # several flags, or none


def _bound(reach: Reach, thing: types.MethodType) -> Tree:
    reach.call(thing.__name__)
    return ["method", reach.value(thing.__func__), reach.value(thing.__self__)]


def _declared(reach: Reach, thing: Declared) -> Tree:
    def build() -> Tree:
        said = reach.declare(thing.declaration)
        if thing.declaration.version:
            return ["declared", said, name_of(thing.call)]
        return ["declared", said, reach.value(thing.call)]

    return reach.define(thing, build)


def _cached(reach: Reach, thing: Any) -> Tree:
    return ["cached", sorted(thing.cache_parameters().items()), reach.value(thing.__wrapped__)]


def _builtin(reach: Reach, thing: Any) -> Tree:
    """A function written in C, or a method of a built-in type, which may be bound to a value."""
    holder = getattr(thing, "__self__", None)
    if holder is None or isinstance(holder, (types.ModuleType, type)):
        origin = origins.of_object(holder if isinstance(holder, type) else thing)
        functions.outsider(reach, thing, origin)
        return [origin.kind, name_of(thing)]
    reach.name(name_of(thing))
    return ["method", thing.__name__, reach.value(holder)]


def _module(reach: Reach, thing: types.ModuleType) -> Tree:
    origin = origins.of_loaded(thing)
    if origin.kind == "user":
        raise reach.refused(
            f"what is used of the module {thing.__name__} is not known",
            hint=f"Name what is used: {thing.__name__.rpartition('.')[2]}.NAME",
        )
    reach.name(thing.__name__, thing)
    if origin.kind == "package":
        reach.package(origin.package)
    return ["module", thing.__name__]


def _expression(reach: Reach, thing: pl.Expr) -> Tree:
    return ["expression", expression(thing, reach.location)]


_BY_TYPE: Final[dict[type, Callable[[Reach, Any], Tree]]] = {
    functools._lru_cache_wrapper: _cached,  # noqa: SLF001 - the only name of this type
    types.FunctionType: functions.function,
    types.MethodType: _bound,
    types.BuiltinFunctionType: _builtin,
    types.MethodWrapperType: _builtin,
    types.WrapperDescriptorType: _builtin,
    types.MethodDescriptorType: _builtin,
    types.ClassMethodDescriptorType: _builtin,
    types.ModuleType: _module,
    Declared: _declared,
}
_BY_BASE: Final[tuple[tuple[Any, Callable[[Reach, Any], Tree]], ...]] = (
    (pl.Expr, _expression),
    (enum.Enum, _member),
    (types.ModuleType, _module),
)
