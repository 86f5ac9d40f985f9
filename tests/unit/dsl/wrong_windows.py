"""Windows and times that cannot be right, and their errors. A table for `test_wrong_calls.py`."""

from __future__ import annotations

import functools
from datetime import timedelta
from typing import Any

import everstate as es
from everstate import col
from everstate.errors import (
    AbsentError,
    CallError,
    DefinitionError,
    FunctionError,
    NameClashError,
    SchemaError,
    TopicNameError,
    UnknownColumnError,
    UnsupportedError,
)
from tests.unit.dsl import shop
from tests.unit.dsl.shop import SCHEMA, events, orders

Wrong = tuple[str, type[Exception], Any]


def _of_table(window: Any = None, **options: Any) -> Any:
    return orders().group_by("customer").window(window or es.tumbling("5m"), **options)


def _window(window: Any = None, **options: Any) -> Any:
    return events().group_by("customer").window(window or es.tumbling("5m"), **options)


#: A time that rows of the shop have.
MS = col("amount").cast(int)


def _merged(grouped: Any, merge: Any = shop.two) -> Any:
    return grouped.aggregate(dict, shop.two, schema={"n": int}, merge=merge)


def _timed(time: Any) -> Any:
    return shop.shop().stream("t", key="id", schema=SCHEMA, time=time)


def _joined(**options: Any) -> Any:
    app = shop.shop()
    return events(app).join(app.stream("payments", key="id", schema={"paid": float}), **options)


def _looked_up(table: dict[str, Any] | None = None, **options: Any) -> Any:
    app = shop.shop()
    given = {"key": "id", "schema": {"name": str}, **(table or {})}
    return events(app).join(app.table("names", **given), **options)


def _shops(app: Any = None, **options: Any) -> Any:
    return (app or shop.shop()).global_table("shops", **{"key": "shop", "schema": {"city": str}, **options})


def _with_shops(on: Any, **options: Any) -> Any:
    stream = events()
    return stream.join(_shops(stream.service, **options), on=on)


def _with_table(table: Any) -> Any:
    return events(table.service).join(table, within="1h")


def _other_keys() -> Any:
    app = shop.shop()
    return events(app).join(app.stream("p", key="n", key_type=int, schema={"paid": float}), within="1h")


def _two_times() -> None:
    app = shop.shop()
    app.stream("t", schema={"a": int, "b": int}, time="a")
    app.stream("t", schema={"a": int, "b": int}, time="b")


def _source(kind: str = "stream", **options: Any) -> Any:
    return getattr(shop.shop(), kind)("t", key="id", schema={"n": int}, **options)


def _two_patiences() -> None:
    app = shop.shop()
    app.stream("t", schema={"a": int}, idle_after="1m")
    app.stream("t", schema={"a": int}, idle_after="2m")


