from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from polars import col

import everstate as es
from everstate.topology.nodes import Filter, FlatMap, Latest, Map, Merge, Output, Peek, Project, RekeyStream, Source
from tests.equivalence import oracles
from tests.equivalence.histories import BAD, Layout, Pack, Placed, events, layouts, packs, schema, values
from tests.equivalence.playing import FEW, MANY, assert_dead, check_streams, check_tables, examples, play

#: The operations whose results are proven here.
PROVES = (Source, Latest, Filter, Project, Map, FlatMap, Peek, RekeyStream, Merge, Output)

COLUMNS = ("g", "h", "x", "f", "s", "n")
PAIR = {"x": int | None, "l": list[float | None]}

tables = packs(events("in", values(COLUMNS), bad=BAD))
streams = packs(events("in", values(COLUMNS), bad=BAD))


def plus_one(row: dict[str, Any]) -> int | None:
    return None if row["h"] is None else row["h"] + 1


def shortened(row: dict[str, Any]) -> dict[str, Any]:
    return {"x": row["x"], "l": row["n"]["l"][:1]}


def spread(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"x": row["h"], "l": [number]} for number in row["n"]["l"]]


def counted_up(row: dict[str, Any]) -> None:
    row["h"] = plus_one(row)
    row["n"]["l"].append(1.5)


def counted_up_copy(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "h": plus_one(row), "n": {"a": row["n"]["a"], "l": [*row["n"]["l"], 1.5]}}


def positive(row: dict[str, Any]) -> bool:
    return row["x"] is not None and row["x"] > 0


def renamed(rows: Any) -> Any:
    def columns(row: dict[str, Any]) -> dict[str, Any]:
        return {"name": row["id"], "g": row["g"], "h": row["h"], "y": row["x"], "n": row["n"]}

    def changed(row: oracles.Row) -> oracles.Row:
        return row._replace(columns=columns(row.columns))

    if isinstance(rows, oracles.Stream):
        return oracles.Stream(("name",), [(key, changed(row)) for key, row in rows.rows])
    return oracles.Table(("name",), {key: changed(row) for key, row in rows.rows.items()})


#: What a user writes, and what it must give, on tables and streams alike.
STEPS: dict[str, tuple[Any, Any]] = {
    "filter": (lambda rows: rows.filter(col("x") > 0), lambda rows: oracles.where(rows, positive)),
    "filter by a function": (
        lambda rows: rows.filter(lambda row: row["s"]),
        lambda rows: oracles.where(rows, lambda row: row["s"]),
    ),
    "select": (
        lambda rows: rows.select("s", more=col("h") + 1, a=col("n").struct.field("a")),
        lambda rows: oracles.mapped(rows, lambda row: {"s": row["s"], "more": plus_one(row), "a": row["n"]["a"]}),
    ),
    "with_columns": (
        lambda rows: rows.with_columns(h=col("h") + 1, one=pl.lit(1)),
        lambda rows: oracles.mapped(rows, lambda row: {**row, "h": plus_one(row), "one": 1}),
    ),
    "drop and rename": (
        lambda rows: rows.drop("s", "f").rename({"x": "y", "id": "name"}),
        renamed,
    ),
    "map": (lambda rows: rows.map(shortened, schema=PAIR), lambda rows: oracles.mapped(rows, shortened)),
    "update": (lambda rows: rows.update(counted_up), lambda rows: oracles.mapped(rows, counted_up_copy)),
    "second branch": (
        lambda rows: rows.branch(col("x") > 0, col("h") > 0)[1],
        lambda rows: oracles.where(rows, lambda row: not positive(row) and row["h"] is not None and row["h"] > 0),
    ),
    "peek": (lambda rows: rows.peek(counted_up), lambda rows: rows),
    "chain": (
        lambda rows: rows.filter(col("g").is_not_null()).map(shortened, schema=PAIR).filter(col("x") < 2),
        lambda rows: oracles.where(
            oracles.mapped(oracles.where(rows, lambda row: row["g"] is not None), shortened),
            lambda row: row["x"] is not None and row["x"] < 2,
        ),
    ),
}

#: What works on streams only.
STREAM_STEPS: dict[str, tuple[Any, Any]] = {
    **STEPS,
    "flat_map": (
        lambda rows: rows.flat_map(spread, schema=PAIR),
        lambda rows: oracles.flat_mapped(rows, spread),
    ),
}


def check_table(name: str, pack: Pack, ways: list[Layout]) -> None:
    written, meant = STEPS[name]
    app = es.Service("s")
    written(app.table("in", key="id", schema=schema(*COLUMNS))).to("out")

    def expected(sent: list[Placed]) -> dict[str, oracles.Table]:
        return {"out": meant(oracles.table(sent, "in", 0, COLUMNS))}

    check_tables("stateless", app, pack, ways, expected)


