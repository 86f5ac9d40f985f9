"""State that is converted instead of replayed: right where it holds, rebuilt where it does not."""

from __future__ import annotations

import random
from dataclasses import make_dataclass

import pytest
from polars import col

import everstate as es
from everstate.errors import UnsupportedError
from tests.unit.testing.versions import kinds, written

pytestmark = pytest.mark.slow

ORDER = {"id": str, "customer": str, "amount": int}


def running(app, *, seed=1, shards=2, keys=40):
    """A driver that has got orders, corrections and deletions, in many micro-batches."""
    dice = random.Random(seed)
    driver = es.testing.Driver(app, partitions=3, shards=shards)
    for ts in range(5):
        with driver.batch():
            for _ in range(24):
                key = f"o{dice.randrange(keys)}"
                if dice.random() < 0.1:
                    driver.tombstone("orders", key, ts=ts)
                else:
                    value = {"customer": f"c{dice.randrange(9)}", "amount": dice.randrange(100)}
                    driver.send("orders", key, value, ts=ts)
    return driver


def check(before, after, **options):
    """Upgrade, and go on: I1 holds before and after, whatever became of the migration."""
    driver = running(before, **options)
    was = driver.table("out")
    upgrade = driver.upgrade(after)
    now = driver.table("out")
    scratch = running(after, **options)
    assert now == scratch.table("out")
    assert {key for key, _ in written(upgrade)} == {key for key in {**was, **now} if was.get(key) != now.get(key)}
    for other in (driver, scratch):
        for first in range(0, 12, 4):
            with other.batch():
                for number in range(first, first + 4):
                    other.send("orders", f"o{number}", {"customer": f"c{number % 4}", "amount": number}, ts=50 + number)
        other.tombstone("orders", "o20", ts=99)
    assert driver.table("out") == scratch.table("out")
    assert driver.upgrade(after).records == []
    assert driver.upgrade(after, recalculate=["out"]).records == []
    return upgrade


# Custom aggregates


def totals(*, halves=False, migrate=None, source="table", on_change="migrate"):
    app = es.Service("shop")
    orders = getattr(app, source)("orders", key="id", schema=ORDER)

    def init():
        return {"total": 0, "half": 0.0} if halves else {"total": 0}

    def shaped(total):
        return {"total": total, "half": total / 2} if halves else {"total": total}

    folded = orders.group_by("customer").aggregate(
        init,
        lambda aggregate, row: shaped(aggregate["total"] + row["amount"]),
        lambda aggregate, row: shaped(aggregate["total"] - row["amount"]),
        schema={"total": int, "half": float} if halves else {"total": int},
        migrate=migrate,
    )
    folded.to("out", on_change=on_change)
    return app


def halved(old):
    return {"total": old["total"], "half": old["total"] / 2}


@pytest.mark.parametrize("source", ["table", "stream"])
@pytest.mark.parametrize("shards", [1, 3])
def test_migrate_converts_a_custom_aggregate(source, shards):
    after = totals(halves=True, migrate=halved, source=source)
    upgrade = check(totals(source=source), after, shards=shards)
    assert kinds(upgrade) == {"out": "migrate"}
    assert upgrade.rebuilt == {}


@pytest.mark.parametrize("source", ["table", "stream"])
def test_migrate_that_gives_something_else_than_a_recalculation_is_rebuilt(source):
    def wrong(old):
        return {"total": old["total"] + 1, "half": old["total"] / 2}

    upgrade = check(totals(source=source), totals(halves=True, migrate=wrong, source=source))
    assert kinds(upgrade) == {"out": "migrate"}
    assert "after the conversion, but {'total':" in upgrade.rebuilt["out"]
    assert "test_upgrade_migrate.py:" in upgrade.rebuilt["out"]


@pytest.mark.parametrize(
    ("migrate", "reason"),
    [
        (lambda old: {"total": old["nothing"]}, "KeyError: 'nothing'"),
        (lambda old: {"total": old["total"], "half": "a half"}, "wrong result"),
        (lambda _: 5, "wrong result"),
    ],
)
def test_migrate_that_raises_or_gives_what_does_not_fit_is_rebuilt(migrate, reason):
    upgrade = check(totals(), totals(halves=True, migrate=migrate))
    assert "cannot convert what is stored for key 'c" in upgrade.rebuilt["out"]
    assert reason in upgrade.rebuilt["out"]


