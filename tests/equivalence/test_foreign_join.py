from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars import col

import everstate as es
from everstate.topology.nodes import ForeignJoin
from tests.equivalence import oracles
from tests.equivalence.histories import BAD, Layout, Pack, Placed, events, layouts, packs, schema, values
from tests.equivalence.playing import FEW, MANY, check_tables, examples

#: The operations whose results are proven here.
PROVES = (ForeignJoin,)

LEFT = ("ref", "g", "x", "f")
RIGHT = ("f", "s", "n")

histories = packs(
    events("left", values(LEFT), bad=BAD),
    events("right", values(RIGHT), keys="pqr", bad=BAD),
)


def called(left: dict, right: dict | None) -> dict | None:
    """A joiner: sees whole rows, and leaves some pairs out."""
    if left["x"] == 1:
        return None
    return {"x": left["x"], "s": None if right is None else right["s"], "of": None if right is None else right["id"]}


def reference(row: dict[str, Any]) -> tuple[str | None]:
    return (row["ref"],)


def plain(left: oracles.Table, right: oracles.Table, how: str) -> oracles.Table:
    return oracles.foreign_joined(left, right, how, reference, oracles.side_by_side(LEFT, RIGHT))


RESULTS = {"n": oracles.count(), "last": oracles.at_end("s", -1), "f": oracles.summed("f", 0.0)}

#: What a user writes, and what it must give.
JOINS: dict[str, tuple[Any, Any]] = {
    "by a column": (lambda left, right, how: left.join(right, on="ref", how=how), plain),
    "by a function, with a joiner": (
        lambda left, right, how: left.join(
            right,
            on=lambda row: row["ref"],
            how=how,
            joiner=called,
            schema={"x": int | None, "s": str | None, "of": str | None},
        ),
        lambda left, right, how: oracles.foreign_joined(left, right, how, reference, called),
    ),
    "counted": (
        lambda left, right, how: (
            left.join(right, on=col("ref"), how=how)
            .group_by("g")
            .agg(n=es.count(), last=col("s").last(), f=col("f").sum())
        ),
        lambda left, right, how: oracles.aggregated(plain(left, right, how), ["g"], lambda row: (row["g"],), RESULTS),
    ),
    "joined with its left side": (
        lambda left, right, how: (
            left.join(right, on="ref", how=how).join(left.select("x"), how="outer", suffix="_own").select("s", "x_own")
        ),
        lambda left, right, how: oracles.joined(
            plain(left, right, how),
            left,
            "outer",
            lambda one, other: {"s": None if one is None else one["s"], "x_own": None if other is None else other["x"]},
        ),
    ),
    "of a filtered right side": (
        lambda left, right, how: left.join(right.filter(col("s") != "a").select("s"), on="ref", how=how),
        lambda left, right, how: oracles.foreign_joined(
            left,
            oracles.where(right, lambda row: row["s"] not in (None, "a")),
            how,
            reference,
            oracles.side_by_side(LEFT, ["s"]),
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

    check_tables("foreign-key joins", app, pack, ways, expected)


@examples(MANY, FEW)
@given(st.sampled_from(sorted(JOINS)), st.sampled_from(["inner", "left"]), histories, layouts())
def test_foreign_joins_equal_the_oracle(name, how, pack, ways):
    check(name, how, pack, ways)


@pytest.mark.parametrize("name", sorted(JOINS))
@examples(2)
@given(how=st.sampled_from(["inner", "left"]), pack=histories, ways=layouts(5))
def test_foreign_joins_cut_in_five_ways_are_the_same(name, how, pack, ways):
    check(name, how, pack, ways)
