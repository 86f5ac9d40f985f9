"""Functions and schemas that cannot be right, and their errors. Tables for `test_wrong_calls.py`."""

from __future__ import annotations

import collections
import functools
import typing
from datetime import time
from typing import Any, Literal

import polars as pl
import pyarrow as pa

import everstate as es
from everstate import col
from everstate.errors import (
    FunctionError,
    SchemaError,
    UnsupportedError,
)
from tests.unit.dsl import shop
from tests.unit.dsl.shop import OUT, events, orders, people

Wrong = tuple[str, type[Exception], Any]


def _group(flow: Any = None) -> Any:
    return (flow or orders()).group_by("customer")


def _join(**options: Any) -> Any:
    table = orders()
    return table.join(people(table), **options)


_NOT_FUNCTIONS: dict[str, Any] = {
    "a number": 5,
    "text": "amount",
    "None": None,
    "an expression": col("amount") * 2,
    "a dict": {"a": 1},
    "a list": [1],
}
_NOT_OF_A_ROW: dict[str, Any] = {
    "no argument": shop.nothing,
    "two arguments": shop.two,
    "three arguments": shop.three,
    "lambda of none": lambda: 1,
    "lambda of two": lambda a, b: 1,
    "named argument": shop.named_only,
    "named argument too": shop.named_too,
    "partial that is full": shop.partial_of_one,
    "bound method of two": shop.Methods().two,
    "unbound method": shop.Methods.one,
    "object of two": shop.CallsTwo(),
    "async": shop.waiting,
    "async partial": shop.partial_async,
    "async method": shop.Methods().waiting,
    "async object": shop.CallsLater(),
    "async generator": shop.flowing,
    "class of three": shop.Item,
    "class of none": shop.Plain,
    "builtin of none": globals,
}
_NOT_OF_TWO: dict[str, Any] = {
    "no argument": shop.nothing,
    "one argument": shop.one,
    "three arguments": shop.three,
    "lambda of one": lambda a: 1,
    "bound method of one": shop.Methods().one,
    "partial of two": shop.partial_of_two,
    "async": shop.waiting_for_two,
    "generator": shop.yielding_two,
    "object of one": shop.CallsOne(),
    "class of one": shop.Total,
}


def _function_calls() -> list[Wrong]:
    one = {
        "map": lambda fn: orders().map(fn, schema=OUT),
        "filter": lambda fn: orders().filter(fn),
        "peek": lambda fn: orders().peek(fn),
        "update": lambda fn: orders().update(fn),
    }
    few = {
        "apply": lambda fn: events().apply(fn, schema=OUT),
        "flat_map": lambda fn: events().flat_map(fn, schema=OUT),
        "rekey": lambda fn: orders().rekey(fn),
        "group_by": lambda fn: orders().group_by(fn),
        "join on": lambda fn: _join(on=fn),
        "branch": lambda fn: orders().branch(col("amount") > 1, fn),
    }
    two = {
        "stateful apply": lambda fn: events().apply(fn, stateful=True, schema=OUT),
        "stateful filter": lambda fn: events().filter(fn, stateful=True),
        "reduce": lambda fn: _group().reduce(fn),
        "aggregate add": lambda fn: _group().aggregate(dict, fn, schema=OUT),
        "remove": lambda fn: _group().reduce(shop.two, fn),
        "joiner": lambda fn: _join(joiner=fn, schema=OUT),
    }
    calls: list[Wrong] = []
    for title, call in one.items():
        calls += [
            (f"{title}: {word}", FunctionError, functools.partial(call, fn)) for word, fn in _NOT_OF_A_ROW.items()
        ]
        calls.append((f"{title}: a generator", FunctionError, functools.partial(call, shop.yielding)))
    for title, call in few.items():
        for word in ("no argument", "two arguments", "async", "named argument"):
            calls.append((f"{title}: {word}", FunctionError, functools.partial(call, _NOT_OF_A_ROW[word])))
    for title, call in two.items():
        calls += [(f"{title}: {word}", FunctionError, functools.partial(call, fn)) for word, fn in _NOT_OF_TWO.items()]
    for title in ("map", "peek", "update"):
        calls += [
            (f"{title}: {word}", FunctionError, functools.partial(one[title], fn))
            for word, fn in _NOT_FUNCTIONS.items()
        ]
    calls += [
        ("stateful apply: text", FunctionError, lambda: events().apply("x", stateful=True, schema=OUT)),
        ("aggregate init: a value", FunctionError, lambda: _group().aggregate(0, shop.two, schema=OUT)),
        ("aggregate init: of one", FunctionError, lambda: _group().aggregate(shop.one, shop.two, schema=OUT)),
        ("aggregate init: async", FunctionError, lambda: _group().aggregate(shop.waiting, shop.two, schema=OUT)),
        (
            "aggregate init: a generator",
            FunctionError,
            lambda: _group().aggregate(lambda: (yield), shop.two, schema=OUT),
        ),
        (
            "aggregate migrate: of two",
            FunctionError,
            lambda: _group().aggregate(dict, shop.two, schema=OUT, migrate=shop.two),
        ),
        (
            "apply migrate: of none",
            FunctionError,
            lambda: events().apply(shop.two, stateful=True, schema=OUT, migrate=shop.nothing),
        ),
        ("joiner: a number", FunctionError, lambda: _join(joiner=5, schema=OUT)),
        ("map: a builtin that is no function", FunctionError, lambda: orders().map(NotImplemented, schema=OUT)),
        ("map: a module", FunctionError, lambda: orders().map(functools, schema=OUT)),
        ("map: what it gives is not known", SchemaError, lambda: orders().map(lambda row: row)),
        ("flat_map: what it gives is not known", SchemaError, lambda: events().flat_map(shop.yielding)),
        ("map: migrate without state", UnsupportedError, lambda: events().apply(shop.one, migrate=shop.one)),
    ]
    return calls