def test_migrate_function_that_is_added_edited_or_removed_is_no_change():
    driver = running(totals(halves=True))
    for migrate in (halved, lambda old: old, None):
        assert kinds(driver.upgrade(totals(halves=True, migrate=migrate))) == {"out": "nothing"}


def test_migrate_without_a_function_recalculates_and_says_why():
    upgrade = check(totals(), totals(halves=True))
    assert kinds(upgrade) == {"out": "recalculate"}
    assert upgrade.plan.action("out").instead == "State cannot be migrated: the aggregate has no migrate function."


def test_migrate_of_an_aggregate_that_keeps_its_rows_folds_them_again():
    def version(factor, migrate=None):
        app = es.Service("shop")
        orders = app.table("orders", key="id", schema=ORDER)
        longest = orders.group_by("customer").aggregate(
            lambda: 0, lambda best, row: max(best, row["amount"] * factor), schema=int, migrate=migrate
        )
        longest.to("out", on_change="migrate")
        return app

    upgrade = check(version(1), version(10, migrate=lambda best: best * 10))
    assert (kinds(upgrade), upgrade.rebuilt) == ({"out": "migrate"}, {})


def test_migrate_of_a_reduce_sees_the_key_as_the_function_does():
    def version(factor, migrate=None):
        app = es.Service("shop")
        orders = app.stream("orders", key="id", schema=ORDER)
        scaled = orders.map(
            lambda row: {"customer": row["customer"], "amount": row["amount"] * factor},
            schema={"customer": str, "amount": int},
        )
        scaled.group_by("customer").reduce(
            lambda sum_, row: {**sum_, "amount": sum_["amount"] + row["amount"]}, migrate=migrate
        ).to("out", on_change="migrate")
        return app

    def scaled(old):
        assert old["customer"].startswith("c")
        return {**old, "amount": old["amount"] * 100}

    upgrade = check(version(1), version(100, migrate=scaled))
    assert (kinds(upgrade), upgrade.rebuilt) == ({"out": "migrate"}, {})


def test_migrate_of_rows_that_an_aggregate_keeps_recalculates():
    def version(factor):
        app = es.Service("shop")
        orders = app.table("orders", key="id", schema=ORDER).with_columns(amount=col("amount") * factor)
        orders.group_by("customer").aggregate(
            lambda: 0, lambda best, row: max(best, row["amount"]), schema=int, migrate=lambda best: best * factor
        ).to("out", on_change="migrate")
        return app

    upgrade = check(version(1), version(10))
    assert "keeps the rows that it was given earlier" in upgrade.plan.action("out").instead


def test_migrate_of_what_was_migrated_a_moment_ago_converts_the_converted_state():
    def version(unit, least=0):
        app = es.Service("shop")
        orders = app.stream("orders", key="id", schema=ORDER)
        totals = orders.group_by("customer").aggregate(
            lambda: 0, lambda total, row: total + row["amount"] * unit, schema=int, migrate=lambda total: total * 10
        )
        totals.filter(lambda total: total >= least).to("out", on_change="migrate")
        return app

    driver = running(version(1))
    for after in (version(10), version(100), version(100, least=5000)):
        upgrade = driver.upgrade(after)
        assert (kinds(upgrade), upgrade.rebuilt) == ({"out": "migrate"}, {})
        assert driver.table("out") == running(after).table("out")


def test_migrate_after_one_micro_batch_converts_what_it_has_left():
    driver = es.testing.Driver(totals())
    driver.send("orders", "o1", {"customer": "ada", "amount": 4})
    upgrade = driver.upgrade(totals(halves=True, migrate=halved))
    assert upgrade.rebuilt == {}
    assert written(upgrade) == [("ada", {"total": 4, "half": 2.0})]


# Columns that a source has got


def widened(schema, build):
    app = es.Service("shop")
    build(app.table("orders", key="id", schema=schema)).to("out", on_change="migrate")
    return app


