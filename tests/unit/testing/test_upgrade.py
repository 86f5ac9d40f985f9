"""A version takes the place of another: for each operation, exactly what differs is written."""

from __future__ import annotations

import os
from typing import Any

import polars as pl
import pytest
from polars import col

import everstate as es
from everstate.errors import FingerprintError
from tests.unit.testing.versions import kinds, written

ORDER = {"id": str, "customer": str, "amount": int}
ORDERS = [("o1", "ada", 5), ("o2", "ada", 7), ("o3", "bob", 2), ("o4", "eve", 9)]
PEOPLE = [("ada", "Ada"), ("bob", "Bob"), ("joe", "Joe")]


def service(build):
    """A service of orders and people, whose one output `build` makes."""
    app = es.Service("shop")
    orders = app.table("orders", key="id", schema=ORDER)
    people = app.table("people", key="customer", schema={"customer": str, "name": str})
    build(orders, people).to("out")
    return app


def running(app, **options):
    """A driver that has got all orders and people, in two micro-batches."""
    driver = es.testing.Driver(app, topics={"orders": (), "people": ()}, **options)
    with driver.batch():
        for ts, (key, customer, amount) in enumerate(ORDERS[:3]):
            driver.send("orders", key, {"customer": customer, "amount": amount}, ts=ts)
    with driver.batch():
        driver.send("orders", ORDERS[3][0], {"customer": ORDERS[3][1], "amount": ORDERS[3][2]}, ts=3)
        for ts, (key, name) in enumerate(PEOPLE):
            driver.send("people", key, {"name": name}, ts=ts)
    return driver


def upgraded(before, after, **options):
    """What the upgrade from one version to another has done, checked against a first run of the other."""
    driver = running(service(before), **options)
    was = driver.table("out")
    upgrade = driver.upgrade(service(after))
    assert driver.table("out") == running(service(after)).table("out")
    assert kinds(upgrade) == {"out": "recalculate"}
    now = driver.table("out")
    assert {key for key, _ in written(upgrade)} == {k for k in {**was, **now} if was.get(k) != now.get(k)}
    assert driver.upgrade(service(after)).records == []
    assert driver.upgrade(service(after), recalculate=["out"]).records == []
    return written(upgrade)


def test_upgrade_that_drops_a_key_and_changes_another_writes_two_records():
    def version(names, factor):
        app = es.Service("letters")
        letters = app.table("in", key="name", schema={"name": str, "x": int}).filter(col("name").is_in(names))
        letters.with_columns(x=pl.when(name="keyB").then(col("x") * factor).otherwise("x")).to("out")
        return app

    names = ["keyA", "keyB", "keyC"]
    driver = es.testing.Driver(version(names, 1), topics={"in": {name: {"x": 2} for name in names}})
    assert driver.table("out") == {"keyA": {"x": 2}, "keyB": {"x": 2}, "keyC": {"x": 2}}
    upgrade = driver.upgrade(version(names[:2], 10))
    assert written(upgrade) == [("keyB", {"x": 20}), ("keyC", None)]
    assert kinds(upgrade) == {"out": "recalculate"}
    assert [record.topic for record in upgrade.records] == ["out", "out"]
    assert [record.headers["es-generation"] for record in upgrade.records] == [b"2", b"2"]
    assert driver.table("out") == {"keyA": {"x": 2}, "keyB": {"x": 20}}
    assert len(driver.records("out")) == 5


def test_upgrade_of_a_filter_writes_what_comes_and_goes():
    records = upgraded(lambda o, _: o.filter(col("amount") < 8), lambda o, _: o.filter(col("amount") > 2))
    assert records == [("o3", None), ("o4", {"customer": "eve", "amount": 9})]


def test_upgrade_of_an_expression_writes_changed_rows():
    def version(least):
        return lambda o, _: o.select(rich=col("amount") >= least)

    assert upgraded(version(5), version(7)) == [("o1", {"rich": False})]


def test_upgrade_of_a_function_writes_changed_rows():
    def version(limit):
        def capped(row) -> dict:
            return {"amount": min(row["amount"], limit)}

        return lambda o, _: o.map(capped, schema={"amount": int})

    assert upgraded(version(7), version(8)) == [("o4", {"amount": 8})]


