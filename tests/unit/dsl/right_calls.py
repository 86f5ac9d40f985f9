"""Calls that look like wrong ones and are right. A table for `test_wrong_calls.py`."""

from __future__ import annotations

import functools
import typing
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Optional

import polars as pl
import pyarrow as pa

import everstate as es
from everstate import col
from tests.unit.dsl import shop
from tests.unit.dsl.shop import OUT, SCHEMA, events, numbers, orders, people

Right = tuple[str, Any]


def _group() -> Any:
    return orders().group_by("customer")


def _join(**options: Any) -> Any:
    table = orders()
    return table.join(people(table), **options)


def _items(row: dict[str, Any]) -> Iterator[shop.Item]:
    yield shop.Item("a", 1.0)


_OF_A_ROW: dict[str, Any] = {
    "function": shop.one,
    "lambda": lambda row: 1.0,
    "default": shop.with_default,
    "any number": shop.variadic,
    "any number and names": lambda *args, **named: 1.0,
    "partial": shop.partial_of_two,
    "partial by name": functools.partial(shop.named_too, rate=2.0),
    "bound method": shop.Methods().one,
    "static method": shop.Methods.static,
    "class method": shop.Methods.made,
    "object": shop.CallsOne(),
    "builtin": len,
    "builtin without a signature": str,
    "class of one": shop.Total,
    "method of a type": dict.keys,
}


def _send(schema: Any, value: Any, expected: Any = None, **source: Any) -> None:
    app = es.Service("s")
    app.table("t", key=source.pop("key", "k"), schema=schema, **source).to("copy")
    driver = es.testing.Driver(app)
    driver.send("t", source.get("sent", "k1"), value)
    assert driver.records("copy.dlq") == [], driver.records("copy.dlq")
    (found,) = driver.table("copy").values()
    assert found == (value if expected is None else expected), found


def _send_key(kind: Any, key: Any, found: Any = None) -> None:
    app = es.Service("s")
    app.table("t", key="k", key_type=kind, schema=int).to("copy")
    driver = es.testing.Driver(app)
    driver.send("t", key, 5)
    assert driver.table("copy") == {key if found is None else found: 5}


def _send_composite() -> None:
    app = es.Service("s")
    app.table("t", key=["day", "n"], schema={"day": date, "n": int, "x": float}).to("copy")
    driver = es.testing.Driver(app)
    driver.send("t", (date(2024, 5, 1), 7), {"x": 1.5})
    driver.send("t", [date(2024, 5, 2), 8], {"x": 2.5})
    assert driver.table("copy") == {(date(2024, 5, 1), 7): {"x": 1.5}, (date(2024, 5, 2), 8): {"x": 2.5}}


def _send_unfit() -> None:
    app = es.Service("s")
    app.table("t", key="k", schema={"a": int, "at": datetime}).to("copy")
    driver = es.testing.Driver(app)
    driver.send("t", "k1", {"a": "no number", "at": MOMENT})
    (letter,) = driver.records("copy.dlq")
    assert "'a'" in letter.value["reason"]


def _same_topic_twice() -> None:
    app = shop.shop()
    orders(app).to("one")
    orders(app).to("two")
    app.stream("orders", key="id", schema=SCHEMA).to("three", key="id")
    app.table("orders", key="id", schema={"id": str, "more": int}).to("four")


MOMENT = datetime(2024, 5, 1, 10, 30, tzinfo=UTC)
EVERYTHING = shop.Everything(
    "a", 1, 1.5, True, b"\x00\xff", MOMENT, date(2024, 5, 1), timedelta(seconds=5), Decimal("1.5")
)