@pytest.mark.parametrize(
    "build",
    [
        lambda orders: orders,
        lambda orders: orders.filter(col("amount") > 30),
        lambda orders: orders.group_by("customer").agg(total=col("amount").sum(), best=col("amount").max()),
        lambda orders: orders.group_by("customer").agg(all=es.collect(col("amount"))),
        lambda orders: orders.rekey("customer"),
        lambda orders: orders.join(orders.filter(col("amount") > 30).select(more="amount"), how="left"),
    ],
    ids=["table", "filter", "aggregate", "collect", "rekey", "join"],
)
def test_migrate_fills_a_new_nullable_column_with_null(build):
    upgrade = check(widened(ORDER, build), widened({**ORDER, "note": str | None}, build))
    assert (kinds(upgrade), upgrade.rebuilt) == ({"out": "migrate"}, {})


@pytest.mark.parametrize(
    ("note", "build", "kind"),
    [
        (str, lambda orders: orders, "migrate"),
        (str | None, lambda orders: orders, "migrate"),
        (str, lambda orders: orders.filter(col("amount") > 30).with_columns(twice=col("amount") * 2), "migrate"),
        (str, lambda orders: orders.group_by("customer").agg(total=col("amount").sum()), "migrate"),
        (str, lambda orders: orders.rekey("customer"), "recalculate"),
        (str, lambda orders: orders.join(orders.select(more="amount"), how="left"), "recalculate"),
    ],
    ids=["table", "nullable", "steps", "aggregate", "rekey", "join"],
)
def test_migrate_fills_a_new_column_with_its_default(note, build, kind):
    order = make_dataclass("Order", [*ORDER.items(), ("note", note, "by hand")])
    upgrade = check(widened(ORDER, build), widened(order, build))
    assert (kinds(upgrade), upgrade.rebuilt) == ({"out": kind}, {})
    assert {record.value["note"] for record in upgrade.records} <= {"by hand"}


def test_migrate_of_a_column_that_records_had_all_the_time_is_rebuilt():
    with_note = {**ORDER, "note": str | None}
    driver = es.testing.Driver(widened(ORDER, lambda orders: orders))
    source = es.testing.Driver(widened(with_note, lambda orders: orders))
    for number in range(20):
        # The version before ignores the field.
        value = {"customer": "ada", "amount": number, "note": "early"}
        source.send("orders", f"o{number}", value)
        driver.send("orders", f"o{number}", value)
    upgrade = driver.upgrade(widened(with_note, lambda orders: orders))
    assert "'note': None" in upgrade.rebuilt["out"]
    assert driver.table("out") == source.table("out")


def test_migrate_of_a_column_that_must_be_there_recalculates():
    upgrade = check(widened(ORDER, lambda o: o), widened({"id": str, "customer": str}, lambda o: o))
    assert upgrade.plan.action("out").instead == "State cannot be migrated: what the table stores cannot be converted."


# Behind the last state


@pytest.mark.parametrize("last", ["aggregate", "fold", "join", "rekey", "table"])
def test_migrate_behind_the_last_state_derives_the_table_anew(last):
    def version(least):
        app = es.Service("shop")
        orders = app.table("orders", key="id", schema=ORDER)
        tables = {
            "aggregate": orders.group_by("customer").agg(amount=col("amount").sum(), all=es.collect(col("amount"))),
            "fold": orders.group_by("customer").aggregate(
                lambda: {"amount": 0},
                lambda a, row: {"amount": max(a["amount"], row["amount"])},
                schema={"amount": int},
            ),
            "join": orders.join(orders.filter(col("amount") > 10).select(more="amount"), how="outer"),
            "rekey": orders.rekey("customer"),
            "table": orders,
        }
        large = tables[last].filter(col("amount") > least)
        large.map(lambda row: {"large": row["amount"] * least}, schema={"large": int}).to("out", on_change="migrate")
        return app

    upgrade = check(version(20), version(60))
    assert kinds(upgrade) == {"out": "migrate"}
    assert not upgrade.plan.action("out").checked