def test_upgrade_with_other_columns_writes_every_row_that_has_them():
    records = upgraded(lambda o, _: o.select("amount"), lambda o, _: o.select("amount", double=col("amount") * 2))
    assert records[0] == ("o1", {"amount": 5, "double": 10})
    assert len(records) == 4


def test_upgrade_of_an_update_in_place_writes_changed_rows():
    def version(limit):
        def cap(row):
            row["amount"] = min(row["amount"], limit)

        return lambda o, _: o.update(cap)

    assert upgraded(version(7), version(8)) == [("o4", {"customer": "eve", "amount": 8})]


AGGREGATES = {
    "sum": (col("amount").sum(), 12),
    "mean": (col("amount").mean(), 6.0),
    "min": (col("amount").min(), 5),
    "max": (col("amount").max(), 7),
    "first": (col("amount").first(), 5),
    "last": (col("amount").last(), 7),
    "collect": (es.collect(col("amount")), [5, 7]),
    "top_k": (es.top_k(col("amount"), 2), [7, 5]),
    "median": (es.median(col("amount")), 6.0),
    "quantile": (es.quantile(col("amount"), 0.5), 6.0),
    "n_unique": (col("amount").n_unique(), 2),
    "std": (col("amount").std(), 2**0.5),
    "expression": (col("amount").sum() * 2 + es.count(), 26),
}


@pytest.mark.parametrize("name", sorted(AGGREGATES))
def test_upgrade_to_an_aggregate_writes_groups_that_differ(name):
    aggregate, expected = AGGREGATES[name]
    records = upgraded(
        lambda o, _: o.group_by("customer").agg(x=es.count() + 100),
        lambda o, _: o.group_by("customer").agg(x=aggregate),
    )
    assert dict(records)["ada"] == {"x": expected}
    assert all(value is not None for _, value in records)


@pytest.mark.parametrize("name", sorted(AGGREGATES))
def test_upgrade_before_an_aggregate_writes_groups_that_lose_rows(name):
    def version(gone):
        kept = ~col("amount").is_in(gone)
        return lambda o, _: o.filter(kept).group_by("customer").agg(x=AGGREGATES[name][0], n=es.count())

    records = upgraded(version([0]), version([2, 7]))
    assert [key for key, _ in records] == ["ada", "bob"]
    assert dict(records)["bob"] is None


def test_upgrade_of_a_grouping_leaves_no_old_group():
    records = upgraded(
        lambda o, _: o.group_by("customer").agg(n=es.count()),
        lambda o, _: o.group_by(customer=col("customer").str.slice(0, 1)).agg(n=es.count()),
    )
    assert records == [("a", {"n": 2}), ("ada", None), ("b", {"n": 1}), ("bob", None), ("e", {"n": 1}), ("eve", None)]


def test_upgrade_to_another_type_of_key_shows_old_keys_as_they_were():
    records = upgraded(
        lambda o, _: o.group_by("customer").agg(n=es.count()), lambda o, _: o.group_by("amount").agg(n=es.count())
    )
    ones = [(key, {"n": 1}) for key in (2, 5, 7, 9)]
    assert records == [*ones, ("ada", None), ("bob", None), ("eve", None)]


def add(total, row) -> dict:
    return {"total": total["total"] + row["amount"]}


def add_double(total, row) -> dict:
    return {"total": total["total"] + 2 * row["amount"]}


def remove(total, row) -> dict:
    return {"total": total["total"] - row["amount"]}


def remove_double(total, row) -> dict:
    return {"total": total["total"] - 2 * row["amount"]}


def zero() -> dict:
    return {"total": 0}


def ten() -> dict:
    return {"total": 10}


def larger(one, other):
    return max(one, other, key=lambda row: row["amount"])


def smaller(one, other):
    return min(one, other, key=lambda row: row["amount"])


def folds(*functions):
    return lambda o, _: o.group_by("customer").aggregate(*functions, schema={"total": int})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (folds(zero, add), folds(zero, add_double)),
        (folds(zero, add, remove), folds(zero, add_double, remove_double)),
        (folds(zero, add), folds(zero, add_double, remove_double)),
    ],
)
def test_upgrade_of_a_custom_aggregate_writes_groups_that_differ(before, after):
    assert upgraded(before, after) == [("ada", {"total": 24}), ("bob", {"total": 4}), ("eve", {"total": 18})]


def test_upgrade_of_an_initial_value_writes_groups_that_differ():
    assert dict(upgraded(folds(zero, add), folds(ten, add)))["bob"] == {"total": 12}


