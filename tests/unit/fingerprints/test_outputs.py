"""What a print says of an output: names, parts, settings."""

from __future__ import annotations

from itertools import count

import polars as pl
import pytest

import everstate as es
from everstate import col
from everstate.fingerprints import print_unit
from everstate.fingerprints.prints import NodePrint, UnitPrint

ORDERS = {"id": str, "customer": str, "amount": int, "status": str}


def printed(build, settings: dict | None = None, **orders) -> UnitPrint:
    app = es.Service("s")
    table = app.table("orders", key="id", schema={**ORDERS, **orders})
    build(app, table).to("out")
    return print_unit(app.units()[0], policy="dead-letter", settings=settings or {})


def node(described: UnitPrint, name: str) -> NodePrint:
    (found,) = [node for node in described.nodes if node.name == name]
    return found


def changed_parts(old: UnitPrint, new: UnitPrint) -> set[tuple[str, str, str]]:
    """(node, part, kind) of what differs between nodes of the same name."""
    theirs = {node.name: node for node in new.nodes}
    return {
        (mine.name, name, part.kind)
        for mine in old.nodes
        if mine.name in theirs
        for name, part in mine.parts.items()
        if name not in theirs[mine.name].parts or part.digest != theirs[mine.name].parts[name].digest
    }


def people(app: es.Service) -> es.Table:
    return app.table("people", key="customer", schema={"customer": str, "name": str})


def test_names_are_made_of_topics_and_operations() -> None:
    described = printed(
        lambda app, t: t.filter(col("amount") > 1).join(people(app), on="customer").group_by("name").agg(n=es.count())
    )
    assert [(node.name, node.inputs, node.stateful) for node in described.nodes] == [
        ("orders", (), False),
        ("orders/table", ("orders",), True),
        ("orders/filter", ("orders/table",), False),
        ("people", (), False),
        ("people/table", ("people",), True),
        ("out/foreign-key-join", ("orders/filter", "people/table"), True),
        ("out/aggregate", ("out/foreign-key-join",), True),
        ("out/output", ("out/aggregate",), False),
    ]


def test_names_of_equal_steps_are_numbered() -> None:
    described = printed(lambda app, t: t.filter(col("amount") > 1).filter(col("amount") > 2).filter(col("amount") > 3))
    assert [node.name for node in described.nodes][2:5] == ["orders/filter", "orders/filter#2", "orders/filter#3"]


def test_names_of_a_topic_that_is_read_twice_differ() -> None:
    described = printed(lambda app, t: t.join(app.table("orders", key="id", schema=ORDERS).select(more=col("status"))))
    names = [node.name for node in described.nodes]
    assert names[:4] == ["orders", "orders/table", "orders#2", "orders/table#2"]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    "step",
    [
        lambda app, t: t.select("customer", "amount", "status"),
        lambda app, t: t.with_columns(x=col("amount")),
        lambda app, t: t.join(people(app), on="customer"),
        lambda app, t: t.rekey("customer", "id"),
    ],
)
def test_names_of_the_other_steps_stay_when_one_is_inserted(step) -> None:
    before = printed(lambda app, t: t.filter(col("amount") > 1).group_by("customer").agg(n=es.count()))
    after = printed(lambda app, t: step(app, t.filter(col("amount") > 1)).group_by("customer").agg(n=es.count()))
    assert {node.name for node in before.nodes} <= {node.name for node in after.nodes}


def grouped(app, t):
    return t.filter(col("amount") > 1).group_by("customer").agg(n=es.count(), total=col("amount").sum())


KINDS = {
    "source schema": (
        lambda: printed(grouped),
        lambda: printed(grouped, status=int),
        {("orders", "schema", "schema"), ("orders/table", "schema", "schema"), ("orders/filter", "schema", "schema")},
    ),
    "grouping": (
        lambda: printed(grouped),
        lambda: printed(
            lambda app, t: t.filter(col("amount") > 1)
            .group_by(customer=col("customer").str.to_lowercase())
            .agg(n=es.count(), total=col("amount").sum())
        ),
        {("out/aggregate", "grouping", "grouping")},
    ),
    "one result": (
        lambda: printed(grouped),
        lambda: printed(
            lambda app, t: t.filter(col("amount") > 1)
            .group_by("customer")
            .agg(n=es.count(), total=col("amount").max())
        ),
        {("out/aggregate", "column total", "expression")},
    ),
    "predicate": (
        lambda: printed(grouped),
        lambda: printed(
            lambda app, t: t.filter(col("amount") > 2)
            .group_by("customer")
            .agg(n=es.count(), total=col("amount").sum())
        ),
        {("orders/filter", "predicate", "expression")},
    ),
    "function": (
        lambda: printed(lambda app, t: t.filter(lambda row: row["amount"] > 1)),
        lambda: printed(lambda app, t: t.filter(lambda row: row["amount"] > 2)),
        {("orders/filter", "predicate", "function")},
    ),
    "private schema": (
        lambda: printed(lambda app, t: t.select(x=col("amount")).select(y=col("x").cast(pl.String))),
        lambda: printed(
            lambda app, t: t.select(x=col("amount").cast(pl.Float64)).select(y=col("x").cast(pl.String))
        ),
        {("orders/select", "column x", "expression"), ("orders/select", "schema", "schema")},
    ),
    "join": (
        lambda: printed(lambda app, t: t.join(people(app), on="customer")),
        lambda: printed(lambda app, t: t.join(people(app), on="status")),
        {("out/foreign-key-join", "grouping", "grouping")},
    ),
    "way of joining": (
        lambda: printed(lambda app, t: t.join(people(app), on="customer")),
        lambda: printed(lambda app, t: t.join(people(app), on="customer", how="left")),
        {("out/foreign-key-join", "how", "parameter")},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), KINDS.values(), ids=KINDS)