WRONG_WINDOWS: list[Wrong] = [
    *[
        (f"tumbling of {size!r}", DefinitionError, functools.partial(es.tumbling, size))
        for size in ("", "5", "0s", 300, None, "five minutes", "-5m", timedelta(0), timedelta(microseconds=5))
    ],
    *[
        (f"{window.__name__} of {size!r}", DefinitionError, functools.partial(window, size))
        for window, size in (
            (es.tumbling, "53w" * 1000),
            (es.sliding, "9223372036854775807ms"),
            (es.session, "9223372036854775807ms"),
            (es.session, "9" * 5000 + "d"),
        )
    ],
    ("tumbling with grace beyond all numbers", DefinitionError, lambda: es.tumbling("5m", grace="99999999999w")),
    *[
        (f"{what} that lasts for {text}", DefinitionError, functools.partial(call, text))
        for text in ("3000000d", "99999999999999999999d")
        for what, call in (("tumbling", es.tumbling), ("sliding", es.sliding))
    ],
    ("hopping for longer than time", DefinitionError, lambda: es.hopping("3000000d", "1d")),
    ("grace for longer than time", DefinitionError, lambda: es.tumbling("5m", grace="106751991167d")),
    ("dedup for longer than time", DefinitionError, lambda: events().dedup(within="106751991167d")),
    ("expire after longer than time", DefinitionError, lambda: orders().expire(after="106751991167d")),
    ("history for longer than time", DefinitionError, lambda: _looked_up({"history": "106751991167d"})),
    ("tumbling with a wrong grace", DefinitionError, lambda: es.tumbling("5m", grace="soon")),
    ("tumbling with a misspelt option", CallError, lambda: es.tumbling("5m", grase="1m")),
    ("hopping without advance", CallError, lambda: es.hopping("5m")),
    ("hopping that leaves gaps", DefinitionError, lambda: es.hopping("5m", "10m")),
    ("sliding of nothing", DefinitionError, lambda: es.sliding("0s")),
    ("sliding with advance", CallError, lambda: es.sliding("5m", advance="1m")),
    ("session of a number", DefinitionError, lambda: es.session(30)),
    ("window of a table without time", UnsupportedError, _of_table),
    ("window of a table that is final", UnsupportedError, lambda: _of_table(time="amount", emit="final")),
    ("window of a table that is kept", UnsupportedError, lambda: _of_table(time="amount", keep="1d")),
    ("window of a table with late rows", UnsupportedError, lambda: _of_table(time="amount", late_to="late-orders")),
    ("window of a table with grace", UnsupportedError, lambda: _of_table(es.tumbling("5m", grace="1m"), time="amount")),
    ("window of a table by text", SchemaError, lambda: _of_table(time="customer")),
    ("window of a stream by a column", UnsupportedError, lambda: _window(time=col("amount"))),
    ("window that is text", DefinitionError, lambda: _window("5m")),
    ("window with an unknown emit", DefinitionError, lambda: _window(emit="end")),
    ("window with late rows to no topic", TopicNameError, lambda: _window(late_to="late/orders")),
    ("window with late rows to its own output", NameClashError, lambda: _late("per-5m")),
    ("window with late rows to the dead letters", NameClashError, lambda: _late("per-5m.dlq")),
    ("window with late rows to its source", DefinitionError, lambda: _late("events")),
    ("windows with late rows to one topic", NameClashError, lambda: _late("late", times=2)),
    ("window kept for no time", DefinitionError, lambda: _window(keep="0s")),
    ("window kept for less than grace", DefinitionError, lambda: _window(es.tumbling("5m", grace="1h"), keep="1m")),
    ("window of a group called as its own", NameClashError, lambda: _named("window_start")),
    ("window within a window", AbsentError, lambda: _window().window(es.tumbling("5m"))),
    ("window then suppress", AbsentError, lambda: _window().suppress("5m")),
    ("window of a column", UnsupportedError, lambda: _window()["amount"]),
    ("window one by one", UnsupportedError, lambda: list(_window())),
    ("window aggregated with remove", FunctionError, lambda: _window().aggregate(dict, shop.two, shop.two)),
    ("merge for a window of one size", UnsupportedError, lambda: _merged(_window())),
    ("merge for sliding windows", UnsupportedError, lambda: _merged(_window(es.sliding("5m")))),
    (
        "merge for sessions of a table",
        UnsupportedError,
        lambda: _merged(_of_table(es.session("5m"), time=col("amount").cast(int))),
    ),
    ("merge with one argument", FunctionError, lambda: _merged(_window(es.session("5m")), shop.one)),
    ("merge that is no function", FunctionError, lambda: _merged(_window(es.session("5m")), "sum")),
    ("window without an aggregate", SchemaError, lambda: _window().agg()),
    ("window with an aggregate called as its key", NameClashError, lambda: _window().agg(window_end=es.count())),
    ("window reduced with remove", CallError, lambda: _window().reduce(shop.two, shop.two)),
    ("window then filter", AbsentError, lambda: _window().filter(col("amount") > 1)),
    ("stream join without within", DefinitionError, _joined),
    ("stream join on a column", UnsupportedError, lambda: _joined(within="1h", on="amount")),
    ("table join within", UnsupportedError, lambda: _looked_up(within="1h")),
    ("table join with grace", UnsupportedError, lambda: _looked_up(grace="1h")),
    ("table join with a wrong grace", DefinitionError, lambda: _looked_up({"history": "1h"}, grace="soon")),
    ("table join with an unknown how", UnsupportedError, lambda: _looked_up(how="outer")),
    ("table join on an unknown column", UnknownColumnError, lambda: _looked_up(on="amuont")),
    ("table join on a number", FunctionError, lambda: _looked_up(on=5)),
    ("table join on a dict", FunctionError, lambda: _looked_up(on={"customer": "id"})),
    ("table join on a function of two", FunctionError, lambda: _looked_up(on=shop.two)),
    ("table join with grace after a step", UnsupportedError, lambda: _filtered_history()),  # noqa: PLW0108 - below
    ("table join on another type", SchemaError, lambda: _looked_up(on="amount")),
    ("table join of other keys", SchemaError, lambda: _looked_up({"key_type": int})),
    ("table join with a schema and no joiner", UnsupportedError, lambda: _looked_up(schema=int)),
    ("table with a wrong history", DefinitionError, lambda: _looked_up({"history": "long"})),
    ("table that is versioned by a word", DefinitionError, lambda: _looked_up({"versioned": "yes"})),
    ("global table of another service", UnsupportedError, lambda: events().join(_shops())),
    ("global table joined with an unknown how", UnsupportedError, lambda: events(shop.shop()).join(_shops(), how="x")),
    ("global table that joins", AbsentError, lambda: _shops().join(orders())),
    ("global table filtered", AbsentError, lambda: _shops().filter(col("city") == "Oslo")),
    ("global table published", AbsentError, lambda: _shops().to("shops2")),
    ("global table by a function of several columns", SchemaError, lambda: _with_shops(shop.one, key=["a", "b"])),
    ("global table by another type", SchemaError, lambda: _with_shops("amount")),
    ("stream join within a number", DefinitionError, lambda: _joined(within=5)),
    ("stream join within three", DefinitionError, lambda: _joined(within=("1s", "2s", "3s"))),
    ("stream join with an unknown how", UnsupportedError, lambda: _joined(within="1h", how="right")),
    ("stream join with a wrong grace", DefinitionError, lambda: _joined(within="1h", grace="soon")),
    ("stream join with a table", UnsupportedError, lambda: (t := orders()).service and _with_table(t)),
    ("stream join of other keys", SchemaError, _other_keys),
    ("dedup by an unknown column", UnknownColumnError, lambda: events().dedup("event", within="1h")),
    ("dedup by a function", UnsupportedError, lambda: events().dedup(lambda row: row["id"], within="1h")),
    ("dedup by nothing", SchemaError, lambda: events().dedup([], within="1h")),
    ("dedup without a time", CallError, lambda: events().dedup("customer")),
    ("dedup within no time", DefinitionError, lambda: events().dedup("customer", within="0s")),
    ("dedup of a table", AbsentError, lambda: orders().dedup("customer", within="1h")),
    ("expire without a time", CallError, lambda: orders().expire()),
    ("expire after no time", DefinitionError, lambda: orders().expire(after="0s")),
    ("expire after a number", DefinitionError, lambda: orders().expire(after=7)),
    ("expire by an unknown clock", DefinitionError, lambda: orders().expire(after="7d", clock="sun")),
    ("expire of a stream", AbsentError, lambda: events().expire(after="7d")),
    ("Kafka's keys without windows", DefinitionError, lambda: _kafka_keys(orders())),
    ("Kafka's keys under another key", DefinitionError, lambda: _kafka_keys(_counted().rekey(n=col("n")))),
    ("keys of an unknown form", DefinitionError, lambda: _counted().to("out", key_format="avro")),
    ("Kafka's keys of no window", SchemaError, lambda: _read_windows()),  # noqa: PLW0108 - it is defined below
    ("Kafka's keys by a function", SchemaError, lambda: _read_windows(key_format=es.tumbling)),
    (
        "Kafka's keys with bounds of another type",
        SchemaError,
        lambda: _read_windows(("customer", "n", "end"), es.tumbling("5m")),
    ),
    ("Kafka's keys without a group", SchemaError, lambda: _read_windows(("start", "end"), es.tumbling("5m"))),
    ("suppress without anything", DefinitionError, lambda: orders().suppress()),
    ("suppress until an expression", DefinitionError, lambda: orders().suppress(until=col("amount"))),
    ("suppress until some day", DefinitionError, lambda: orders().suppress(until="some day")),
    ("suppress until the close of nothing", UnsupportedError, lambda: orders().suppress(until="close")),
    ("suppress until close of a table's window", UnsupportedError, lambda: _daily().suppress(until="close")),
    ("suppress until close with a limit", UnsupportedError, lambda: _counted().suppress(until="close", max_keys=5)),
    ("suppress with a wrong limit", DefinitionError, lambda: orders().suppress(until="1m", max_keys=-1)),
    ("suppress with a wrong end", DefinitionError, lambda: orders().suppress(until="1m", when_full="stop")),
    ("suppress on a stream", AbsentError, lambda: events().suppress(until="1m")),
    ("time of an unknown column", UnknownColumnError, lambda: _timed("when")),
    ("time that is text", SchemaError, lambda: _timed("customer")),
    ("time that is a float", SchemaError, lambda: _timed(col("amount"))),
    ("time that is a number", SchemaError, lambda: _timed(5)),
    ("time of a table", CallError, lambda: shop.shop().table("t", key="id", schema=SCHEMA, time="amount")),
    ("one topic with two times", NameClashError, _two_times),
    ("idle after no time", DefinitionError, lambda: _source(idle_after="0s")),
    ("idle after a number", DefinitionError, lambda: _source(idle_after=60)),
    ("idle table after some day", DefinitionError, lambda: _source("table", idle_after="some day")),
    ("missing time that is unknown", DefinitionError, lambda: _source(time="n", on_missing_time="now")),
    ("missing time without a time", DefinitionError, lambda: _source(on_missing_time="record")),
    ("one topic with two patiences", NameClashError, _two_patiences),
]