def test_upgrade_that_adds_a_remove_writes_nothing_where_results_agree():
    driver = running(service(folds(zero, add)))
    upgrade = driver.upgrade(service(folds(zero, add, remove)))
    assert kinds(upgrade) == {"out": "recalculate"}
    assert upgrade.records == []
    driver.tombstone("orders", "o1")
    assert driver.table("out")["ada"] == {"total": 7}


def test_upgrade_of_a_reduce_writes_groups_that_differ():
    def version(choice):
        return lambda o, _: o.group_by("customer").reduce(choice)

    assert upgraded(version(larger), version(smaller)) == [("ada", {"id": "o1", "amount": 5})]


def test_upgrade_of_a_rekey_brings_the_next_row_to_light():
    records = upgraded(lambda o, _: o.rekey("customer"), lambda o, _: o.filter(col("amount") != 7).rekey("customer"))
    assert records == [("ada", {"id": "o1", "amount": 5})]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("inner", [("joe", None)]),
        ("left", [("bob", {"n": 1, "name": None}), ("joe", None)]),
    ],
)
def test_upgrade_of_a_join_writes_rows_that_come_and_go(how, expected):
    def version(kind, kept):
        def build(orders, people):
            counted = orders.group_by("customer").agg(n=es.count()).filter(col("customer") != "eve")
            return counted.join(people.filter(col("name") != kept), how=kind)

        return build

    records = upgraded(version("outer", ""), version(how, "Bob"))
    if how == "inner":
        expected = [("bob", None), *expected]
    assert records == expected


def test_upgrade_to_an_outer_join_adds_both_sides():
    def version(how):
        return lambda o, p: o.group_by("customer").agg(n=es.count()).join(p, how=how)

    assert upgraded(version("inner"), version("outer")) == [
        ("eve", {"n": 1, "name": None}),
        ("joe", {"n": None, "name": "Joe"}),
    ]


def test_upgrade_of_a_joiner_writes_changed_rows():
    def version(sign):
        def joined(left, right) -> str:
            return f"{right['name']}{sign * (left['n'] - 1)}"

        return lambda o, p: o.group_by("customer").agg(n=es.count()).join(p, joiner=joined)

    assert upgraded(version("!"), version("?")) == [("ada", "Ada?")]


def test_upgrade_of_a_foreign_key_join_writes_rows_that_come_and_go():
    def version(how):
        return lambda o, p: o.select("customer").join(p, on="customer", how=how)

    eve = ("o4", {"customer": "eve", "name": None})
    assert upgraded(version("inner"), version("left")) == [eve]
    assert upgraded(version("left"), version("inner")) == [("o4", None)]


def test_upgrade_of_a_foreign_key_points_rows_elsewhere():
    def version(column):
        return lambda o, p: o.select("customer").join(p, on=column)

    records = upgraded(version(col("customer")), version(col("customer").replace("ada", "joe")))
    assert records == [("o1", {"customer": "ada", "name": "Joe"}), ("o2", {"customer": "ada", "name": "Joe"})]


@pytest.mark.slow
@pytest.mark.parametrize(("partitions", "shards"), [(3, 2), (4, 3)])
def test_upgrade_on_several_partitions_and_shards_writes_the_same(partitions, shards):
    def version(least):
        def build(orders, people):
            counted = orders.filter(col("amount") > least).group_by("customer").agg(n=es.count())
            return counted.join(people, how="left")

        return build

    expected = upgraded(version(1), version(5))
    assert sorted(expected) == sorted(upgraded(version(1), version(5), partitions=partitions, shards=shards))


RATE = 2


def priced(row):
    return {"n": row["n"] * RATE}


def test_old_version_is_what_it_was_when_it_was_deployed(monkeypatch):
    def version():
        app = es.Service("shop")
        app.table("in", key="k", schema={"k": str, "n": int}).map(priced, schema={"n": int}).to("out")
        return app

    driver = es.testing.Driver(version())
    driver.send("in", "a", {"n": 1})
    monkeypatch.setitem(globals(), "RATE", 3)
    upgrade = driver.upgrade(version())
    assert upgrade.plan.action("out").kind == "recalculate"
    assert driver.table("out") == {"a": {"n": 3}}
    # What is current now was printed when it became current.
    assert driver.upgrade(version()).plan.action("out").kind == "nothing"
    monkeypatch.setitem(globals(), "RATE", 4)
    assert driver.upgrade(version()).plan.action("out").kind == "recalculate"
    assert driver.table("out") == {"a": {"n": 4}}


