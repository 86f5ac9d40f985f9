"""Arguments that cannot be right, and their errors. Tables for `test_wrong_calls.py`."""

from __future__ import annotations

import functools
from datetime import timedelta
from typing import Any

from google.protobuf.wrappers_pb2 import Int64Value

import everstate as es
from everstate import col
from everstate.errors import (
    CallError,
    ConfigurationError,
    DefinitionError,
    FunctionError,
    NameClashError,
    SchemaError,
    TopicNameError,
    UnknownColumnError,
    UnsupportedError,
)
from tests.unit.dsl import shop
from tests.unit.dsl.shop import OUT, SCHEMA, driver, events, numbers, orders, people

Wrong = tuple[str, type[Exception], Any]


def _group(flow: Any = None) -> Any:
    return (flow or orders()).group_by("customer")


def _join(**options: Any) -> Any:
    table = orders()
    return table.join(people(table), **options)


def _two_readings(**other: Any) -> None:
    app = shop.shop()
    orders(app)
    app.table("orders", **{"key": "id", "schema": SCHEMA, **other})


def _numbered(key_format: str) -> Any:
    return shop.shop().table(f"t-{key_format}", key="id", schema={"id": int}, key_format=key_format)


def _join_of_key_formats() -> None:
    table = _numbered("number")
    table.join(table.service.table("other", key="id", schema={"id": int}))


def _read_with_key_formats() -> None:
    app = _numbered("number").service
    app.table("t-number", key="id", schema={"id": int})


def _output_twice() -> None:
    app = shop.shop()
    orders(app).to("copy")
    orders(app).to("copy")


