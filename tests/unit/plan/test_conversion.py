"""Which state can be converted, seen on the prints of real services."""

from __future__ import annotations

import json
from dataclasses import make_dataclass

import polars as pl
import pytest
from polars import col

import everstate as es
from everstate.fingerprints import print_unit
from everstate.fingerprints.prints import UnitPrint
from everstate.plan.conversion import conversion
from everstate.plan.reuse import obstacle

ORDER = {"id": str, "customer": str, "amount": int}
WIDER = {**ORDER, "note": str | None}
FILLED, REFILLED = (make_dataclass("Order", [*ORDER.items(), ("note", str, text)]) for text in ("none", "nothing"))


def described(build, schema=None, source="table", policy="dead-letter"):
    app = es.Service("shop")
    build(getattr(app, source)("orders", key="id", schema=schema or ORDER)).to("out")
    (unit,) = app.units()
    return print_unit(unit, policy=policy, settings={})


def folded(factor, **functions):
    return lambda orders: orders.group_by("customer").aggregate(
        lambda: 0, lambda total, row: total + row["amount"] * factor, schema=int, **functions
    )


def same(orders):
    return orders


def per_minute(orders):
    return orders.group_by("customer").window(es.tumbling("1m")).agg(n=es.count())


def per_start(orders):
    return per_minute(orders).group_by("window_start").agg(n=col("n").sum())


def remove(total, row):
    return total - row["amount"]


def migrate(old):
    return old


@pytest.mark.parametrize(
    ("before", "after", "checked"),
    [
        (described(same), described(lambda o: o.filter(col("amount") > 1)), False),
        (described(lambda o: o.select("amount")), described(same), False),
        (described(same), described(same, WIDER), True),
        (
            described(per_start, source="stream"),
            described(lambda o: per_start(o).filter(col("n") > 1), source="stream"),
            False,
        ),
        (described(same), described(same, FILLED), True),
        (
            described(lambda o: o.filter(col("amount") > 1)),
            described(lambda o: o.filter(col("amount") > 1), FILLED),
            True,
        ),
        (described(folded(1), source="stream"), described(folded(2, migrate=migrate), source="stream"), True),
        (described(folded(1)), described(folded(2, migrate=migrate)), True),
        (
            described(lambda o: o.group_by("customer").agg(n=es.count())),
            described(lambda o: o.group_by("customer").agg(n=es.count()).filter(col("n") > 1)),
            False,
        ),
        (
            described(lambda o: o.group_by("customer").agg(n=es.count())),
            described(lambda o: o.group_by("customer").agg(n=es.count()), WIDER),
            True,
        ),
    ],
    ids=[
        "step added",
        "step removed",
        "wider",
        "behind what is behind windows",
        "filled",
        "filled and filtered",
        "fold of a stream",
        "fold of a table",
        "behind",
        "wider before",
    ],
)
def test_conversion_of_what_can_be_converted(before, after, checked) -> None:
    assert obstacle(before, after, converts=True) == ""
    assert conversion(before, after).checked is checked


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (described(folded(1)), described(folded(2)), "the aggregate has no migrate function"),
        (
            described(per_minute, source="stream"),
            described(lambda o: per_minute(o).filter(col("n") > 1), source="stream"),
            "the results of a windowed aggregate are not in its state",
        ),
        (
            described(lambda o: o.expire(after="1d")),
            described(lambda o: o.expire(after="1d").filter(col("amount") > 1)),
            "the results of an expire are not in its state",
        ),
        (
            described(per_start, source="stream"),
            described(per_start, WIDER, source="stream"),
            "time passes with the records of all keys, so a sample of keys cannot be recalculated on its own",
        ),
        (
            described(lambda o: o.group_by("customer").agg(n=es.count())),
            described(lambda o: o.group_by("customer").agg(n=col("amount").sum())),
            "what the aggregate stores cannot be converted",
        ),
        (
            described(lambda o: o.group_by("customer").agg(n=es.count())),
            described(lambda o: o.filter(col("amount") > 1).group_by("customer").agg(n=es.count())),
            "what the aggregate stores cannot be converted",
        ),
        (described(same), described(same, {**ORDER, "note": str}), "what the table stores cannot be converted"),
        (described(same), described(same, {**ORDER, "amount": float}), "what the table stores cannot be converted"),
        (described(same, FILLED), described(same, REFILLED), "what the table stores cannot be converted"),
        (described(same, WIDER), described(same, FILLED), "what the table stores cannot be converted"),
        (
            described(lambda o: o.rekey("customer")),
            described(lambda o: o.rekey("customer"), FILLED),
            "what the rekey stores cannot be converted",
        ),
        (described(same, WIDER), described(same, ORDER), "what the table stores cannot be converted"),
        (
            described(lambda o: folded(1)(o.filter(col("amount") > 1))),
            described(lambda o: folded(1, migrate=migrate)(o.filter(col("amount") > 2))),
            "the aggregate has no remove function, so it keeps the rows that it was given earlier",
        ),
        (
            described(same),
            described(same, WIDER, policy="skip"),
            "records that cannot be processed are handled differently",
        ),
        (
            described(lambda o: o.rekey("customer").group_by("amount").agg(n=es.count())),
            described(lambda o: o.rekey("customer").group_by("amount").agg(n=es.count()), WIDER),
            "a key's result depends on other keys, so a sample of keys cannot be recalculated on its own",
        ),
        (
            described(lambda o: o.join(o.rekey("customer").drop("id"), on="customer")),
            described(lambda o: o.join(o.rekey("customer").drop("id"), on="customer").filter(col("amount") > 1)),
            "the results of a foreign-key join are not in its state",
        ),
    ],
)
def test_conversion_of_what_cannot_be_says_why(before, after, reason) -> None:
    assert obstacle(before, after, converts=True) == reason


