"""Values as trees: by content, never by address or by a text that may be cut short."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import enum
import fractions
import functools
import re
import types
import uuid
import zoneinfo
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.topology.declarations import Declared
from everstate.topology.fingerprints import classes, functions, instances, origins
from everstate.topology.fingerprints.expressions import expression
from everstate.topology.fingerprints.hints import hint, is_hint
from everstate.topology.fingerprints.outsiders import name_of
from everstate.topology.fingerprints.tree import Tree, atom, digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from everstate.topology.fingerprints.reach import Reach

_CONSTANTS: Final = {
    id(thing): text for thing, text in ((None, "None"), (Ellipsis, "..."), (NotImplemented, "NotImplemented"))
}


def value(reach: Reach, thing: Any) -> Tree:
    """The tree of any value.

    Raises:
        FingerprintError: If it cannot be told from its content.
    """
    leaf = atom(thing)
    if leaf is not None:
        return leaf
    if id(thing) in _CONSTANTS:
        return _CONSTANTS[id(thing)]
    known = _BY_TYPE.get(type(thing))
    if known is not None:
        return known(reach, thing)
    if isinstance(thing, type) and not is_hint(thing):
        return classes.class_(reach, thing)
    for kinds, make in _BY_BASE:
        if isinstance(thing, kinds):
            return make(reach, thing)
    if is_hint(thing):
        return hint(reach, thing)
    return _builtin(reach, thing) if _is_compiled(thing) else instances.instance(reach, thing)


def _is_compiled(thing: Any) -> bool:
    """Whether it is a function that was compiled by Cython or the like."""
    named = isinstance(getattr(thing, "__qualname__", None), str) and isinstance(
        getattr(thing, "__module__", None), str
    )
    return named and callable(thing) and origins.of_object(thing).kind != "user"


def items(reach: Reach, thing: Any, parts: Iterable[Any]) -> Tree:
    """The contents of a container, which may contain itself."""
    with reach.inside(thing) as above:
        return ["above", above] if above is not None else [reach.value(part) for part in parts]


def _sequence(reach: Reach, thing: Any) -> Tree:
    return [type(thing).__name__, items(reach, thing, thing)]


def _mapping(reach: Reach, thing: Any) -> Tree:
    return ["dict", items(reach, thing, (part for item in thing.items() for part in item))]


def _default_dict(reach: Reach, thing: Any) -> Tree:
    return ["defaultdict", reach.value(thing.default_factory), _mapping(reach, thing)]


def _set(reach: Reach, thing: Any) -> Tree:
    """In an order of its own, since that of a set differs between processes."""
    ordered = sorted(thing, key=lambda part: (type(part).__name__, getattr(part, "__qualname__", ""), repr(part)))
    trees = items(reach, thing, ordered)
    return [type(thing).__name__, sorted(trees, key=digest)]


def _text(reach: Reach, thing: Any) -> Tree:
    del reach
    return [type(thing).__name__, str(thing)]


def _repr(reach: Reach, thing: Any) -> Tree:
    del reach
    return [type(thing).__name__, repr(thing)]


def _moment(reach: Reach, thing: Any) -> Tree:
    zone = None if thing.tzinfo is None else reach.value(thing.tzinfo)
    return [type(thing).__name__, thing.replace(tzinfo=None).isoformat(), thing.fold, zone]


def _zone(reach: Reach, thing: zoneinfo.ZoneInfo) -> Tree:
    reach.zone_data()
    if thing.key is None:
        raise reach.refused("a time zone that was read from a file has no name", hint='Use zoneinfo.ZoneInfo("NAME").')
    return ["ZoneInfo", thing.key]


def _pattern(reach: Reach, thing: re.Pattern[Any]) -> Tree:
    return ["Pattern", reach.value(thing.pattern), thing.flags]


def _path(reach: Reach, thing: PurePath) -> Tree:
    reach.name("pathlib.Path")
    return ["path", reach.value(thing.as_posix())]


def _member(reach: Reach, thing: enum.Enum) -> Tree:
    return ["member", reach.value(type(thing)), thing.name if thing.name is not None else repr(thing.value)]


def _partial(reach: Reach, thing: functools.partial[Any]) -> Tree:
    reach.keywords |= set(thing.keywords)
    named = [[name, reach.value(part)] for name, part in thing.keywords.items()]
    return ["partial", reach.value(thing.func), [reach.value(part) for part in thing.args], named]


def _bound(reach: Reach, thing: types.MethodType) -> Tree:
    return ["method", reach.value(thing.__func__), reach.value(thing.__self__)]


def _declared(reach: Reach, thing: Declared) -> Tree:
    def build() -> Tree:
        said = reach.declare(thing.declaration)
        if thing.declaration.version:
            return ["declared", said, name_of(thing.call)]
        return ["declared", said, reach.value(thing.call)]

    return reach.define(thing, build)


def _cached(reach: Reach, thing: Any) -> Tree:
    return reach.value(thing.__wrapped__)


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
            f"it cannot be told what is used of the module {thing.__name__}",
            hint=f"Name what is used: {thing.__name__.rpartition('.')[2]}.NAME",
        )
    reach.name(thing.__name__)
    if origin.kind == "package":
        reach.package(origin.package)
    return ["module", thing.__name__]


def _descriptor(reach: Reach, thing: Any) -> Tree:
    wrapped = thing.__func__ if isinstance(thing, (staticmethod, classmethod)) else thing.func
    return [type(thing).__name__, reach.value(wrapped)]


def _property(reach: Reach, thing: property) -> Tree:
    return ["property", reach.value(thing.fget), reach.value(thing.fset), reach.value(thing.fdel)]


def _expression(reach: Reach, thing: pl.Expr) -> Tree:
    return ["expression", expression(thing, reach.location)]


def _series(reach: Reach, thing: pl.Series) -> Tree:
    return ["series", thing.name, str(thing.dtype), reach.value(thing.to_list())]


def _frame(reach: Reach, thing: pl.DataFrame) -> Tree:
    return ["frame", [_series(reach, column) for column in thing.get_columns()]]


_BY_TYPE: Final[dict[type, Callable[[Reach, Any], Tree]]] = {
    tuple: _sequence,
    list: _sequence,
    collections.deque: lambda reach, thing: ["deque", thing.maxlen, items(reach, thing, thing)],
    dict: _mapping,
    collections.OrderedDict: _mapping,
    collections.Counter: _mapping,
    collections.defaultdict: _default_dict,
    types.MappingProxyType: _mapping,
    set: _set,
    frozenset: _set,
    bytearray: lambda reach, thing: ["bytearray", reach.value(bytes(thing))],
    range: _repr,
    slice: lambda reach, thing: ["slice", [reach.value(part) for part in (thing.start, thing.stop, thing.step)]],
    dt.datetime: _moment,
    dt.time: _moment,
    dt.date: _text,
    dt.timedelta: _repr,
    dt.timezone: _repr,
    zoneinfo.ZoneInfo: _zone,
    decimal.Decimal: _text,
    fractions.Fraction: _text,
    uuid.UUID: _text,
    re.Pattern: _pattern,
    functools.partial: _partial,
    functools._lru_cache_wrapper: _cached,  # noqa: SLF001 - the only name of this type
    functools.cached_property: _descriptor,
    staticmethod: _descriptor,
    classmethod: _descriptor,
    property: _property,
    types.FunctionType: functions.function,
    types.MethodType: _bound,
    types.BuiltinFunctionType: _builtin,
    types.MethodWrapperType: _builtin,
    types.WrapperDescriptorType: _builtin,
    types.MethodDescriptorType: _builtin,
    types.ClassMethodDescriptorType: _builtin,
    types.ModuleType: _module,
    Declared: _declared,
    pl.Series: _series,
    pl.DataFrame: _frame,
}
_BY_BASE: Final[tuple[tuple[Any, Callable[[Reach, Any], Tree]], ...]] = (
    (pl.Expr, _expression),
    (enum.Enum, _member),
    (PurePath, _path),
    (pl.DataType, _text),
    (types.ModuleType, _module),
)