def _argument_calls() -> list[Wrong]:
    app = shop.shop()
    table = functools.partial(app.table, "t")
    return [
        *[
            (f"service name {name!r}", DefinitionError, functools.partial(es.Service, name))
            for name in ("", "../x", 5, None, "a b", "-a", "x" * 101, b"a", "a/b", ".hidden")
        ],
        *[
            (f"shards {n!r}", DefinitionError, functools.partial(es.Service, "s", shards=n))
            for n in (0, -1, "4", 2.0, True, [1])
        ],
        *[
            (f"on_error {word!r}", DefinitionError, functools.partial(es.Service, "s", on_error=word))
            for word in ("ignore", "dead_letter", None, 5, "Fail")
        ],
        *[
            (f"log {place!r}", DefinitionError, functools.partial(es.Service, "s", log=place))
            for place in (5, "", "  ", True)
        ],
        *[
            (f"state_dir {place!r}", DefinitionError, functools.partial(es.Service, "s", state_dir=place))
            for place in (5, "", ["a"])
        ],
        *[
            (f"topic {name!r}", TopicNameError, functools.partial(lambda n: app.table(n, schema=int), name))
            for name in ("", "a/b", "..", ".", "x" * 250, 5, None, b"t", "ä", "a b", ["t"])
        ],
        *[
            (f"to {name!r}", TopicNameError, functools.partial(lambda n: orders().to(n), name))
            for name in ("", "a/b", 5, None, "x" * 247, True, "a\nb")
        ],
        *[
            (f"partitions {n!r}", DefinitionError, functools.partial(lambda n: orders().to("t", partitions=n), n))
            for n in (0, -1, "3", 2.5, True, [3], 3.0)
        ],
        *[
            (f"key {key!r}", SchemaError, functools.partial(lambda k: table(schema=SCHEMA, key=k), key))
            for key in (5, None, "", [], (), ["id", 5], ["id", "id"], ["id", ""], "$key", {"id"}, b"id", True)
        ],
        *[
            (f"key_type {kind!r}", SchemaError, functools.partial(lambda k: table(schema=int, key_type=k), kind))
            for kind in ({"a": int, "b": int}, list[int], "str", 5, object, None, dict[str, int])
        ],
        *[
            (f"key_format {word!r}", SchemaError, functools.partial(lambda f: table(schema=int, key_format=f), word))
            for word in ("number", "json", None, 5, ["text"])
        ],
        *[
            (
                f"key_format of {key}",
                SchemaError,
                functools.partial(lambda k: table(schema={"a": int, "b": float}, key=k, key_format="number"), key),
            )
            for key in (["a", "b"], "b", "c")
        ],
        *[
            (f"format {word!r}", SchemaError, functools.partial(lambda f: table(schema=int, format=f), word))
            for word in ("xml", "JSON", None, 5, "avro", "jsn")
        ],
        *[
            (
                f"keep_history {given!r}",
                DefinitionError,
                functools.partial(lambda g: table(schema=int, keep_history=g), given),
            )
            for given in ("yes", 1, None)
        ],
        *[
            (
                f"stateful {given!r}",
                DefinitionError,
                functools.partial(lambda g: events().apply(shop.two, stateful=g, schema=OUT), given),
            )
            for given in ("yes", 1, None)
        ],
        *[
            (f"on_change {word!r}", DefinitionError, functools.partial(lambda w: orders().to("t", on_change=w), word))
            for word in ("recalc", "migrat", None, True)
        ],
        *[
            (f"how {word!r}", UnsupportedError, functools.partial(lambda w: _join(how=w), word))
            for word in ("innr", "cross", "full", "right", "LEFT", None, 5)
        ],
        *[
            (f"suffix {given!r}", DefinitionError, functools.partial(lambda g: _join(suffix=g), given))
            for given in ("", 5, None)
        ],
        *[
            (f"config default {value!r}", SchemaError, functools.partial(app.config, "least", value))
            for value in (None, [1], {"a": 1}, timedelta(1), b"x")
        ],
        *[(f"config name {name!r}", DefinitionError, functools.partial(app.config, name, 1)) for name in (5, None, "")],
        *[
            (f"top_k {k!r}", DefinitionError, functools.partial(es.top_k, "amount", k))
            for k in (0, -1, "3", 2.0, True, None)
        ],
        *[
            (f"quantile {q!r}", DefinitionError, functools.partial(es.quantile, "amount", q))
            for q in (2, -0.1, "0.5", None, True, float("nan"))
        ],
        *[(f"collect of {part!r}", SchemaError, functools.partial(es.collect, part)) for part in (5, None, ["amount"])],
        ("median of a number", SchemaError, lambda: es.median(5)),
        ("string format of an object", SchemaError, lambda: orders().to("t", format="string")),
        ("bytes format of text", SchemaError, lambda: table(schema=str, format="bytes")),
        ("number format of text", SchemaError, lambda: table(schema=str, format="number")),
        ("number format of an object", SchemaError, lambda: orders().to("t", format="number")),
        ("Avro as a class", SchemaError, lambda: table(schema={"n": int}, format=es.Avro)),
        ("Avro by its word", SchemaError, lambda: table(schema={"n": int}, format="avro")),
        ("Avro with a password in its address", ConfigurationError, lambda: es.Avro("http://ada:hunter2@registry")),
        ("Avro at no address", SchemaError, lambda: es.Avro(8081)),
        ("Avro of a name that it does not allow", SchemaError, lambda: table(schema={"a b": int}, format=es.Avro())),
        ("Protobuf of a text", SchemaError, lambda: es.Protobuf("orders.proto")),
        ("Protobuf without a message", CallError, es.Protobuf),
        (
            "Protobuf of a field that is not there",
            SchemaError,
            lambda: table(schema={"n": int}, format=es.Protobuf(Int64Value)),
        ),
        ("Protobuf of a scalar", SchemaError, lambda: table(schema=int, format=es.Protobuf(Int64Value))),
        ("key that is the value", SchemaError, lambda: table(schema=str, key="value")),
        ("key that is a list", SchemaError, lambda: table(schema=SCHEMA, key="tags")),
        ("declare version that is a number", DefinitionError, lambda: es.declare(version=2)),
        ("declare files that is a text", DefinitionError, lambda: es.declare(files="rates.csv")),
        ("declare files of numbers", DefinitionError, lambda: es.declare(files=[5])),
        ("declare environment of numbers", DefinitionError, lambda: es.declare(environment=[5])),
        ("declare clock that is text", DefinitionError, lambda: es.declare(clock="yes")),
        ("declare network that is true", DefinitionError, lambda: es.declare(network=True)),
        ("topic read with another key format", NameClashError, _read_with_key_formats),
        ("topic read as a scalar", NameClashError, lambda: _two_readings(key="k", schema=str)),
        ("topic read with another key", NameClashError, lambda: _two_readings(key="customer")),
        ("topic read with another type", NameClashError, lambda: _two_readings(schema={**SCHEMA, "amount": int})),
        ("output twice", NameClashError, _output_twice),
        ("output that is its source", DefinitionError, lambda: orders().to("orders")),
        (
            "output that is another's dead letters",
            NameClashError,
            lambda: ((t := orders()).to("a"), t.to("a.dlq")),
        ),
        ("join with another service's table", UnsupportedError, lambda: orders().join(orders())),
        ("join on with another service's table", UnsupportedError, lambda: orders().join(orders(), on="customer")),
        ("merge with another service's stream", UnsupportedError, lambda: events().merge(events())),
        ("join with a stream", UnsupportedError, lambda: (t := orders()).join(events(t.service))),
        ("join with text", UnsupportedError, lambda: orders().join("people")),
        ("join with None", UnsupportedError, lambda: orders().join(None)),
        ("merge with a table", UnsupportedError, lambda: (s := events()).merge(orders(s.service))),
        ("merge with text", UnsupportedError, lambda: events().merge("x")),
        ("merge with a list", UnsupportedError, lambda: (s := events()).merge([s])),
        ("merge with nothing", SchemaError, lambda: events().merge()),
        ("merge of tables", UnsupportedError, lambda: orders().merge(orders())),
        ("flat_map of a table", UnsupportedError, lambda: orders().flat_map(shop.one)),
        ("join with a schema and no joiner", UnsupportedError, lambda: _join(schema=OUT)),
        ("join on nothing", SchemaError, lambda: _join(on=[])),
        ("join on a number", FunctionError, lambda: _join(on=5)),
        ("join on an unknown column", UnknownColumnError, lambda: _join(on="x")),
        ("join on another type", SchemaError, lambda: _join(on="amount")),
        ("join on two columns of one", SchemaError, lambda: _join(on=["id", "customer"])),
        ("outer foreign-key join", UnsupportedError, lambda: _join(on="customer", how="outer")),
        ("join of keys that are written otherwise", SchemaError, _join_of_key_formats),
        ("group by a text as a number", SchemaError, lambda: orders().group_by("customer", key_format="number")),
        ("join of unlike keys", SchemaError, lambda: (t := orders()).join(t.rekey("amount"))),
        ("group by nothing", SchemaError, lambda: orders().group_by()),
        ("group by a number", SchemaError, lambda: orders().group_by(5)),
        ("group by None", SchemaError, lambda: orders().group_by(None)),
        ("group by an unknown column", UnknownColumnError, lambda: orders().group_by("region")),
        ("group by a list", SchemaError, lambda: orders().group_by("tags")),
        ("group by with a key type", UnsupportedError, lambda: orders().group_by("customer", key_type=int)),
        ("group by with a name", UnsupportedError, lambda: orders().group_by("customer", name="x")),
        ("group by a function of a wrong type", SchemaError, lambda: orders().group_by(shop.one, key_type=object)),
        ("group by a function of a wrong name", SchemaError, lambda: orders().group_by(shop.one, name="$x")),
        ("group by a function and a column", SchemaError, lambda: orders().group_by(shop.one, "customer")),
        ("rekey to nothing", SchemaError, lambda: orders().rekey()),
        ("agg of nothing", SchemaError, lambda: _group().agg()),
        ("agg of a number", SchemaError, lambda: _group().agg(5)),
        ("agg of a named number", SchemaError, lambda: _group().agg(total=5)),
        ("agg of text", SchemaError, lambda: _group().agg("amount")),
        ("agg of a function", SchemaError, lambda: _group().agg(total=sum)),
        ("agg name that is the group", NameClashError, lambda: _group().agg(customer=es.count())),
        ("agg name twice", NameClashError, lambda: _group().agg(es.count(), es.count())),
        ("agg reserved name", SchemaError, lambda: _group().agg(**{"$n": es.count()})),
        ("select nothing", SchemaError, lambda: orders().select()),
        ("select a number", SchemaError, lambda: orders().select(5)),
        ("select an unknown column", UnknownColumnError, lambda: orders().select("amuont")),
        ("select a reserved name", SchemaError, lambda: orders().select(**{"$x": col("amount")})),
        ("select a name twice", DefinitionError, lambda: orders().select("amount", amount=col("amount") * 2)),
        ("with_columns a value", SchemaError, lambda: orders().with_columns(total=5)),
        ("with_columns the key", UnsupportedError, lambda: orders().with_columns(id=col("customer"))),
        ("rename a list", SchemaError, lambda: orders().rename(["a"])),
        ("rename a text", SchemaError, lambda: orders().rename("a")),
        ("rename an unknown column", UnknownColumnError, lambda: orders().rename({"x": "y"})),
        ("rename to a number", SchemaError, lambda: orders().rename({"amount": 5})),
        ("rename to nothing", SchemaError, lambda: orders().rename({"amount": ""})),
        ("rename to a reserved name", SchemaError, lambda: orders().rename({"amount": "$ts"})),
        ("rename the key to a reserved name", SchemaError, lambda: orders().rename({"id": "$key"})),
        ("rename onto another", NameClashError, lambda: orders().rename({"amount": "customer"})),
        ("drop nothing", SchemaError, lambda: orders().drop()),
        ("drop a number", UnknownColumnError, lambda: orders().drop(5)),
        ("drop an unknown column", UnknownColumnError, lambda: orders().drop("x")),
        ("branch of nothing", DefinitionError, lambda: orders().branch()),
        ("branch of a number", FunctionError, lambda: orders().branch(5)),
        ("filter by a number", FunctionError, lambda: orders().filter(5)),
        ("filter by None", FunctionError, lambda: orders().filter(None)),
        ("filter by a list", FunctionError, lambda: orders().filter([col("amount") > 1])),
        ("filter by Python's truth", FunctionError, lambda: orders().filter(True)),
        ("update of a scalar", UnsupportedError, lambda: numbers().update(shop.one)),
        ("stateful on a table", UnsupportedError, lambda: orders().apply(shop.two, stateful=True)),
        ("to a key of a scalar", UnsupportedError, lambda: numbers().to("t", key="value")),
        ("to an unknown key", UnknownColumnError, lambda: events().to("t", key="x")),
        ("to a key that is a number", SchemaError, lambda: events().to("t", key=5)),
    ]


