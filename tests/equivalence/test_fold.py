from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars import col

import everstate as es
from everstate.topology.nodes import Fold
from tests.equivalence import oracles
from tests.equivalence.histories import BAD, Layout, Pack, Placed, events, layouts, packs, schema, values
from tests.equivalence.playing import FEW, MANY, check_tables, examples

#: The operations whose results are proven here.
PROVES = (Fold,)

COLUMNS = ("g", "h", "x", "s", "n")
SUMS = {"n": int, "sum": int, "letters": dict[str, int]}
LISTED = {"rows": list[str]}

tables = packs(events("in", values(COLUMNS), bad=BAD))
streams = packs(events("in", values(COLUMNS), bad=BAD))


def start() -> dict[str, Any]:
    return {"n": 0, "sum": 0, "letters": {}}


def counted(total: dict[str, Any], row: dict[str, Any], sign: int) -> dict[str, Any]:
    """Undoes itself with the other sign, in any order."""
    letters = dict(total["letters"])
    if row["s"] is not None:
        letters[row["s"]] = letters.get(row["s"], 0) + sign
    kept = {letter: number for letter, number in letters.items() if number}
    return {"n": total["n"] + sign, "sum": total["sum"] + sign * (row["h"] or 0), "letters": kept}


def add(total: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    return counted(total, row, 1)


def remove(total: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    return counted(total, row, -1)


def listed(total: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    """Depends on the order, and changes what it was given."""
    total["rows"].append(f"{row['id']} {row['s']}")
    return total


def until_two(total: dict[str, Any], row: dict[str, Any]) -> dict[str, Any] | None:
    """Deletes the group's aggregate at times."""
    return None if row["h"] == 2 else listed(total, row)


def higher(result: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    """A reduce that keeps a whole row: that with the higher x, of equal ones the first."""
    rank = lambda each: -(10**20) if each["x"] is None else each["x"]
    return row if rank(row) > rank(result) else result


def both(result: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    return {
        **result,
        "h": (result["h"] or 0) + (row["h"] or 0),
        "s": None,
        "id": "",
        "x": None,
        "n": {"a": None, "l": []},
    }


def apart(result: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    return {**both(result, row), "h": (result["h"] or 0) - (row["h"] or 0)}


def group(row: dict[str, Any]) -> tuple[str | None]:
    return (row["g"],)


def key(row: dict[str, Any]) -> tuple[str]:
    return (row["id"],)


def empty_list() -> dict[str, Any]:
    return {"rows": []}


#: What a user writes, and what it must give.
ON_TABLES: dict[str, tuple[Any, Any]] = {
    "aggregate with remove": (
        lambda rows: rows.group_by("g").aggregate(start, add, remove, schema=SUMS),
        lambda rows: oracles.folded(rows, ["g"], group, start, add),
    ),
    "aggregate without remove": (
        lambda rows: rows.group_by("g").aggregate(empty_list, listed, schema=LISTED),
        lambda rows: oracles.folded(rows, ["g"], group, empty_list, listed),
    ),
    "aggregate that deletes": (
        lambda rows: rows.group_by("g").aggregate(empty_list, until_two, schema=LISTED),
        lambda rows: oracles.folded(rows, ["g"], group, empty_list, until_two),
    ),
    "reduce without remove": (
        lambda rows: rows.group_by("g").reduce(higher),
        lambda rows: oracles.folded(rows, ["g"], group, None, higher),
    ),
}
ON_STREAMS: dict[str, tuple[Any, Any]] = {
    "aggregate by group": (
        lambda rows: rows.group_by("g").aggregate(start, add, schema=SUMS),
        lambda rows: oracles.folded(rows, ["g"], group, start, add),
    ),
    "aggregate by key": (
        lambda rows: rows.group_by("id").aggregate(empty_list, listed, schema=LISTED),
        lambda rows: oracles.folded(rows, ["id"], key, empty_list, listed),
    ),
    "aggregate by key that deletes": (
        lambda rows: rows.group_by("id").aggregate(empty_list, until_two, schema=LISTED),
        lambda rows: oracles.folded(rows, ["id"], key, empty_list, until_two),
    ),
    "reduce by key": (
        lambda rows: rows.group_by("id").reduce(higher),
        lambda rows: oracles.folded(rows, ["id"], key, None, higher),
    ),
}


def check(name: str, pack: Pack, ways: list[Layout], *, on_table: bool) -> None:
    written, meant = (ON_TABLES if on_table else ON_STREAMS)[name]
    app = es.Service("s")
    read, origin = (app.table, oracles.table) if on_table else (app.stream, oracles.stream)
    written(read("in", key="id", schema=schema(*COLUMNS))).to("out")

    def expected(sent: list[Placed]) -> dict[str, oracles.Table]:
        return {"out": meant(origin(sent, "in", 0, COLUMNS))}

    check_tables("folds", app, pack, ways, expected)


@examples(MANY // 2, FEW // 2)
@given(st.sampled_from(sorted(ON_TABLES)), tables, layouts())
def test_folds_of_tables_equal_the_oracle(name, pack, ways):
    check(name, pack, ways, on_table=True)


@examples(MANY // 2, FEW // 2)
@given(st.sampled_from(sorted(ON_STREAMS)), streams, layouts())
def test_folds_of_streams_equal_the_oracle(name, pack, ways):
    check(name, pack, ways, on_table=False)


@pytest.mark.parametrize("name", sorted(ON_TABLES))
@examples(2)
@given(pack=tables, ways=layouts(5))
def test_folds_of_tables_cut_in_five_ways_are_the_same(name, pack, ways):
    check(name, pack, ways, on_table=True)


@examples(12)
@given(tables, layouts())
def test_folds_of_tables_by_a_reduce_with_remove_follow_the_sum(pack, ways):
    app = es.Service("s")
    rows = app.table("in", key="id", schema=schema(*COLUMNS)).filter(col("h").is_not_null())
    rows.group_by("g").reduce(both, apart).select("h").to("out")

    def expected(sent: list[Placed]) -> dict[str, oracles.Table]:
        known = oracles.where(oracles.table(sent, "in", 0, COLUMNS), lambda row: row["h"] is not None)
        return {"out": oracles.aggregated(known, ["g"], group, {"h": oracles.summed("h")})}

    check_tables("folds", app, pack, ways, expected)
