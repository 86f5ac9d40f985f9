from __future__ import annotations

import json

import polars as pl
import pytest

import everstate as es
from everstate import col
from everstate.kernels.lineage import Lineage
from everstate.kernels.pages.page_store import MemoryPages
from everstate.kernels.pipeline import ShardStages, ingested, run_stages

ORDERS = {"id": str, "customer": str, "amount": int}


def service() -> es.Service:
    return es.Service("shop")


def orders(app: es.Service):
    return app.table("orders", key="id", schema=ORDERS)


def people(app: es.Service):
    return app.table("people", key="customer", schema={"customer": str, "name": str})


def lineage_of(
    app: es.Service, *batches: list[tuple[str, str, dict | None]], times: dict[str, int] | None = None
) -> Lineage:
    """What becomes of (topic, key, value) records, in micro-batches; offsets count by topic, times are by key."""
    (unit,) = app.units()
    lineage = Lineage(unit)
    shard = ShardStages(unit, MemoryPages(), policy="skip")
    offsets = dict.fromkeys(unit.topics, 0)
    for batch in batches:
        pieces = []
        for topic in unit.topics:
            rows = [(key, value) for name, key, value in batch if name == topic]
            first = offsets[topic]
            offsets[topic] += len(rows)
            frame = {
                "key": [key.encode() for key, _ in rows],
                "value": [None if value is None else json.dumps(value).encode() for _, value in rows],
                "ts": [(times or {}).get(key, 0) for key, _ in rows],
                "offset": list(range(first, first + len(rows))),
            }
            schema = {"key": pl.Binary, "value": pl.Binary, "ts": pl.Int64, "offset": pl.Int64}
            pieces.append((topic, 0, pl.DataFrame(frame, schema=schema)))
        parcels = ingested(unit, pieces, "skip", lineage.witness)
        run_stages([shard], range(1, unit.depth + 1), parcels, witness=lineage.witness)
    return lineage


def records(lineage: Lineage, key: str) -> set[tuple[int, int]]:
    """(place of the topic, offset) of what a key is made of."""
    return {
        place for frame in lineage.records(key.encode()).values() for place in frame.select("$topic", "$off").rows()
    }


def order(customer: str, amount: int) -> dict:
    return {"customer": customer, "amount": amount}


def test_group_is_made_of_the_rows_that_the_filter_lets_through():
    app = service()
    orders(app).filter(col("amount") > 1).group_by("customer").agg(n=es.count()).to("out")
    found = lineage_of(
        app, [("orders", "a", order("ada", 5)), ("orders", "b", order("ada", 1)), ("orders", "c", order("bob", 7))]
    )
    assert records(found, "ada") == {(0, 0)}
    assert records(found, "bob") == {(0, 2)}
    assert records(found, "cleo") == set()


def test_group_is_not_made_of_rows_that_were_changed_moved_or_deleted():
    app = service()
    orders(app).group_by("customer").agg(n=es.count()).to("out")
    first = [("orders", "a", order("ada", 1)), ("orders", "b", order("ada", 2)), ("orders", "c", order("ada", 3))]
    later = [("orders", "a", order("ada", 9)), ("orders", "b", order("bob", 2)), ("orders", "c", None)]
    found = lineage_of(app, first, later)
    assert records(found, "ada") == {(0, 3)}
    assert records(found, "bob") == {(0, 4)}


def test_row_that_enters_the_last_step_is_as_the_steps_before_it_made_it():
    app = service()
    doubled = orders(app).with_columns(amount=col("amount") * 2)
    doubled.group_by("customer").agg(total=col("amount").sum()).to("out")
    found = lineage_of(app, [("orders", "a", order("ada", 5))])
    assert found.entering(b"ada")["amount"].to_list() == [10]


def test_join_is_made_of_the_rows_of_both_sides():
    app = service()
    totals = orders(app).group_by("customer").agg(n=es.count())
    totals.join(people(app)).to("out")
    found = lineage_of(
        app,
        [("orders", "a", order("ada", 5)), ("people", "ada", {"name": "Ada"}), ("people", "bob", {"name": "Bob"})],
        [("orders", "b", order("ada", 6))],
    )
    assert records(found, "ada") == {(0, 0), (0, 1), (1, 0)}