def _option_calls() -> list[Wrong]:
    app = shop.shop()
    return [
        ("service without a name", CallError, es.Service),
        ("service with an unknown option", CallError, lambda: es.Service("s", shard=2)),
        ("service with too many", CallError, lambda: es.Service("s", "./log")),
        ("table without a schema", CallError, lambda: app.table("t")),
        ("table without anything", CallError, app.table),
        ("table with a schema by place", CallError, lambda: app.table("t", {"a": int})),
        ("table with a misspelt option", CallError, lambda: app.table("t", kye="id", schema=SCHEMA)),
        ("stream with a misspelt option", CallError, lambda: app.stream("t", schmea=SCHEMA)),
        ("filter without a condition", CallError, lambda: orders().filter()),
        ("filter with two", CallError, lambda: orders().filter(col("amount") > 1, col("amount") > 2)),
        ("filter by a keyword", CallError, lambda: orders().filter(amount=5)),
        ("map without a function", CallError, lambda: orders().map()),
        ("map with an unknown option", CallError, lambda: orders().map(shop.one, returns=OUT)),
        ("join without a table", CallError, lambda: orders().join()),
        ("join with left_on", CallError, lambda: _join(left_on="id", right_on="id")),
        ("to without a topic", CallError, lambda: orders().to()),
        ("table to with a key", CallError, lambda: orders().to("t", key="id")),
        ("to with a misspelt option", CallError, lambda: orders().to("t", partition=3)),
        ("stream to with a misspelt option", CallError, lambda: events().to("t", partition=3)),
        ("stream to with a key and a misspelt option", CallError, lambda: events().to("t", key="id", partition=3)),
        ("reduce without a function", CallError, lambda: _group().reduce()),
        ("aggregate without add", CallError, lambda: _group().aggregate(dict)),
        ("aggregate with an unknown option", CallError, lambda: _group().aggregate(dict, shop.two, initial=5)),
        ("rename by keywords", CallError, lambda: orders().rename(amount="total")),
        ("peek without a function", CallError, lambda: orders().peek()),
        ("drop by keyword", CallError, lambda: orders().drop(columns=["amount"])),
        ("apply with an unknown option", CallError, lambda: events().apply(shop.one, schema=OUT, state=True)),
        ("table apply with migrate", CallError, lambda: orders().apply(shop.one, schema=OUT, migrate=shop.one)),
        ("count of a column", CallError, lambda: es.count("amount")),
        ("top_k without k", CallError, lambda: es.top_k("amount")),
        ("quantile without q", CallError, lambda: es.quantile("amount")),
        ("collect of two", CallError, lambda: es.collect("a", "b")),
        ("config without a default", CallError, lambda: app.config("least")),
        ("declare of a function", CallError, lambda: es.declare(shop.one)),
        ("declare with an unknown option", CallError, lambda: es.declare(file="rates.csv")),
        ("run with an unknown setting", ConfigurationError, lambda: app.run(onec=True)),
        ("run with a setting of a wrong type", ConfigurationError, lambda: app.run(once=True, trigger="soon")),
        ("run with a plan that is a number", ConfigurationError, lambda: app.run(once=True, plan=5)),
        ("run with a plan that is not there", ConfigurationError, lambda: app.run(once=True, plan="/nowhere")),
        ("run once that is text", DefinitionError, lambda: app.run(once="yes")),
        ("run with a place", CallError, lambda: app.run(True)),
        ("driver without a service", CallError, es.testing.Driver),
        ("driver with an unknown option", CallError, lambda: es.testing.Driver(app, partition=2)),
        ("send without a value", CallError, lambda: driver().send("orders", "o1")),
        ("send with a misspelt option", CallError, lambda: driver().send("orders", "o1", None, timestamp=5)),
    ]


WRONG_ARGUMENTS: list[Wrong] = [*_argument_calls(), *_option_calls()]
