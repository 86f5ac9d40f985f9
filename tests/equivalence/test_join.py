from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars import col

import everstate as es
from everstate.topology.nodes import Join
from tests.equivalence import oracles
from tests.equivalence.histories import BAD, Layout, Pack, Placed, events, layouts, packs, schema, values
from tests.equivalence.playing import FEW, MANY, check_tables, examples

#: The operations whose results are proven here.
PROVES = (Join,)

LEFT = ("g", "x", "f")
RIGHT = ("f", "s", "n")
KINDS = ("inner", "left", "outer")

histories = packs(
    events("left", values(LEFT), keys="abc", bad=BAD),
    events("right", values(RIGHT), keys="abc", bad=BAD),
)


def called(left: dict | None, right: dict | None) -> dict | None:
    """A joiner: sees whole rows, and leaves some pairs out."""
    if left is not None and left["x"] == 1:
        return None
    return {"x": None if left is None else left["x"], "s": None if right is None else right["s"]}


def known(row: dict[str, Any]) -> bool:
    return row["x"] is not None and row["x"] != 2


def counted(left: oracles.Table, right: oracles.Table, how: str) -> oracles.Table:
    pairs = oracles.joined(oracles.where(left, known), right, how, oracles.side_by_side(LEFT, ["f"]))
    results = {"n": oracles.count(), "first": oracles.at_end("f_right", 0), "f": oracles.summed("f", 0.0)}
    return oracles.aggregated(pairs, ["g"], lambda row: (row["g"],), results)


#: What a user writes, and what it must give.
JOINS: dict[str, tuple[Any, Any]] = {
    "plain": (
        lambda left, right, how: left.join(right, how=how),
        lambda left, right, how: oracles.joined(left, right, how, oracles.side_by_side(LEFT, RIGHT)),
    ),
    "with a joiner": (
        lambda left, right, how: left.join(right, how=how, joiner=called, schema={"x": int | None, "s": str | None}),
        lambda left, right, how: oracles.joined(left, right, how, called),
    ),
    "filtered and counted": (
        lambda left, right, how: (
            left.filter(col("x") != 2)
            .join(right.select("f"), how=how)
            .group_by("g")
            .agg(n=es.count(), first=col("f_right").first(), f=col("f").sum())
        ),
        counted,
    ),
    "with itself": (
        lambda left, right, how: left.join(left.filter(col("x") != 2), how=how),
        lambda left, right, how: oracles.joined(
            left, oracles.where(left, known), how, oracles.side_by_side(LEFT, LEFT)
        ),
    ),
    "three tables": (
        lambda left, right, how: left.join(right, how=how).join(right.select("s"), how="outer", suffix="_again"),
        lambda left, right, how: oracles.joined(
            oracles.joined(left, right, how, oracles.side_by_side(LEFT, RIGHT)),
            right,
            "outer",
            oracles.side_by_side([*LEFT, "f_right", "s", "n"], ["s"], "_again"),
        ),
    ),
}


def check(name: str, how: str, pack: Pack, ways: list[Layout]) -> None:
    written, meant = JOINS[name]
    app = es.Service("s")
    left = app.table("left", key="id", schema=schema(*LEFT))
    right = app.table("right", key="id", schema=schema(*RIGHT))
    written(left, right, how).to("out")

    def expected(sent: list[Placed]) -> dict[str, oracles.Table]:
        one, other = oracles.table(sent, "left", 0, LEFT), oracles.table(sent, "right", 1, RIGHT)
        return {"out": meant(one, other, how)}

    check_tables("joins", app, pack, ways, expected)


@examples(MANY, FEW)
@given(st.sampled_from(sorted(JOINS)), st.sampled_from(KINDS), histories, layouts())
def test_joins_equal_the_oracle(name, how, pack, ways):
    check(name, how, pack, ways)


@pytest.mark.parametrize("how", KINDS)
@examples(3)
@given(name=st.sampled_from(sorted(JOINS)), pack=histories, ways=layouts(5))
def test_joins_cut_in_five_ways_are_the_same(how, name, pack, ways):
    check(name, how, pack, ways)