def test_migrate_makes_dead_letters_of_steps_behind_the_state_again():
    def version(least):
        def risky(row):
            if row["amount"] < least:
                raise ValueError(row["amount"])
            return {"amount": row["amount"]}

        return widened(ORDER, lambda orders: orders.map(risky, schema={"amount": int}))

    def letters(driver):
        found = {}
        for record in driver.records("out.dlq"):
            found[tuple(record.key) if isinstance(record.key, list) else record.key] = record.value
        return {key for key, value in found.items() if value is not None}

    upgrade = check(version(30), version(50))
    assert (kinds(upgrade), upgrade.rebuilt) == ({"out": "migrate"}, {})
    driver = running(version(30))
    driver.upgrade(version(5))
    live = {key for key, value in driver.table("orders").items() if value["amount"] >= 5}
    assert set(driver.table("out")) == live
    assert len(letters(driver)) < len(letters(running(version(30))))


def test_migrate_of_a_step_that_has_refused_records_is_rebuilt():
    def version(least, migrate=None):
        def add(total, row):
            if row["amount"] < least:
                raise ValueError(row["amount"])
            return total + row["amount"]

        app = es.Service("shop")
        orders = app.stream("orders", key="id", schema=ORDER)
        orders.group_by("customer").aggregate(lambda: 0, add, schema=int, migrate=migrate).to(
            "out", on_change="migrate"
        )
        return app

    upgrade = check(version(30), version(20, migrate=lambda total: total))
    assert "and that step has changed" in upgrade.rebuilt["out"]


# Streams


def numbered(*, version=1, migrate=None):
    app = es.Service("shop")
    orders = app.stream("orders", key="id", schema=ORDER)

    def first(row, state):
        state.set("sum", state.get("sum", 0) + row["amount"])
        return {"sum": state.get("sum")}

    def second(row, state):
        seen = state.get("seen", {"sum": 0, "rows": 0})
        state.set("seen", {"sum": seen["sum"] + row["amount"], "rows": seen["rows"] + row["amount"]})
        return {"sum": seen["sum"] + row["amount"]}

    fn = first if version == 1 else second
    orders.apply(fn, stateful=True, schema={"sum": int}, migrate=migrate).to("out", on_change="migrate")
    return app


def by_key(driver):
    found = {}
    for record in driver.records("out"):
        found.setdefault(record.key, []).append(record.value)
    return found


@pytest.mark.parametrize(
    ("migrate", "rebuilt"),
    [
        (lambda old: {"seen": {"sum": old["sum"], "rows": old["sum"]}}, ""),
        (lambda old: {"seen": {"sum": old["sum"], "rows": 1}}, "after the conversion"),
        (lambda old: {"seen": {"sum": old["none"], "rows": 1}}, "KeyError"),
        (lambda old: {"seen": object()}, "cannot be stored"),
        (lambda old: [old], "the state of a key is a dict"),
    ],
)
def test_migrate_of_a_stateful_function_neither_loses_nor_repeats_records(migrate, rebuilt):
    driver, scratch = running(numbered()), running(numbered(version=2))
    before = by_key(driver)
    upgrade = driver.upgrade(numbered(version=2, migrate=migrate))
    assert upgrade.records == []
    assert by_key(driver) == before
    assert rebuilt in upgrade.rebuilt.get("out", "")
    assert bool(rebuilt) == bool(upgrade.rebuilt)
    for other in (driver, scratch):
        for number in range(12):
            other.send("orders", f"o{number}", {"customer": "ada", "amount": number}, ts=60)
    assert by_key(driver) == by_key(scratch)


def test_migrate_of_a_chain_takes_the_differences_of_the_output_before():
    def version(*, halves):
        app = totals(halves=halves, migrate=halved)
        read = app.table("out", key="customer", schema={"total": int})
        read.filter(col("total") > (10 if halves else 20)).to("large", on_change="migrate")
        return app

    driver = running(version(halves=False))
    upgrade = driver.upgrade(version(halves=True))
    assert kinds(upgrade) == {"out": "migrate", "large": "migrate"}
    assert upgrade.rebuilt == {}
    scratch = running(version(halves=True))
    assert driver.table("large") == scratch.table("large")


def test_migrate_without_state_is_refused_where_it_is_written():
    orders = es.Service("shop").stream("orders", key="id", schema=ORDER)
    with pytest.raises(UnsupportedError, match="keeps none"):
        orders.filter(col("amount") > 1, migrate=halved)
