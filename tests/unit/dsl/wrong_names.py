"""Names that are not there, what the test driver refuses, and their errors. Tables for `test_wrong_calls.py`."""

from __future__ import annotations

import functools
from datetime import UTC, datetime
from typing import Any

import everstate as es
from everstate import col
from everstate.errors import (
    AbsentError,
    ConfigurationError,
    DefinitionError,
    RecordError,
    TopicNameError,
    TopicNotFoundError,
    UnsupportedError,
)
from tests.unit.dsl import shop
from tests.unit.dsl.shop import driver, events, orders

Wrong = tuple[str, type[Exception], Any]


def _group(flow: Any = None) -> Any:
    return (flow or orders()).group_by("customer")


_FLOW_NAMES = [
    "groupBy",
    "groupby",
    "GroupBy",
    "mapValues",
    "selectKey",
    "groupByKey",
    "sink",
    "write",
    "writeStream",
    "foreach",
    "print",
    "show",
    "head",
    "collect",
    "toPandas",
    "window",
    "windowed_by",
    "tumbling_window",
    "hopping_window",
    "session_window",
    "agg",
    "aggregate",
    "reduce",
    "count",
    "sum",
    "withColumn",
    "withColumnRenamed",
    "where",
    "selectExpr",
    "cast",
    "explode",
    "fill_null",
    "dropna",
    "sort",
    "orderBy",
    "limit",
    "distinct",
    "dropDuplicates",
    "unique",
    "transform",
    "leftJoin",
    "outerJoin",
    "through",
    "split",
    "withWatermark",
    "columns",
    "printSchema",
    "start",
    "pipe",
    "keyBy",
    "flatMapValues",
    "mean_",
    "filtr",
    "wiht_columns",
    "amount",
    "customer",
]


def _absent_calls() -> list[Wrong]:
    app = shop.shop()
    flows: list[Wrong] = []
    for title, make in (("table", orders), ("stream", events)):
        flows += [
            (f"{title}.{name}", AbsentError, functools.partial(lambda m, n: getattr(m(), n), make, name))
            for name in _FLOW_NAMES
        ]
    others = {
        "stream": (events, "joinLookup union concat toTable transformWithState processValues schedule"),
        "table": (orders, "union concat toStream joinAsof unionAll process"),
        "grouped": (_group, "sum count mean collect head windowedBy to filter aggregat apply len"),
        "service": (
            lambda: app,
            "kstream ktable GlobalKTable dataframe topic readStream sink execute close reset plan tabel",
        ),
        "driver": (driver, "pipeInput readOutput createInputTopic produce store tick delete close dlq sent"),
        "everstate": (
            lambda: es,
            "Application Driver sum mean max udf window Schema len StreamsBuilder collect_list cont",
        ),
    }
    for title, (make, names) in others.items():
        flows += [
            (f"{title}.{name}", AbsentError, functools.partial(lambda m, n: getattr(m(), n), make, name))
            for name in names.split()
        ]
    return [
        *flows,
        ("table[column]", UnsupportedError, lambda: orders()["amount"]),
        ("table[condition]", UnsupportedError, lambda: orders()[col("amount") > 1]),
        ("table[column] = expression", UnsupportedError, lambda: orders().__setitem__("x", col("amount"))),
        ("length of a table", UnsupportedError, lambda: len(orders())),
        ("sum of two tables", UnsupportedError, lambda: orders() + orders()),
        ("two streams in a condition", UnsupportedError, lambda: events() & events()),
        ("table that is compared with a number", UnsupportedError, lambda: orders() > 5),
        ("opposite of a table", UnsupportedError, lambda: ~orders()),
        ("for row in a stream", UnsupportedError, lambda: list(events())),
    ]


def _full_driver(**options: Any) -> Any:
    app = shop.shop()
    orders(app).to("copy")
    return es.testing.Driver(app, **options)


def _removing(topic: str, **options: Any) -> int:
    app = shop.shop()
    orders(app).filter(es.col("amount") > 0).to("valid")
    events(app).filter(es.col("amount") > 0).to("large")
    return es.testing.Driver(app).remove_quiet(topic, **{"after": "7d", **options})