def _counted() -> Any:
    return _window().agg(n=es.count())


def _daily() -> Any:
    return _of_table(time=col("amount").cast(int)).agg(n=es.count())


def _late(topic: str, times: int = 1) -> None:
    counted = _window(late_to=topic).agg(n=es.count())
    for number in range(times):
        counted.to("per-5m" if number == 0 else f"per-5m-{number}")


def _named(name: str) -> Any:
    return events().group_by(col("customer").alias(name)).window(es.tumbling("5m")).agg(n=es.count())


def _kafka_keys(flow: Any) -> Any:
    return flow.to("out", key_format="kafka-windowed")


def _filtered_history() -> Any:
    app = shop.shop()
    names = app.table("names", key="id", schema={"name": str}, history="1d")
    return events(app).join(names.filter(col("name") != ""), grace="1m")


def _read_windows(key: Any = ("customer", "start", "end"), key_format: Any = "5m") -> Any:
    return shop.shop().table("t", key=key, schema={"n": int}, key_format=key_format)


RIGHT_WINDOWS = [
    ("stream that passes over quiet partitions", lambda: _source(idle_after="1m30s")),
    ("stream idle after a timedelta", lambda: _source(idle_after=timedelta(minutes=1))),
    ("table that passes over quiet partitions", lambda: _source("table", idle_after="1m")),
    ("missing time from the record", lambda: _source(time="n", on_missing_time="record")),
    ("missing time to the dead letters", lambda: _source(time="n", on_missing_time="dead-letter")),
    ("expire by the wall clock", lambda: orders().expire(after="7d", clock="wall")),
    ("Kafka's keys of windows", lambda: _kafka_keys(_counted().filter(col("n") > 1))),
    ("Kafka's keys of a table's sessions", lambda: _kafka_keys(_daily())),
    ("Kafka's keys read", lambda: _kafka_keys(_read_windows(key_format=es.session("5m")))),
    ("tumbling for an age", lambda: _window(es.tumbling("300000d", grace="36500d")).agg(n=es.count())),
    ("dedup for an age", lambda: events().dedup(within="100000000d")),
    ("window of a timedelta", lambda: _window(es.tumbling(timedelta(minutes=5), grace=timedelta(0))).agg(n=es.count())),
    ("window kept as long as grace", lambda: _window(es.tumbling("5m", grace="1h"), keep="60m").agg(n=es.count())),
    ("window of a table by a column", lambda: _of_table(time=col("amount").cast(int)).agg(n=es.count())),
    ("session of a table", lambda: _of_table(es.session("5m"), time=col("amount").cast(int)).reduce(max)),
    ("hopping by its size", lambda: _window(es.hopping("5m", "5m")).reduce(max)),
    ("stream join", lambda: _joined(within=("0s", timedelta(hours=1)), how="outer")),
    ("table join", lambda: _looked_up(how="left")),
    ("table join on an expression", lambda: _looked_up(on=col("customer").str.to_lowercase())),
    ("table join with a history", lambda: _looked_up({"history": timedelta(days=1)}, grace=timedelta(0))),
    ("table join of a versioned table", lambda: _looked_up({"versioned": True}, joiner=lambda a, b: 1, schema=int)),
    ("global table by a function", lambda: _with_shops(shop.one)),
    ("global table by a column", lambda: _with_shops("customer")),
    ("dedup by the key", lambda: events().dedup(within=timedelta(hours=1))),
    ("dedup by several", lambda: events().dedup(["customer", col("amount").cast(int)], within="1h")),
    ("expire after a timedelta", lambda: orders().expire(after=timedelta(days=7), clock="event")),
    ("session", lambda: _window(es.session("30m"), emit="final").reduce(max)),
    ("time of whole seconds", lambda: _timed(col("amount").cast(int) * 1000)),
]
