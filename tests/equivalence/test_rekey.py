from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars import col

import everstate as es
from everstate.topology.nodes import RekeyTable
from tests.equivalence import oracles
from tests.equivalence.histories import BAD, Layout, Pack, Placed, events, layouts, packs, schema, values
from tests.equivalence.playing import FEW, MANY, check_streams, check_tables, examples

#: The operations whose results are proven here.
PROVES = (RekeyTable,)

COLUMNS = ("g", "h", "f", "n")

tables = packs(events("in", values(COLUMNS), bad=BAD))
streams = packs(events("in", values(COLUMNS), bad=BAD[:5]))


def by(*names: str) -> Any:
    return lambda row: tuple(row[name] for name in names)


def doubled(row: dict[str, Any]) -> tuple[int | None]:
    return (None if row["h"] is None else row["h"] * 2,)


#: What a user writes, and what it must give.
CHAINS: dict[str, tuple[Any, Any]] = {
    "by a column": (lambda rows: rows.rekey("g"), lambda rows: oracles.rekeyed(rows, ["g"], by("g"))),
    "to a number of fixed width": (
        lambda rows: rows.rekey("h", key_format="number"),
        lambda rows: oracles.rekeyed(rows, ["h"], by("h")),
    ),
    "by an expression": (
        lambda rows: rows.rekey(twice=col("h") * 2),
        lambda rows: oracles.rekeyed(rows, ["twice"], doubled),
    ),
    "by two columns": (
        lambda rows: rows.rekey("g", "h"),
        lambda rows: oracles.rekeyed(rows, ["g", "h"], by("g", "h")),
    ),
    "twice": (
        lambda rows: rows.rekey("g").rekey("h"),
        lambda rows: oracles.rekeyed(oracles.rekeyed(rows, ["g"], by("g")), ["h"], by("h")),
    ),
    "by a function, then counted": (
        lambda rows: (
            rows.rekey(lambda row: f"{row['g']}{row['h']}", name="both")
            .group_by("g")
            .agg(n=es.count(), last=col("f").last())
        ),
        lambda rows: oracles.aggregated(
            oracles.rekeyed(rows, ["both"], lambda row: (f"{row['g']}{row['h']}",)),
            ["g"],
            by("g"),
            {"n": oracles.count(), "last": oracles.at_end("f", -1)},
        ),
    ),
    "joined with itself": (
        lambda rows: rows.rekey("g").join(rows.rekey(g=col("g")).select("h"), how="outer").select("f", "h_right"),
        lambda rows: oracles.mapped(
            oracles.rekeyed(rows, ["g"], by("g")), lambda row: {"f": row["f"], "h_right": row["h"]}
        ),
    ),
}


def check(name: str, pack: Pack, ways: list[Layout]) -> None:
    written, meant = CHAINS[name]
    app = es.Service("s")
    written(app.table("in", key="id", schema=schema(*COLUMNS))).to("out")

    def expected(sent: list[Placed]) -> dict[str, oracles.Table]:
        return {"out": meant(oracles.table(sent, "in", 0, COLUMNS))}

    check_tables("re-keyed tables", app, pack, ways, expected)


@examples(MANY, FEW)
@given(st.sampled_from(sorted(CHAINS)), tables, layouts())
def test_rekeyed_tables_equal_the_oracle(chain, pack, ways):
    check(chain, pack, ways)


@pytest.mark.parametrize("chain", sorted(CHAINS))
@examples(2)
@given(pack=tables, ways=layouts(5))
def test_rekeyed_tables_cut_in_five_ways_are_the_same(chain, pack, ways):
    check(chain, pack, ways)


@examples(12)
@given(streams, layouts(partitions=1))
def test_rekeyed_streams_equal_the_oracle(pack, ways):
    app = es.Service("s")
    app.stream("in", key="id", schema=schema(*COLUMNS)).rekey("g").to("by-g")

    def expected(sent: list[Placed]) -> dict[str, oracles.Stream]:
        stream = oracles.stream(sent, "in", 0, COLUMNS)
        named = [((row.columns["g"],), row) for _, row in stream.rows if row.columns["g"] is not None]
        return {"by-g": oracles.Stream(("g",), named)}

    check_streams("re-keyed tables", app, pack, ways, expected)