def _driver_calls() -> list[Wrong]:
    return [
        *[
            (f"driver of {thing!r}", ConfigurationError, functools.partial(es.testing.Driver, thing))
            for thing in (None, "shop", 5, es.Service)
        ],
        ("driver of a table", ConfigurationError, lambda: es.testing.Driver(orders())),
        ("driver of a service without outputs", DefinitionError, lambda: es.testing.Driver(es.Service("s"))),
        *[
            (f"driver partitions {n!r}", ConfigurationError, functools.partial(_full_driver, partitions=n))
            for n in (0, -1, "3", True, 2.0, None)
        ],
        *[
            (f"driver shards {n!r}", ConfigurationError, functools.partial(_full_driver, shards=n))
            for n in (0, "2", None)
        ],
        *[
            (f"driver topics {t!r}", ConfigurationError, functools.partial(_full_driver, topics=t))
            for t in (["orders"], "orders", 5)
        ],
        ("driver topics of a wrong name", TopicNameError, lambda: _full_driver(topics={"a/b": {}})),
        *[
            (f"send to {name!r}", TopicNotFoundError, functools.partial(lambda n: driver().send(n, "k", {}), name))
            for name in ("ordres", "", None, 5, "valid")
        ],
        *[
            (f"send key {key!r}", RecordError, functools.partial(lambda k: driver().send("orders", k, {}), key))
            for key in (5, 1.5, ("a", "b"), [], {"id": 1}, datetime(2024, 1, 1, tzinfo=UTC), True)
        ],
        *[
            (
                f"send ts {ts!r}",
                ConfigurationError,
                functools.partial(lambda t: driver().send("orders", "o", {}, ts=t), ts),
            )
            for ts in ("5", 1.5, True, datetime(2024, 1, 1, tzinfo=UTC), 1 << 63)
        ],
        *[
            (
                f"send partition {n!r}",
                ConfigurationError,
                functools.partial(lambda n: driver().send("orders", "o", {}, partition=n), n),
            )
            for n in (1, -1, "0", 99)
        ],
        *[
            (
                f"send headers {h!r}",
                ConfigurationError,
                functools.partial(lambda h: driver().send("orders", "o", {}, headers=h), h),
            )
            for h in ("x", {"a": "b"}, {5: b""}, [("a", b"b")])
        ],
        ("send a value without JSON", RecordError, lambda: driver().send("orders", "o", {"amount": object()})),
        ("send a key that is an object", RecordError, lambda: driver().send("orders", object(), {})),
        ("send a bare object", RecordError, lambda: driver().send("orders", "o", object())),
        ("send a value that holds itself", RecordError, lambda: driver().send("orders", "o", shop.HOLDS_ITSELF)),
        ("tombstone of an unknown topic", TopicNotFoundError, lambda: driver().tombstone("x", "k")),
        ("table of an unknown topic", TopicNotFoundError, lambda: driver().table("x")),
        ("records of an unknown topic", TopicNotFoundError, lambda: driver().records("vaild")),
        ("counts of a source", TopicNotFoundError, lambda: driver().counts("orders")),
        ("advance to text", ConfigurationError, lambda: driver().advance("now")),
        ("advance of the clock to text", ConfigurationError, lambda: driver().advance(clock="now")),
        *[
            (
                f"remove what is quiet for {after!r}",
                DefinitionError,
                functools.partial(lambda after: driver().remove_quiet("valid", after=after), after),
            )
            for after in ("0s", "soon", "", None, 5, "9223372036854775807ms")
        ],
        ("remove keys by an unknown clock", ConfigurationError, lambda: _removing("valid", clock="rowtime")),
        ("remove keys of an unknown topic", TopicNotFoundError, lambda: _removing("vaild")),
        ("remove keys of a stream", ConfigurationError, lambda: _removing("events")),
        ("upgrade to nothing", ConfigurationError, lambda: driver().upgrade(None)),
        ("upgrade to a table", ConfigurationError, lambda: driver().upgrade(orders())),
        (
            "upgrade with an unknown approval",
            ConfigurationError,
            lambda: driver().upgrade(orders().service, approval="yes"),
        ),
        (
            "upgrade with keep_topic that is text",
            DefinitionError,
            lambda: driver().upgrade(orders().service, keep_topic="no"),
        ),
        ("upgrade with an unknown output", ConfigurationError, lambda: _upgrade(recalculate=["vaild"])),
        ("upgrade with an output that is a number", ConfigurationError, lambda: _upgrade(recalculate=[5])),
        ("upgrade with a number", ConfigurationError, lambda: _upgrade(recalculate=5)),
    ]


def _upgrade(**options: Any) -> None:
    app = shop.shop()
    orders(app).to("valid")
    driver().upgrade(app, **options)


WRONG_NAMES: list[Wrong] = [*_absent_calls(), *_driver_calls()]
