from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
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
from tests.equivalence.test_aggregates_table import COLUMNS, ENDS, EVERY, NEAR, REVERSIBLE, WHOLE, some_aggregates

#: The operations whose results are proven here.
PROVES = (Aggregate,)

unusual = packs(events("in", values(COLUMNS, FLOATS), bad=BAD[:5], lanes=True, nameless=True))
ordinary = packs(events("in", values(COLUMNS, FINITE), lanes=True), longest=24)


def check(chosen: dict[str, Any], pack: Pack, ways: list[Layout]) -> None:
    app = es.Service("s")
    rows = app.stream("in", key="id", schema=schema(*COLUMNS))
    rows.group_by("g").agg(**{name: expression for name, (expression, _) in chosen.items()}).to("by-g")
    results = {name: oracle for name, (_, oracle) in chosen.items()}

    def expected(sent: list[Placed]) -> dict[str, oracles.Table]:
        stream = oracles.stream(sent, "in", 0, COLUMNS)
        return {"by-g": oracles.aggregated(stream, ["g"], lambda row: (row["g"],), results)}

    check_tables("stream aggregates", app, pack, ways, expected, NEAR)


@examples(MANY, FEW)
@given(some_aggregates, unusual, layouts())
def test_aggregates_of_a_stream_any_together_equal_the_oracle(chosen, pack, ways):
    check(chosen, pack, ways)


@pytest.mark.parametrize("chosen", [REVERSIBLE, ENDS, WHOLE, EVERY], ids=["reversible", "ends", "whole", "every"])
@examples(3)
@given(pack=unusual, ways=layouts())
def test_aggregates_of_a_stream_all_of_a_sort_equal_the_oracle(chosen, pack, ways):
    check(chosen, pack, ways)


@examples(8)
@given(some_aggregates, ordinary, layouts(5))
def test_aggregates_of_a_stream_cut_in_five_ways_are_the_same_to_the_last_digit(chosen, pack, ways):
    check(chosen, pack, ways)


@examples(8)
@given(ordinary, layouts())
def test_aggregates_of_a_stream_by_its_key_equal_the_oracle(pack, ways):
    app = es.Service("s")
    rows = app.stream("in", key="id", schema=schema(*COLUMNS))
    rows.group_by("id").agg(n=es.count(), f=col("f").sum(), all=es.collect("s")).to("by-id")

    def expected(sent: list[Placed]) -> dict[str, oracles.Table]:
        stream = oracles.stream(sent, "in", 0, COLUMNS)
        results = {"n": oracles.count(), "f": oracles.summed("f", 0.0), "all": oracles.collected("s")}
        return {"by-id": oracles.aggregated(stream, ["id"], lambda row: (row["id"],), results)}

    check_tables("stream aggregates", app, pack, ways, expected)