def test_conversion_of_rows_that_are_others_before_an_aggregate_with_remove_calls_its_function() -> None:
    before, after = (
        described(lambda o, n=n: folded(1, remove=remove, migrate=migrate)(o.filter(col("amount") > n))) for n in (1, 2)
    )
    assert conversion(before, after).converts == ("out/aggregate",)
    assert obstacle(before, after, converts=True) == ""


def test_conversion_leaves_a_function_alone_where_only_what_follows_has_changed() -> None:
    before, after = (described(lambda o, n=n: folded(1, migrate=migrate)(o).filter(col("value") > n)) for n in (1, 2))
    found = conversion(before, after)
    assert found.converts == ()
    assert (found.derives_from, found.checked) == ("out/aggregate", False)


def test_conversion_of_an_older_print_that_does_not_know_its_columns_is_none() -> None:
    text = described(same).to_json()
    assert [column.name for column in UnitPrint.from_json(text).nodes[0].columns] == ["id", "customer", "amount"]
    known = json.loads(text)
    for node in known["nodes"]:
        del node["columns"]
    older = UnitPrint.from_json(json.dumps(known))
    assert older.nodes[0].columns == ()
    assert obstacle(older, described(same, WIDER), converts=True) == "what the table stores cannot be converted"


def test_conversion_of_a_column_whose_type_only_reads_the_same_is_none() -> None:
    def at(unit, **more):
        return {**ORDER, "at": pl.Datetime(unit, "UTC"), **more}

    wider, other = described(same, at("us", note=str | None)), described(same, at("ms", note=str | None))
    assert [str(field.type) for field in wider.nodes[0].columns] == [
        str(field.type) for field in other.nodes[0].columns
    ]
    assert obstacle(described(same, at("us")), wider, converts=True) == ""
    assert obstacle(described(same, at("us")), other, converts=True) == "what the table stores cannot be converted"


def test_conversion_of_a_stream_derives_no_table_and_keeps_letters_of_what_is_the_same() -> None:
    def version(least):
        return described(lambda o: o.filter(col("amount") > 0).filter(col("amount") > least), source="stream")

    found = conversion(version(1), version(2))
    assert found.derives_from == ""
    kept = {step.partition(" at ")[0] for step in found.kept_letters}
    assert kept == {"orders", "orders/filter"} | {"source", "filter"}, "as letters of today and of earlier versions say"
    assert found.derived_letters == frozenset()