def check_stream(name: str, pack: Pack, ways: list[Layout]) -> None:
    written, meant = STREAM_STEPS[name]
    app = es.Service("s")
    written(app.stream("in", key="id", schema=schema(*COLUMNS))).to("out")

    def expected(sent: list[Placed]) -> dict[str, oracles.Stream]:
        return {"out": meant(oracles.stream(sent, "in", 0, COLUMNS))}

    check_streams("stateless", app, pack, ways, expected)


@examples(MANY // 2, FEW // 2)
@given(st.sampled_from(sorted(STEPS)), tables, layouts())
def test_stateless_steps_on_tables_equal_the_oracle(name, pack, ways):
    check_table(name, pack, ways)


@examples(MANY // 2, FEW // 2)
@given(st.sampled_from(sorted(STREAM_STEPS)), streams, layouts())
def test_stateless_steps_on_streams_equal_the_oracle(name, pack, ways):
    check_stream(name, pack, ways)


@examples(5)
@given(tables, layouts(5))
def test_stateless_steps_on_tables_cut_in_five_ways_are_the_same(pack, ways):
    check_table("chain", pack, ways)


@examples(15)
@given(st.booleans(), packs(events("in", values(COLUMNS), bad=BAD), longest=8), layouts())
def test_bad_records_among_good_ones_are_dead_letters_wherever_batches_end(on_table, pack, ways):
    app = es.Service("s")
    read = app.table if on_table else app.stream
    read("in", key="id", schema=schema(*COLUMNS)).to("out")
    for layout in ways:
        driver, sent = play(app, pack, layout)
        dead = oracles.dead(sent)
        assert_dead(driver, "out", dead)
        assert driver.counts("out").get("dead", 0) == len(dead)


def positive_only(row: dict[str, Any]) -> dict[str, Any]:
    if not positive(row):
        raise ValueError(row["id"])
    return {"x": row["x"]}


@examples(15)
@given(packs(events("in", values(("x", "f")))), layouts())
def test_rows_of_a_stream_for_which_a_function_raises_are_dead_letters(pack, ways):
    app = es.Service("s")
    app.stream("in", key="id", schema=schema("x", "f")).map(positive_only, schema={"x": int}).to("out")
    for layout in ways:
        driver, sent = play(app, pack, layout)
        rows = oracles.stream(sent, "in", 0, ("x", "f")).rows
        dead = {("in", *row.at[2:]) for _, row in rows if row.at and not positive(row.columns)}
        assert_dead(driver, "out", dead)
        good = sorted((key[0], row.columns["x"]) for key, row in rows if key and positive(row.columns))
        assert sorted((record.key, record.value["x"]) for record in driver.records("out")) == good


@examples(15)
@given(packs(events("in", values(("x", "f")))), layouts())
def test_rows_of_a_table_for_which_a_function_raises_are_absent(pack, ways):
    app = es.Service("s")
    app.table("in", key="id", schema=schema("x", "f")).map(positive_only, schema={"x": int}).to("out")

    def expected(sent: list[Placed]) -> dict[str, oracles.Table]:
        rows = oracles.where(oracles.table(sent, "in", 0, ("x", "f")), positive)
        return {"out": oracles.mapped(rows, lambda row: {"x": row["x"]})}

    check_tables("stateless", app, pack, ways, expected)


@examples(15)
@given(packs(events("one", values(("x", "f"))), events("two", values(("x", "f")))), layouts(partitions=1))
def test_merged_streams_have_the_rows_of_both(pack, ways):
    app = es.Service("s")
    one, two = (app.stream(name, key="id", schema=schema("x", "f")) for name in ("one", "two"))
    one.filter(col("x") > 0).merge(two).to("out")
    for layout in ways:
        driver, sent = play(app, pack, layout)
        both = oracles.where(oracles.stream(sent, "one", 0, ("x", "f")), positive).rows
        both = both + oracles.stream(sent, "two", 1, ("x", "f")).rows
        wanted = sorted((key[0], repr(row.columns["x"]), repr(row.columns["f"])) for key, row in both if key)
        found = [(r.key, repr(r.value["x"]), repr(r.value["f"])) for r in driver.records("out")]
        assert sorted(found) == wanted


@examples(15)
@given(packs(events("in", values(("g", "x")))), layouts())
def test_rows_of_a_stream_with_another_key_are_all_there(pack, ways):
    app = es.Service("s")
    app.stream("in", key="id", schema=schema("g", "x")).rekey("g").to("out")
    for layout in ways:
        driver, sent = play(app, pack, layout)
        rows = [row.columns for _, row in oracles.stream(sent, "in", 0, ("g", "x")).rows]
        wanted = sorted((row["g"], repr(row["id"]), repr(row["x"])) for row in rows if row["g"] is not None)
        assert sorted((r.key, repr(r.value["id"]), repr(r.value["x"])) for r in driver.records("out")) == wanted
        assert driver.counts("out").get("dropped.null_key", 0) == len(rows) - len(wanted)