def test_parts_that_differ_say_what_was_changed(old, new, expected) -> None:
    assert changed_parts(old(), new()) == expected


def test_parts_of_a_source_have_topic_key_and_schema() -> None:
    parts = node(printed(grouped), "orders").parts
    assert {name: part.kind for name, part in parts.items()} == {
        "semantics": "semantics",
        "kind": "parameter",
        "topic": "topic",
        "key": "key",
        "schema": "schema",
        "format": "schema",
    }
    assert parts["topic"].text == "orders"


def test_parts_of_a_function_show_it_and_where_it_is() -> None:
    part = node(printed(lambda app, t: t.filter(lambda row: row["amount"] > 1)), "orders/filter").parts["predicate"]
    assert part.text == "lambda row: row['amount'] > 1"
    assert part.location.rpartition(":")[0] == __file__


def test_peek_does_not_change_the_fingerprint() -> None:
    seen, numbers = [], count()
    one = printed(lambda app, t: t.peek(seen.append))
    other = printed(lambda app, t: t.peek(lambda row: print(next(numbers), row)))
    assert one.fingerprint == other.fingerprint


def test_lambdas_of_one_line_are_told_apart() -> None:
    one, other = (lambda row: row["amount"] > 1), (lambda row: row["amount"] > 2)  # fmt: skip
    first, second = (printed(lambda app, t, fn=fn: t.filter(fn)).fingerprint for fn in (one, other))
    again = printed(lambda app, t: t.filter(lambda row: row["amount"] > 2)).fingerprint
    assert first != second == again


def test_setting_that_ends_up_in_an_output_is_named() -> None:
    limit = 250
    described = printed(lambda app, t: t.filter(lambda row: row["amount"] > limit), {"limit": 250, "other": 9})
    assert {name: setting.text for name, setting in described.settings.items()} == {"limit": "250"}


@pytest.mark.parametrize(
    "build",
    [
        lambda limit: lambda app, t: t.filter(lambda row: row["amount"] > limit),
        lambda limit: lambda app, t: t.filter(col("amount") > limit),
        lambda limit: lambda app, t: t.filter(lambda row, least=limit: row["amount"] > least),
        lambda limit: lambda app, t: t.group_by("customer").agg(n=col("amount").sum() * limit),
        lambda limit: lambda app, t: t.filter(col("amount").is_in([1, 2, limit])),
    ],
)
def test_shape_stays_when_only_a_setting_has_changed(build) -> None:
    old, new = printed(build(250), {"limit": 250}), printed(build(300), {"limit": 300})
    for mine, theirs in zip(old.nodes, new.nodes, strict=True):
        assert {name: part.shape for name, part in mine.parts.items()} == {
            name: part.shape for name, part in theirs.parts.items()
        }
    assert old.fingerprint != new.fingerprint
    assert old.settings["limit"].digest != new.settings["limit"].digest


def test_shape_changes_when_more_than_a_setting_has_changed() -> None:
    old = printed(lambda app, t: t.filter((col("amount") > 250) & (col("status") == "a")), {"limit": 250})
    new = printed(lambda app, t: t.filter((col("amount") > 300) & (col("status") == "b")), {"limit": 300})
    mine, theirs = (node(one, "orders/filter").parts["predicate"] for one in (old, new))
    assert mine.shape != theirs.shape


def test_shape_of_a_number_that_is_written_in_code_stays_a_number() -> None:
    described = printed(lambda app, t: t.filter(lambda row: row["amount"] > 250), {"limit": 250})
    assert described.settings == {}


def test_shape_of_a_setting_of_another_type_stays_a_number() -> None:
    assert printed(lambda app, t: t.filter(col("amount") > 250), {"limit": 250.0}).settings == {}


@pytest.mark.parametrize("name", ["password", "db_password", "api_key", "apiKey", "auth-token", "client_secret", "key"])
def test_setting_that_is_a_secret_is_masked(name) -> None:
    described = printed(lambda app, t: t.filter(col("status") == "hunter2"), {name: "hunter2"})
    assert described.settings[name].text == "***"
    assert "hunter2" not in described.to_json()


@pytest.mark.parametrize("name", ["monkey", "keyboard_layout", "limit", "compass"])
def test_setting_that_is_no_secret_is_shown(name) -> None:
    described = printed(lambda app, t: t.filter(col("status") == "x1"), {name: "x1"})
    assert described.settings[name].text == "'x1'"


def test_policy_and_output_are_part_of_the_fingerprint() -> None:
    app = es.Service("s")
    app.table("in", schema=int).to("out")
    (unit,) = app.units()
    seen = {print_unit(unit, policy=policy, settings={}).fingerprint for policy in ("dead-letter", "skip")}
    assert len(seen) == 2


def test_libraries_are_named_and_not_part_of_the_fingerprint() -> None:
    assert set(printed(grouped).libraries) == {"python", "polars", "everstate"}


def test_print_survives_being_written() -> None:
    described = printed(grouped, {"limit": 1})
    assert UnitPrint.from_json(described.to_json()) == described
