"""Every mistake is found while the service is built, and points at the user's line."""

from __future__ import annotations

import inspect

import pytest

import everstate as es
from everstate import col, errors

SCHEMA = {"id": str, "customer": str, "amount": float, "tags": list[str]}


def orders(app: es.Service | None = None) -> es.Table:
    return (app or es.Service("shop")).table("orders", key="id", schema=SCHEMA)


def events() -> es.Stream:
    return es.Service("shop").stream("events", key="id", schema=SCHEMA)


def numbers() -> es.Stream:
    return es.Service("shop").stream("numbers", schema=int)


INFINITY = float("inf")
MISTAKES = [
    ("unknown column in filter", errors.UnknownColumnError, lambda: orders().filter(col("amuont") > 1)),
    ("unknown column in select", errors.UnknownColumnError, lambda: orders().select("amuont")),
    ("unknown column in with_columns", errors.UnknownColumnError, lambda: orders().with_columns(x=col("y") + 1)),
    ("unknown column in rename", errors.UnknownColumnError, lambda: orders().rename({"x": "y"})),
    ("unknown column in drop", errors.UnknownColumnError, lambda: orders().drop("x")),
    ("unknown column in group_by", errors.UnknownColumnError, lambda: orders().group_by("region")),
    ("unknown column in agg", errors.UnknownColumnError, lambda: orders().group_by("id").agg(x=col("y").sum())),
    ("unknown column in rekey", errors.UnknownColumnError, lambda: orders().rekey("region")),
    ("unknown column in to key", errors.UnknownColumnError, lambda: events().to("named", key="x")),
    ("to key of a scalar", errors.UnsupportedError, lambda: numbers().to("named", key="value")),
    ("to key without a value", errors.UnsupportedError, lambda: events().select("id").to("named", key="id")),
    (
        "unknown column in join on",
        errors.UnknownColumnError,
        lambda: (left := orders()).join(left, on="x"),
    ),
    ("filter that is not boolean", errors.SchemaError, lambda: orders().filter(col("amount") + 1)),
    ("types that do not fit", errors.SchemaError, lambda: orders().with_columns(x=col("amount") + col("customer"))),
    ("several rows in with_columns", errors.UnsupportedError, lambda: orders().with_columns(x=col("amount").sum())),
    ("function in an expression", errors.UnsupportedError, lambda: orders().filter(col("amount").map_elements(bool))),
    ("over in with_columns", errors.UnsupportedError, lambda: orders().with_columns(x=col("amount").sum().over("id"))),
    ("explode in select", errors.UnsupportedError, lambda: orders().select(x=col("tags").explode())),
    ("key replaced", errors.UnsupportedError, lambda: orders().with_columns(id=col("customer"))),
    ("unsupported aggregate", errors.UnsupportedError, lambda: orders().group_by("id").agg(x=col("amount").product())),
    ("infinity in agg", errors.UnsupportedError, lambda: orders().group_by("id").agg(x=col("amount").sum() + INFINITY)),
    ("column that is not aggregated", errors.UnsupportedError, lambda: orders().group_by("id").agg(x=col("amount"))),
    ("empty agg", errors.SchemaError, lambda: orders().group_by("id").agg()),
    ("min of a list", errors.UnsupportedError, lambda: orders().group_by("id").agg(x=col("tags").min())),
    ("sum of text", errors.DefinitionError, lambda: orders().group_by("id").agg(x=col("customer").sum())),
    ("agg name twice", errors.NameClashError, lambda: orders().group_by("id").agg(id=es.count())),
    ("key that is a list", errors.SchemaError, lambda: orders().group_by("tags")),
    ("map without schema", errors.SchemaError, lambda: orders().map(lambda row: row)),
    ("map with a wrong schema", errors.SchemaError, lambda: orders().map(lambda row: row, schema={"x": object})),
    ("merge of tables", errors.UnsupportedError, lambda: orders().merge(orders())),
    ("flat_map of a table", errors.UnsupportedError, lambda: orders().flat_map(lambda row: [row])),
    ("stateful on a table", errors.UnsupportedError, lambda: orders().apply(lambda r, s: r, stateful=True)),
    ("stateful filter on a table", errors.UnsupportedError, lambda: orders().filter(lambda r, s: True, stateful=True)),
    ("merge of unlike streams", errors.SchemaError, lambda: (left := events()).merge(left.select("amount"))),
    ("join with a stream", errors.UnsupportedError, lambda: orders().join(events())),
    ("join of unlike keys", errors.SchemaError, lambda: (left := orders()).join(left.rekey("amount"))),
    (
        "foreign key of another type",
        errors.SchemaError,
        lambda: (left := orders()).join(left, on="amount"),
    ),
    (
        "outer foreign-key join",
        errors.UnsupportedError,
        lambda: (left := orders()).join(left, on="customer", how="outer"),
    ),
    ("unknown join", errors.UnsupportedError, lambda: (left := orders()).join(left, how="cross")),
    ("rename onto another column", errors.NameClashError, lambda: orders().rename({"amount": "customer"})),
    ("column of Everstate's own name", errors.SchemaError, lambda: orders().with_columns(**{"$x": col("amount")})),
    ("schema with such a name", errors.SchemaError, lambda: es.Service("s").table("t", schema={"$x": int})),
    ("schema of nothing", errors.SchemaError, lambda: es.Service("s").table("t", schema=object)),
    (
        "result that is only the group",
        errors.NameClashError,
        lambda: es.Service("s").stream("w", schema=str).group_by("value").reduce(lambda a, b: a + b),
    ),
    (
        "top_k by a list",
        errors.UnsupportedError,
        lambda: orders().group_by("customer").agg(x=es.top_k("amount", 2, by="tags")),
    ),
    ("invalid topic", errors.TopicNameError, lambda: orders().to("no/slash")),
    ("invalid source topic", errors.TopicNameError, lambda: es.Service("s").table("..", schema=int)),
    ("invalid service name", errors.DefinitionError, lambda: es.Service("../x")),
    ("unknown policy", errors.DefinitionError, lambda: es.Service("s", on_error="ignore")),
    ("unknown format", errors.SchemaError, lambda: es.Service("s").table("t", schema=int, format="xml")),
    ("string format of an object", errors.SchemaError, lambda: orders().to("t", format="string")),
    ("no partitions", errors.DefinitionError, lambda: orders().to("t", partitions=0)),
    ("quantile out of range", errors.SchemaError, lambda: es.quantile("amount", 2)),
    ("top_k of none", errors.SchemaError, lambda: es.top_k("amount", 0)),
]