def test_driver_runs_what_cannot_be_seen_and_says_so_at_an_upgrade():
    def version():
        app = es.Service("shop")
        rows = app.stream("in", key="k", schema={"n": int})
        rows.map(lambda row: {"n": row["n"] + len(os.environ)}, schema={"n": int}).to("out")
        return app

    driver = es.testing.Driver(version())
    driver.send("in", "a", {"n": 1})
    assert len(driver.records("out")) == 1
    with pytest.raises(FingerprintError):
        driver.upgrade(version())


def test_plan_of_an_upgrade_shows_the_edited_text():
    def least(limit):
        app = es.Service("shop")
        app.table("in", key="id", schema={"id": str, "n": int}).filter(col("n") >= limit).to("out")
        return app

    def even():
        app = es.Service("shop")
        app.table("in", key="id", schema={"id": str, "n": int}).filter(col("n") % 2 == 0).to("out")
        return app

    driver = es.testing.Driver(least(1))
    (put_in,) = driver.upgrade(least(2)).plan.actions[0].differences
    assert (put_in.old, put_in.new) == ('col("n") >= 1', 'col("n") >= 2')
    (written,) = driver.upgrade(even()).plan.actions[0].differences
    assert written.edits[0].diff == ('-.filter(col("n") >= limit)', '+.filter(col("n") % 2 == 0)')


def test_upgrade_to_a_source_whose_time_was_moved_fires_what_was_due_by_then():
    def seen(row: dict[str, Any], ctx: es.Context) -> dict[str, Any]:
        ctx.timer("over", at=ctx.time + 7)
        return {"n": row["n"]}

    def over(ctx: es.Context) -> dict[str, Any]:
        return {"n": -1}

    def service(*, processed: bool) -> es.Service:
        app = es.Service("s")
        rows = app.stream("rows", key="k", schema={"k": str, "n": int})
        table = app.table("table", key="k", schema={"k": str, "n": int})
        rows.to("copy")
        if processed:
            given = rows.process(seen, on_timer=over, schema={"n": int})
            given.group_by("k").window(es.session("4ms", grace="6ms")).agg(n=col("n").sum()).to("out")
        else:
            table.to("out")
        return app

    driver = es.testing.Driver(service(processed=False), partitions=2)
    driver.send("rows", "a", {"n": 1}, ts=1, partition=0)
    driver.advance(21)
    driver.upgrade(service(processed=True))
    assert [row["n"] for row in driver.table("out").values()] == [1, -1]
    driver.send("rows", "b", {"n": 5}, ts=38, partition=0)
    assert [row["n"] for row in driver.table("out").values()] == [1, -1, 5]


@pytest.mark.parametrize("before", [False, True], ids=["at once", "after a record"])
def test_upgrade_of_what_has_come_to_go_by_the_clock_finds_the_clock_where_it_was(before):
    def seen(row: dict[str, Any], ctx: es.Context) -> dict[str, Any]:
        ctx.rows.append(row["n"])
        ctx.timer("over", at=ctx.now + 5, clock="wall")
        return {"rows": ctx.rows.get()}

    def over(ctx: es.Context) -> None:
        ctx.rows.clear()

    def service(least: int, *, processed: bool = True) -> es.Service:
        app = es.Service("s")
        rows = app.stream("rows", key="k", schema={"k": str, "n": int}).filter(col("n") >= least)
        if processed:
            states = [es.list_("rows", int)]
            given = rows.process(seen, on_timer=over, schema={"rows": list[int]}, states=states)
            given.group_by("k").agg(all=es.collect("rows")).to("out")
        else:
            rows.group_by("k").agg(n=es.count()).to("out")
        return app

    driver = es.testing.Driver(service(0, processed=False))
    if before:
        driver.send("rows", "b", {"n": 5}, ts=3)
    driver.upgrade(service(0))
    driver.send("rows", "a", {"n": 1}, ts=51)
    driver.advance(clock=14)
    driver.send("rows", "a", {"n": 2}, ts=67)
    assert driver.table("out")["a"] == {"all": [[1], [2]]}
    assert driver.upgrade(service(-1)).records == []