_SCHEMAS: dict[str, Any] = {
    "nothing": {},
    "object": object,
    "a bare list": {"a": list},
    "a bare dict": {"a": dict},
    "a bare tuple": {"a": tuple},
    "a tuple of types": {"a": tuple[int, ...]},
    "a set": {"a": set[str]},
    "typing.List": {"a": typing.List},  # noqa: UP006
    "typing.Dict": {"a": typing.Dict},  # noqa: UP006
    "a dict by numbers": {"a": dict[int, str]},
    "a dict by Any": {"a": dict[Any, str]},
    "two types": {"a": int | str},
    "three types": {"a": int | str | None},
    "only None": {"a": None},
    "NoneType": {"a": type(None)},
    "Any": {"a": Any},
    "a type by name": {"a": "str"},
    "an unknown name": {"a": "Order"},
    "an example": {"a": 5},
    "a list in brackets": {"a": [int]},
    "an empty list": {"a": []},
    "an empty struct": {"a": {}},
    "a name that is a number": {5: str},
    "a name that is None": {None: str},
    "an empty name": {"": str},
    "a reserved name": {"$key": str},
    "another reserved name": {"$ts": int, "a": int},
    "half of a surrogate pair": {"\ud800": int},
    "an object whose text fails": {"a": shop.Silent()},
    "a NUL in a name": {"a\x00b": str},
    "a NUL in a nested name": {"a": {"b\x00": str}},
    "complex numbers": {"a": complex},
    "time of day": {"a": time},
    "an Enum": {"a": shop.Colour},
    "a Literal": {"a": Literal["x", "y"]},
    "a NamedTuple": shop.Pair,
    "a plain class": shop.Plain,
    "a class in a list": {"a": list[shop.Plain]},
    "a deque": {"a": collections.deque[int]},
    "Callable": {"a": typing.Callable[[int], str]},
    "a TypeVar": {"a": shop.T},
    "a generic dataclass": {"a": shop.Box[int]},
    "an open generic": shop.Box,
    "a recursive dataclass": shop.Tree,
    "dataclasses in a circle": shop.Ping,
    "a recursive TypedDict": shop.Link,
    "a dict that holds itself": shop.HOLDS_ITSELF,
    "two thousand levels": shop.DEEP,
    "unresolved annotations": shop.Unresolved,
    "an instance": shop.Total(1.0),
    "a dataclass without fields": shop.Empty,
    "a default of another type": shop.WrongDefault,
    "a default that fails": shop.Failing,
    "a default that changes": shop.Restless,
    "Spark's DDL": "id STRING, amount DOUBLE",
    "a list of pairs": [("a", str)],
    "a list of names": ["a", "b"],
    "a tuple": (str, int),
    "a number": 5,
    "True": True,
    "a function": len,
    "a frame": pl.DataFrame({"a": [1]}),
    "an Arrow schema with a name twice": pa.schema([("a", pa.int64()), ("a", pa.int64())]),
    "an Arrow schema of nothing": pa.schema([]),
    "an Arrow union": pa.schema([("a", pa.null())]),
    "Arrow time": {"a": pa.time64("us")},
    "nanoseconds": {"a": pa.timestamp("ns")},
    "another time zone": {"a": pa.timestamp("us", "Europe/Berlin")},
    "a Polars category": {"a": pl.Categorical},
    "a Polars object": {"a": pl.Object},
    "a Polars list of nothing": {"a": pl.List},
    "a Polars struct of nothing": {"a": pl.Struct},
    "Final": {"a": typing.Final[int]},
    "a forward reference in a list": {"a": list["Order"]},  # noqa: F821
}


def _schema_calls() -> list[Wrong]:
    sources = [
        (
            f"schema: {word}",
            SchemaError,
            functools.partial(lambda s: es.Service("s").table("t", key="k", schema=s), spec),
        )
        for word, spec in _SCHEMAS.items()
    ]
    results = [
        (
            f"map schema: {word}",
            SchemaError,
            functools.partial(lambda s: orders().map(shop.one, schema=s), _SCHEMAS[word]),
        )
        for word in ("a bare list", "a recursive dataclass", "object", "a number", "nothing", "an Enum")
    ]
    return sources + results


WRONG_FUNCTIONS: list[Wrong] = [*_function_calls(), *_schema_calls()]