@pytest.mark.parametrize(("kind", "make"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_mistake_while_building_names_the_line(kind, make) -> None:
    with pytest.raises(kind) as caught:
        make()
    assert isinstance(caught.value, errors.EverstateError)
    location = caught.value.location
    assert location is not None
    assert location.file == __file__
    lines, first = inspect.getsourcelines(make)
    assert first <= location.line <= first + len(lines)


def test_output_declared_twice_is_refused_with_the_first_line() -> None:
    app = es.Service("shop")
    orders(app).to("copy")
    with pytest.raises(errors.NameClashError, match=r"declared at .*test_mistakes.py"):
        orders(app).to("copy")


def test_output_that_is_the_dead_letter_topic_of_another_is_refused() -> None:
    app = es.Service("shop")
    orders(app).to("copy")
    with pytest.raises(errors.NameClashError):
        orders(app).to("copy.dlq")


def test_output_that_feeds_itself_is_refused() -> None:
    app = es.Service("shop")
    with pytest.raises(errors.DefinitionError, match="would feed itself"):
        orders(app).to("orders")


def test_outputs_that_feed_each_other_are_refused() -> None:
    app = es.Service("shop")
    app.table("b", key="id", schema=SCHEMA).to("a")
    with pytest.raises(errors.DefinitionError, match="would feed itself"):
        app.table("a", key="id", schema=SCHEMA).to("b")


def test_unknown_column_lists_those_that_are_there() -> None:
    with pytest.raises(errors.UnknownColumnError, match="id, customer, amount, tags"):
        orders().filter(col("amuont") > 1)


def grouped() -> es.WindowedGroup:
    return events().group_by("customer").window(es.tumbling("5m"))


def names(app: es.Service) -> es.Table:
    return app.table("names", key="id", schema={"name": str}, history="1d")


ADVICE = [
    ("a second window", lambda: grouped().window(es.tumbling("5m")), "A group has one window"),
    ("suppress of a group", lambda: grouped().suppress("5m"), "Aggregate first"),
    ("process of a windowed group", lambda: grouped().process(max), "Use aggregate(init, add, schema=...)."),
    ("column of a group", lambda: orders().group_by("customer")["amount"], ".agg(total=col('amount').sum())"),
    ("process of a table", lambda: orders().process(max), "Use process(f, on_timer=g"),
    ("process of a global table", lambda: es.Service("s").global_table("t", schema=int).process(max), "only joined"),
    ("watermark", lambda: events().withWatermark("at", "5m"), "grace='1m'"),
    ("window of the module", lambda: es.window("5m"), "Name the group first"),
    ("state of the module", lambda: es.state("last", int), "es.value('last', float)"),
    ("remove of a window", lambda: grouped().aggregate(dict, max, max), "takes no remove"),
    ("dedup by nothing", lambda: events().dedup([], within="1h"), "dedup() names no column"),
    ("options by place", lambda: orders().expire("7d"), "expire(*, after, clock='event')"),
    ("foreign key of two", lambda: (left := orders()).join(left, on=lambda a, b: a), "lambda row: ..."),
    (
        "timer that is a class",
        lambda: events().process(max, type("Late", (), {}), schema=int),
        "lambda ctx: Late(...)",
    ),
    (
        "grace after a step",
        lambda: (left := events()).join(names(left.service).filter(col("name") != ""), grace="1m"),
        "join it directly",
    ),
    (
        "global table of another service",
        lambda: events().join(es.Service("s").global_table("t", schema=int)),
        "this global table belongs to another service",
    ),
]


@pytest.mark.parametrize(("make", "words"), [a[1:] for a in ADVICE], ids=[a[0] for a in ADVICE])
def test_mistake_is_answered_with_what_fits_there(make, words) -> None:
    with pytest.raises(errors.EverstateError) as caught:
        make()
    assert words in str(caught.value)
