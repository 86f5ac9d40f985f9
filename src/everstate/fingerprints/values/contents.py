"""What objects of well-known types hold as such, in a subclass as well.

Each type is asked through its own methods, since a subclass may have others: a dict whose `items` gives nothing still
holds what it holds.
"""

from __future__ import annotations

import array
import collections
import datetime as dt
import decimal
import fractions
import functools
import json
import pathlib
import re
import struct
import types
import uuid
import zoneinfo
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import polars as pl

from everstate.fingerprints.tree import Tree, atom

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from everstate.fingerprints.reach import Reach

_TYPES: Final = frozenset({"types"})
Maker: TypeAlias = "Callable[[Reach, Any], Tree]"


def _all(reach: Reach, parts: Iterable[Any]) -> list[Tree]:
    return [_part(reach, part) for part in parts]


def _part(reach: Reach, part: Any) -> Tree:
    if isinstance(part, type):
        reach.read(_TYPES, "")  # code may take it out and show it
    return reach.value(part)


def _pairs(reach: Reach, items: Iterable[tuple[Any, Any]]) -> list[Tree]:
    """In their order, which code sees."""
    return [_part(reach, part) for item in items for part in item]


def _members(kind: type, *names: str) -> Maker:
    """What C keeps in an object of a type, by name."""
    readers = [getattr(kind, name) for name in names]
    return lambda reach, thing: [reach.value(reader.__get__(thing)) for reader in readers]


def _moment(kind: type, *names: str) -> Maker:
    return _members(kind, *names, "hour", "minute", "second", "microsecond", "fold", "tzinfo")


def _buffer(reach: Reach, thing: Any) -> Tree:
    del reach
    return atom(bytes(memoryview(thing)))


def _array(reach: Reach, thing: array.array[Any]) -> Tree:
    return [vars(array.array)["typecode"].__get__(thing), _buffer(reach, thing)]


def _default_dict(reach: Reach, thing: Any) -> Tree:
    kind = collections.defaultdict
    return [reach.value(vars(kind)["default_factory"].__get__(thing)), _pairs(reach, dict.items(thing))]


def _deque(reach: Reach, thing: Any) -> Tree:
    kind = collections.deque
    return [vars(kind)["maxlen"].__get__(thing), _all(reach, kind.__iter__(thing))]


def _proxy(reach: Reach, thing: types.MappingProxyType[Any, Any]) -> Tree:
    try:
        held = thing.copy()
    except AttributeError:  # a mapping of the user's need not have it
        held = dict(thing)
    return reach.value(held)


def _zone(reach: Reach, thing: zoneinfo.ZoneInfo) -> Tree:
    reach.zone_data()
    if thing.key is None:
        raise reach.refused("a time zone that was read from a file has no name", hint='Use zoneinfo.ZoneInfo("NAME").')
    return thing.key


def _path(reach: Reach, thing: pathlib.PurePath) -> Tree:
    reach.name("pathlib.Path")
    # Its flavour is part of it, but which one a path of this machine has is not.
    flavour = None if isinstance(thing, pathlib.Path) else isinstance(thing, pathlib.PureWindowsPath)
    return [flavour, reach.value(pathlib.PurePath.as_posix(thing))]


def _partial(reach: Reach, thing: Any) -> Tree:
    call, given, named = (vars(functools.partial)[name].__get__(thing) for name in ("func", "args", "keywords"))
    reach.keywords |= set(named)
    return [reach.value(call), _all(reach, given), [[name, reach.value(part)] for name, part in named.items()]]


def _series(reach: Reach, thing: pl.Series) -> Tree:
    return [thing.name, reach.value(thing.dtype), _all(reach, thing.to_list())]


def _dtype(reach: Reach, thing: pl.DataType) -> Tree:
    """A type of Polars', whose text is cut short where it has many categories."""
    categories = getattr(thing, "categories", None)
    inner = [reach.value(getattr(thing, name)) for name in ("inner", "fields", "shape") if hasattr(thing, name)]
    return [str(thing) if categories is None else type(thing).__name__, inner, _categories(reach, categories)]


def _categories(reach: Reach, categories: Any) -> Tree:
    if categories is None:
        return None
    return _all(reach, categories.to_list()) if isinstance(categories, pl.Series) else repr(categories)


