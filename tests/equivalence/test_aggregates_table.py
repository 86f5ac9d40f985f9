from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars import col

import everstate as es
from everstate.topology.nodes import Aggregate
from tests.equivalence import oracles
from tests.equivalence.histories import (
    BAD,
    FINITE,
    FLOATS,
    Layout,
    Pack,
    Placed,
    events,
    layouts,
    packs,
    schema,
    values,
)
from tests.equivalence.playing import FEW, MANY, check_tables, examples

#: The operations whose results are proven here.
PROVES = (Aggregate,)

COLUMNS = ("g", "h", "x", "f", "s", "d", "n")
NEAR = ("median_f", "quantile_f", "median_x")

#: Every aggregate by name: what a user writes, and what it must give.
REVERSIBLE: dict[str, tuple[pl.Expr, Any]] = {
    "count": (es.count(), oracles.count()),
    "count_x": (col("x").count(), oracles.counted("x")),
    "sum_x": (col("x").sum(), oracles.summed("x")),
    "sum_f": (col("f").sum(), oracles.summed("f", 0.0)),
    "sum_d": (col("d").sum(), oracles.summed("d", oracles.ZERO)),
    "mean_x": (col("x").mean(), oracles.mean("x")),
    "mean_f": (col("f").mean(), oracles.mean("f")),
    "var_x": (col("x").var(), oracles.variance("x", 1)),
    "var_f": (col("f").var(ddof=0), oracles.variance("f", 0)),
    "std_f": (col("f").std(), oracles.deviation("f", 1)),
    "share": (col("f").sum() / es.count(), lambda rows: oracles.summed("f", 0.0)(rows) / len(rows)),
    "many": (
        pl.when(es.count() > 2).then(col("h").sum()).otherwise(None),
        lambda rows: oracles.summed("h")(rows) if len(rows) > 2 else None,
    ),
}
ENDS: dict[str, tuple[pl.Expr, Any]] = {
    "min_x": (col("x").min(), oracles.extreme("x", min)),
    "max_x": (col("x").max(), oracles.extreme("x", max)),
    "min_f": (col("f").min(), oracles.extreme("f", min)),
    "max_f": (col("f").max(), oracles.extreme("f", max)),
    "min_s": (col("s").min(), oracles.extreme("s", min)),
    "max_d": (col("d").max(), oracles.extreme("d", max)),
    "first_x": (col("x").first(), oracles.at_end("x", 0)),
    "first_n": (col("n").first(), oracles.at_end("n", 0)),
    "last_f": (col("f").last(), oracles.at_end("f", -1)),
    "last_s": (col("s").last(), oracles.at_end("s", -1)),
}
WHOLE: dict[str, tuple[pl.Expr, Any]] = {
    "unique_x": (col("x").n_unique(), oracles.distinct("x")),
    "unique_f": (col("f").n_unique(), oracles.distinct("f")),
    "collect_f": (es.collect("f"), oracles.collected("f")),
    "collect_n": (es.collect("n"), oracles.collected("n")),
    "top_x": (es.top_k("x", 2), oracles.top("x", 2)),
    "top_f": (es.top_k("f", 3), oracles.top("f", 3)),
    "top_s_by_f": (es.top_k("s", 2, by="f"), oracles.top("s", 2, by="f")),
    "median_x": (es.median("x"), oracles.quantile("x", 0.5)),
    "median_f": (es.median("f"), oracles.quantile("f", 0.5)),
    "quantile_f": (es.quantile("f", 0.3), oracles.quantile("f", 0.3)),
}
EVERY = {**REVERSIBLE, **ENDS, **WHOLE}


some = st.lists(st.sampled_from(sorted(EVERY)), min_size=1, max_size=5, unique=True)
some_aggregates = some.map(lambda names: {name: EVERY[name] for name in names})
unusual = packs(events("in", values(COLUMNS, FLOATS), bad=BAD))
ordinary = packs(events("in", values(COLUMNS, FINITE), keys="abcdefgh"), longest=24)


def check(chosen: dict[str, Any], pack: Pack, ways: list[Layout]) -> None:
    app = es.Service("s")
    rows = app.table("in", key="id", schema=schema(*COLUMNS))
    rows.group_by("g").agg(**{name: expression for name, (expression, _) in chosen.items()}).to("by-g")
    results = {name: oracle for name, (_, oracle) in chosen.items()}

    def expected(sent: list[Placed]) -> dict[str, oracles.Table]:
        table = oracles.table(sent, "in", 0, COLUMNS)
        return {"by-g": oracles.aggregated(table, ["g"], lambda row: (row["g"],), results)}

    check_tables("table aggregates", app, pack, ways, expected, NEAR)


@examples(MANY, FEW)
@given(some_aggregates, unusual, layouts())
def test_aggregates_of_a_table_any_together_equal_the_oracle(chosen, pack, ways):
    check(chosen, pack, ways)


@pytest.mark.parametrize("chosen", [REVERSIBLE, ENDS, WHOLE, EVERY], ids=["reversible", "ends", "whole", "every"])
@examples(3)
@given(pack=unusual, ways=layouts())
def test_aggregates_of_a_table_all_of_a_sort_equal_the_oracle(chosen, pack, ways):
    check(chosen, pack, ways)


@examples(8)
@given(some_aggregates, ordinary, layouts(5))
def test_aggregates_of_a_table_cut_in_five_ways_are_the_same_to_the_last_digit(chosen, pack, ways):
    check(chosen, pack, ways)


@examples(6)
@given(ordinary, layouts())
def test_aggregates_of_a_table_by_several_columns_expressions_and_functions_equal_the_oracle(pack, ways):
    app = es.Service("s")
    rows = app.table("in", key="id", schema=schema(*COLUMNS))
    rows.group_by("g", "h").agg(n=es.count(), f=col("f").sum()).to("by-both")
    rows.group_by("g", parity=col("x") % 2).agg(n=es.count(), last=col("s").last()).to("by-parity")
    rows.group_by(lambda row: row["s"], name="letter").agg(n=es.count(), low=col("x").min()).to("by-letter")

    def expected(sent: list[Placed]) -> dict[str, oracles.Table]:
        table = oracles.table(sent, "in", 0, COLUMNS)
        count, last, low = oracles.count(), oracles.at_end("s", -1), oracles.extreme("x", min)
        total = oracles.summed("f", 0.0)
        parity = lambda row: (row["g"], None if row["x"] is None else row["x"] % 2)
        return {
            "by-both": oracles.aggregated(
                table, ["g", "h"], lambda row: (row["g"], row["h"]), {"n": count, "f": total}
            ),
            "by-parity": oracles.aggregated(table, ["g", "parity"], parity, {"n": count, "last": last}),
            "by-letter": oracles.aggregated(table, ["letter"], lambda row: (row["s"],), {"n": count, "low": low}),
        }

    check_tables("table aggregates", app, pack, ways, expected)