RIGHT_CALLS: list[Right] = [
    ("suppress for a time", lambda: orders().suppress("10m", max_keys=0, when_full="fail")),
    ("suppress for a timedelta", lambda: orders().suppress(until=timedelta(minutes=10))),
    ("suppress up to a number", lambda: orders().suppress(max_keys=1000)),
    *[
        (f"map: {word}", functools.partial(lambda fn: orders().map(fn, schema=OUT), fn))
        for word, fn in _OF_A_ROW.items()
    ],
    *[(f"filter: {word}", functools.partial(lambda fn: orders().filter(fn), fn)) for word, fn in _OF_A_ROW.items()],
    ("map: annotated partial", lambda: orders().map(shop.partial_of_two)),
    ("map: annotated object", lambda: orders().map(shop.CallsOne())),
    ("peek: print", lambda: orders().peek(print)),
    ("flat_map: a generator", lambda: events().flat_map(shop.yielding, schema=OUT)),
    ("flat_map: an annotated generator", lambda: events().flat_map(_items)),
    ("stateful: two", lambda: events().apply(shop.two, stateful=True)),
    ("stateful: any number", lambda: events().apply(shop.variadic, stateful=True)),
    ("stateful: bound method of two", lambda: events().apply(shop.Methods().two, stateful=True)),
    ("aggregate: classes as init", lambda: _group().aggregate(dict, shop.two, schema=OUT)),
    ("aggregate: dataclass as init", lambda: _group().aggregate(lambda: shop.Total(0.0), shop.two, schema=shop.Total)),
    ("aggregate: int as init", lambda: _group().aggregate(int, lambda total, row: total + 1, schema=int)),
    ("reduce: max", lambda: _group().reduce(max)),
    ("joiner: any number", lambda: _join(joiner=shop.variadic)),
    ("group by a list of names", lambda: orders().group_by(["customer", "amount"]).agg(n=es.count())),
    ("group by a function", lambda: orders().group_by(shop.one, key_type=float, name="bucket").agg(n=es.count())),
    ("select a list", lambda: orders().select(["amount", "customer"])),
    ("drop a list", lambda: orders().drop(["amount"])),
    ("join left", lambda: _join(how="left")),
    ("join on a function", lambda: _join(on=lambda row: row["customer"])),
    ("join on a list of one", lambda: _join(on=["customer"])),
    ("join with itself", lambda: (t := orders()).join(t)),
    ("one topic read twice alike", _same_topic_twice),
    ("service with a path", lambda: es.Service("s", log=Path("x"), state_dir=Path("y"), shards=2)),
    ("partitions", lambda: orders().to("t", partitions=3)),
    ("composite key", lambda: es.Service("s").table("t", key=["a", "b"], schema={"a": int, "b": str, "c": int})),
    ("keys as numbers", lambda: es.Service("s").table("t", key="k", key_type=int, key_format="number", schema=str)),
    (
        "group by what is written as a number",
        lambda: orders().group_by(size=es.col("amount").cast(int), key_format="number").agg(n=es.count()),
    ),
    ("key outside the schema", lambda: es.Service("s").table("t", key="k", key_type=int, schema=str)),
    ("schema: Optional", lambda: es.Service("s").table("t", schema={"a": Optional[int], "b": None | str})),  # noqa: UP045
    ("schema: typing.List of", lambda: es.Service("s").table("t", schema={"a": typing.List[int]})),  # noqa: UP006
    (
        "schema: Annotated",
        lambda: es.Service("s").table("t", schema={"a": Annotated[int, "x"], "b": list[shop.Meters]}),
    ),
    ("schema: NewType", lambda: es.Service("s").table("t", schema={"a": shop.Identity})),
    ("schema: nested dataclasses", lambda: es.Service("s").table("t", schema=shop.Nested)),
    ("schema: TypedDict", lambda: es.Service("s").table("t", schema=shop.Document)),
    ("schema: nested dict", lambda: es.Service("s").table("t", schema={"a": {"b": {"c": int}}})),
    ("schema: one class twice", lambda: es.Service("s").table("t", schema={"a": shop.Item, "b": list[shop.Item]})),
    ("schema: Polars", lambda: es.Service("s").table("t", schema=pl.Schema({"a": pl.Int32, "b": pl.List(pl.String)}))),
    ("schema: Arrow", lambda: es.Service("s").table("t", schema=pa.schema([("a", pa.int32())]))),
    ("schema: everything", lambda: es.Service("s").table("t", schema=shop.Everything)),
    ("config of every type", lambda: [shop.shop().config("x", value) for value in ("a", 1, 1.5, True)]),
    ("declare all", lambda: es.declare(clock=True, files=[Path("a")], environment=("B",), network="c", version="1")),
    ("top_k by", lambda: _group().agg(x=es.top_k("amount", 2, by=col("amount")))),
    ("quantile at the ends", lambda: _group().agg(x=es.quantile("amount", 0), y=es.quantile("amount", 1))),
    ("send a dataclass", lambda: _send(shop.Everything, EVERYTHING, vars(EVERYTHING))),
    ("send a dict of everything", lambda: _send(shop.Everything, vars(EVERYTHING))),
    (
        "send a field that the schema lacks",
        lambda: _send({"a": int}, {"a": 1, "at": MOMENT, "id": Decimal(5)}, {"a": 1}),
    ),
    ("send a member of an Enum", lambda: _send({"a": str}, {"a": shop.Word.A}, {"a": "a"})),
    ("send a datetime", lambda: _send(datetime, MOMENT)),
    ("send bytes as JSON", lambda: _send(bytes, b"\x00\xff")),
    ("send bytes as bytes", lambda: _send(bytes, b"\x00\xff", format="bytes")),
    ("send a number as bytes", lambda: _send(int, 7, format="number")),
    ("send Avro", lambda: _send({"n": int}, {"n": 7}, format=es.Avro("mock://right"))),
    ("send text as string", lambda: _send(str, "héllo", format="string")),
    ("send NaN", lambda: _send({"a": float}, {"a": float("inf")})),
    ("send a tuple for a list", lambda: _send({"a": list[int]}, {"a": (1, 2)}, {"a": [1, 2]})),
    (
        "send nested dataclasses",
        lambda: _send({"a": shop.Item}, {"a": shop.Item("x", 1.0)}, {"a": vars(shop.Item("x", 1.0))}),
    ),
    ("send what does not fit", _send_unfit),
    ("send a key of text", lambda: _send_key(str, "k")),
    ("send a key of a number", lambda: _send_key(int, 7)),
    ("send a key of a float", lambda: _send_key(float, 0.5)),
    ("send a key of true", lambda: _send_key(bool, True)),
    ("send a key of bytes", lambda: _send_key(bytes, b"\xff")),
    ("send a key of a datetime", lambda: _send_key(datetime, MOMENT)),
    ("send a key of a date", lambda: _send_key(date, date(2024, 5, 1))),
    ("send a key of a duration", lambda: _send_key(timedelta, timedelta(seconds=1))),
    ("send a key of a decimal", lambda: _send_key(Decimal, Decimal("1.5"))),
    ("send a key of several columns", _send_composite),
    ("records of an output without dead letters", lambda: shop.driver().records("valid.dlq")),
    ("update of a row", lambda: orders().update(lambda row: row.update(amount=1.0))),
    ("scalars", lambda: numbers().map(lambda n: n + 1, schema=int).to("next")),
]