CONTENTS: Final[dict[type, Maker]] = {
    int: lambda _, thing: atom(int.__pos__(thing)),
    float: lambda _, thing: atom(float.__pos__(thing)),
    complex: lambda _, thing: atom(complex.__pos__(thing)),
    str: lambda _, thing: atom(str.__str__(thing)),
    bytes: _buffer,
    bytearray: _buffer,
    tuple: lambda reach, thing: _all(reach, tuple.__iter__(thing)),
    list: lambda reach, thing: _all(reach, list.__iter__(thing)),
    set: lambda reach, thing: reach.unordered(thing, set.__iter__(thing)),
    frozenset: lambda reach, thing: reach.unordered(thing, frozenset.__iter__(thing)),
    dict: lambda reach, thing: _pairs(reach, dict.items(thing)),
    collections.OrderedDict: lambda reach, thing: _pairs(reach, collections.OrderedDict.items(thing)),
    collections.Counter: lambda reach, thing: _pairs(reach, dict.items(thing)),
    collections.defaultdict: _default_dict,
    collections.deque: _deque,
    array.array: _array,
    types.MappingProxyType: _proxy,
    types.SimpleNamespace: lambda _reach, _thing: None,  # all that it holds are attributes
    range: _members(range, "start", "stop", "step"),
    slice: _members(slice, "start", "stop", "step"),
    dt.date: _members(dt.date, "year", "month", "day"),
    dt.datetime: _moment(dt.datetime, "year", "month", "day"),
    dt.time: _moment(dt.time),
    dt.timedelta: _members(dt.timedelta, "days", "seconds", "microseconds"),
    dt.timezone: lambda reach, thing: _all(reach, thing.__getinitargs__()),
    zoneinfo.ZoneInfo: _zone,
    decimal.Decimal: lambda _, thing: decimal.Decimal.__str__(thing),
    fractions.Fraction: lambda _, thing: fractions.Fraction.__str__(thing),
    uuid.UUID: lambda _, thing: [uuid.UUID.__str__(thing), thing.is_safe.name],
    re.Pattern: lambda reach, thing: [reach.value(thing.pattern), thing.flags],
    pathlib.PurePath: _path,
    struct.Struct: lambda _, thing: thing.format,
    json.JSONDecoder: lambda _reach, _thing: None,
    functools.partial: _partial,
    property: _members(property, "fget", "fset", "fdel"),
    staticmethod: _members(staticmethod, "__func__"),
    classmethod: _members(classmethod, "__func__"),
    functools.cached_property: lambda reach, thing: [reach.value(thing.func), thing.attrname],
    pl.Series: _series,
    pl.DataFrame: lambda reach, thing: [_series(reach, column) for column in thing.get_columns()],
    pl.DataType: _dtype,
}
#: Types whose objects cannot change, so that one and its copy are the same; of others it matters which one it is.
CONSTANT: Final = frozenset(
    {
        int, float, complex, str, bytes, tuple, frozenset, range, slice, dt.date, dt.datetime, dt.time, dt.timedelta,
        dt.timezone, zoneinfo.ZoneInfo, decimal.Decimal, fractions.Fraction, uuid.UUID, re.Pattern, pathlib.PurePath,
        struct.Struct, types.MappingProxyType, property, staticmethod, classmethod, functools.cached_property,
        pl.Series, pl.DataFrame, pl.DataType,
    }
)  # fmt: skip
#: What a type writes into the attributes of its objects for itself.
DERIVED: Final[dict[type, frozenset[str]]] = {
    json.JSONDecoder: frozenset({"scan_once"}),  # it is made of the other attributes, in C
    functools.cached_property: frozenset({"lock", "func", "attrname", "__doc__", "__module__"}),
    uuid.UUID: frozenset({"int", "is_safe"}),
}


def family(kind: type) -> type | None:
    """The well-known type that objects of a class are wholly made of."""
    if kind in CONTENTS:
        return kind
    if kind.__module__.partition(".")[0] == "pathlib" and issubclass(kind, pathlib.PurePath):
        return pathlib.PurePath
    return pl.DataType if issubclass(kind, pl.DataType) and kind.__module__.startswith("polars.") else None
