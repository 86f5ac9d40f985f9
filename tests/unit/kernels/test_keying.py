from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from polars import col

import everstate as es
from everstate.kernels.keying import rekeyed
from everstate.kernels.ledger import Ledger
from everstate.kernels.operations import rekey
from everstate.kernels.operations.aggregate import aggregate
from everstate.kernels.operations.fold import fold
from everstate.kernels.rows import SYSTEM, empty

SCHEMA = {"id": str, "g": str | None, "x": int}


def table() -> Any:
    return es.Service("s").table("in", key="id", schema=SCHEMA)


def rows(*values: tuple[int, str, str | None, int]) -> pl.DataFrame:
    schema = {**SYSTEM, "id": pl.String(), "g": pl.String(), "x": pl.Int64()}
    return pl.DataFrame(
        [(key.encode(), op, 0, 0, 0, n, 0, key, g, x) for n, (op, key, g, x) in enumerate(values)], schema, orient="row"
    )


def test_rekeyed_sets_the_new_key_its_columns_and_the_old_key():
    node = table().group_by(g=col("g") + "!").agg(n=es.count()).node
    found = rekeyed(node.keying, rows((1, "a", "A", 1)), Ledger(("in",)), node)
    assert found.select("$key", "$ck", "g").rows() == [(b"A!", b"a", "A!")]


def test_rekeyed_null_part_drops_the_row_and_counts_additions_only():
    ledger = Ledger(("in",))
    node = table().group_by("g", "x").agg(n=es.count()).node
    found = rekeyed(node.keying, rows((-1, "a", None, 1), (1, "a", None, 2), (1, "b", "B", 3)), ledger, node)
    assert found["$key"].to_list() == [b'["B",3]']
    assert ledger.counts == {"dropped.null_key": 1}


def test_rekeyed_function_is_called_with_the_row_and_may_fail_for_one():
    def length(row: dict[str, Any]) -> int:
        return len(row["g"])

    ledger = Ledger(("in",))
    node = table().rekey(length, key_type=int).node
    found = rekeyed(node.keying, rows((1, "a", "AAA", 1), (1, "b", None, 2)), ledger, node)
    assert found["$key"].to_list() == [b"3"]
    assert ledger.letters()["$off"].to_list() == [1]


@pytest.mark.parametrize("kind", ["table", "stream"])
def test_prepare_no_rows_gives_no_rows(kind):
    feeder = getattr(es.Service("s"), kind)("in", key="id", schema=SCHEMA)
    grouped = feeder.group_by("g")
    nothing = empty(dict(feeder.node.schema.polars))
    combining = grouped.agg(n=es.count(), s=col("x").sum(), v=col("x").var(), lo=col("x").min(), f=col("x").first())
    keeping = grouped.agg(c=es.collect("x"))
    for node in (combining.node, keeping.node):
        assert aggregate.prepare(node, 0, nothing, Ledger(())).is_empty()
    assert fold.prepare(grouped.reduce(max).node, 0, nothing, Ledger(())).is_empty()
    if kind == "table":
        assert rekey.prepare(feeder.rekey("g").node, 0, nothing, Ledger(())).is_empty()