@pytest.mark.parametrize("kind", ["stream", "table"])
def test_global_join_is_made_of_a_row_and_what_it_refers_to(kind):
    app = service()
    read = app.stream if kind == "stream" else app.table
    rows = read("orders", key="id", schema={"id": str, "customer": str, "amount": int})
    names = app.global_table("people", key="customer", schema={"customer": str, "name": str})
    rows.join(names, on="customer").to("out")
    found = lineage_of(
        app,
        [("people", "ada", {"name": "Ada"}), ("people", "bob", {"name": "Bob"})],
        [("people", "ada", {"name": "Ada L."}), ("orders", "a", order("ada", 5)), ("orders", "b", order("bob", 6))],
    )
    assert records(found, "a") == {(0, 0), (1, 2)}
    assert records(found, "b") == {(0, 1), (1, 1)}


def test_foreign_key_join_is_made_of_a_row_and_what_it_refers_to():
    app = service()
    orders(app).join(people(app), on="customer").to("out")
    found = lineage_of(
        app,
        [
            ("orders", "a", order("ada", 5)),
            ("orders", "b", order("ada", 6)),
            ("people", "ada", {"name": "Ada"}),
            ("people", "bob", {"name": "Bob"}),
        ],
    )
    assert records(found, "b") == {(0, 1), (1, 0)}


def test_rekeyed_table_is_made_of_the_rows_that_came_to_the_key():
    app = service()
    orders(app).rekey("customer").to("out")
    found = lineage_of(app, [("orders", "a", order("ada", 5)), ("orders", "b", order("bob", 6))])
    assert records(found, "bob") == {(0, 1)}


@pytest.mark.parametrize("rekeyed", [False, True], ids=["by its own key", "after another keying"])
def test_stateful_function_is_made_of_all_records_of_its_key(rekeyed):
    def counted(row, state):
        state.set("n", state.get("n", 0) + 1)
        return {"n": state.get("n")}

    app = service()
    rows = app.stream("orders", key="id", schema=ORDERS)
    rows = rows.rekey("customer") if rekeyed else rows
    rows.filter(col("amount") > 0).apply(counted, stateful=True, schema={"n": int}).to("out")
    found = lineage_of(
        app,
        [("orders", "a", order("x", 5)), ("orders", "b", order("y", 6))],
        [("orders", "a", order("x", 0)), ("orders", "a", order("x", 7))],
    )
    assert records(found, "x" if rekeyed else "a") == {(0, 0), (0, 3)}
    assert found.results(b"x" if rekeyed else b"a")["n"].to_list() == [1, 2]


def test_group_after_a_group_is_made_of_the_records_of_both():
    app = service()
    per_customer = orders(app).group_by("customer").agg(n=es.count())
    per_customer.group_by("n").agg(customers=es.count()).to("out")
    found = lineage_of(
        app,
        [("orders", "a", order("ada", 5)), ("orders", "b", order("ada", 6)), ("orders", "c", order("bob", 6))],
    )
    assert records(found, "2") == {(0, 0), (0, 1)}
    assert records(found, "1") == {(0, 2)}


@pytest.mark.parametrize("window", [es.tumbling("10s"), es.hopping("10s", "5s"), es.session("3s")], ids=str)
def test_window_is_made_of_the_rows_of_its_group_and_time(window):
    app = service()
    rows = app.stream("orders", key="id", schema=ORDERS)
    rows.group_by("customer").window(window).agg(n=es.count()).to("out")
    times = {"a": 1_000, "d": 1_500, "b": 2_000, "c": 12_000}
    customers = {"a": "ada", "b": "ada", "c": "ada", "d": "bob"}
    found = lineage_of(app, [("orders", key, order(customers[key], 1)) for key in times], times=times)
    (unit,) = app.units()
    begin, end = (pl.col(name).dt.timestamp("ms") for name in ("window_start", "window_end"))
    windows = found.rows(unit.into(len(unit.nodes) - 1)[0].source).select("$key", "customer", begin, end, "n")
    assert windows.height >= 3
    for key, customer, first, last, count in windows.iter_rows():
        made_of = [list(times)[offset] for _, offset in records(found, key.decode())]
        assert len(made_of) == count
        assert all(customers[name] == customer and first <= times[name] <= last for name in made_of)
