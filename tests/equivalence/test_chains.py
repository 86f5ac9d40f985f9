"""Random chains of table operations. Every step takes and gives a table with the key `k` and the columns g, x and f."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from polars import col

import everstate as es
from tests.equivalence import oracles
from tests.equivalence.histories import FINITE, Layout, Pack, Placed, events, layouts, packs
from tests.equivalence.playing import FEW, MANY, check_tables, examples

if TYPE_CHECKING:
    from collections.abc import Callable

COLUMNS = ("g", "x", "f")
SCHEMA = {"k": str, "g": str | None, "x": int | None, "f": float | None}

value = st.fixed_dictionaries(
    {
        "g": st.sampled_from(["a", "a", "b", "c", None]),
        "x": st.sampled_from([-1, 0, 1, 1, 2, 5, None]),
        "f": st.none() | FINITE,
    }
)
histories = packs(events("left", value, keys="abc"), events("right", value, keys="abc"), longest=10)


@dataclass(frozen=True)
class Step:
    """One step of a chain.

    Attributes:
        written: (table, right source) -> table: what a user writes.
        meant: The same for the oracle.
        ordered: It needs positions that do not depend on how a history is cut.
    """

    written: Callable[[Any, Any], Any]
    meant: Callable[[oracles.Table, oracles.Table], oracles.Table]
    ordered: bool = False


def has_x(row: dict[str, Any]) -> bool:
    return row["x"] is not None and row["x"] > 0


def turned(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "g": row["g"],
        "x": None if row["x"] is None else 1 - row["x"],
        "f": None if row["f"] is None else -row["f"],
    }


def by_group(row: dict[str, Any]) -> tuple[str | None]:
    return (row["g"],)


def rekeyed(table: oracles.Table) -> oracles.Table:
    rows = {key: row._replace(columns={**row.columns, "old": row.columns["k"]}) for key, row in table.rows.items()}
    new = oracles.rekeyed(oracles.Table(table.names, rows), ["k"], by_group)
    return oracles.mapped(new, lambda row: {"g": row["old"], "x": row["x"], "f": row["f"]})


def first_known(one: dict[str, Any] | None, other: dict[str, Any] | None) -> dict[str, Any]:
    x = None if one is None else one["x"]
    return {
        "g": None if one is None else one["g"],
        "x": x if x is not None or other is None else other["x"],
        "f": None if other is None else other["f"],
    }


def both(table: Any) -> Any:
    return table.select("g", x=pl.coalesce("x", "x_right"), f=col("f_right"))


def key_of(row: dict[str, Any]) -> tuple[str]:
    return (row["k"],)


def added(total: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    return {"g": min(total["g"] or row["k"], row["k"]), "x": total["x"] + 1, "f": row["f"]}


def nothing() -> dict[str, Any]:
    return {"g": None, "x": 0, "f": None}


def none_yet() -> dict[str, Any]:
    return {"g": None, "x": 0, "f": None}


def counted(total: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    return {**total, "g": row["g"], "x": total["x"] + 1}


def discounted(total: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    return {**total, "x": total["x"] - 1}


STEPS: dict[str, Step] = {
    "filter": Step(lambda table, _: table.filter(col("x") > 0), lambda table, _: oracles.where(table, has_x)),
    "map": Step(
        lambda table, _: table.map(turned, schema={name: SCHEMA[name] for name in COLUMNS}),
        lambda table, _: oracles.mapped(table, turned),
    ),
    "with_columns": Step(
        lambda table, _: table.with_columns(x=col("x") + 1, f=col("f") * 3),
        lambda table, _: oracles.mapped(
            table,
            lambda row: {
                "g": row["g"],
                "x": None if row["x"] is None else row["x"] + 1,
                "f": None if row["f"] is None else row["f"] * 3,
            },
        ),
    ),
    "aggregate": Step(
        lambda table, _: table.group_by(k=col("g")).agg(g=col("k").min(), x=col("x").max(), f=col("f").sum()),
        lambda table, _: oracles.aggregated(
            table,
            ["k"],
            by_group,
            {"g": oracles.extreme("k", min), "x": oracles.extreme("x", max), "f": oracles.summed("f", 0.0)},
        ),
    ),
    "count": Step(
        lambda table, _: table.group_by(k=col("g")).agg(g=col("k").max(), x=es.count(), f=col("f").mean()),
        lambda table, _: oracles.aggregated(
            table, ["k"], by_group, {"g": oracles.extreme("k", max), "x": oracles.count(), "f": oracles.mean("f")}
        ),
    ),
    "last": Step(
        lambda table, _: table.group_by(k=col("g")).agg(g=col("k").last(), x=col("x").first(), f=col("f").last()),
        lambda table, _: oracles.aggregated(
            table,
            ["k"],
            by_group,
            {"g": oracles.at_end("k", -1), "x": oracles.at_end("x", 0), "f": oracles.at_end("f", -1)},
        ),
        ordered=True,
    ),
    "fold": Step(
        lambda table, _: table.group_by(k=col("g")).aggregate(
            nothing, added, schema={name: SCHEMA[name] for name in COLUMNS}
        ),
        lambda table, _: oracles.folded(table, ["k"], by_group, nothing, added),
    ),
    "fold with remove": Step(
        lambda table, _: table.group_by(k=col("g")).aggregate(
            none_yet, counted, discounted, schema={name: SCHEMA[name] for name in COLUMNS}
        ),
        lambda table, _: oracles.folded(table, ["k"], by_group, none_yet, counted),
    ),
    "rekey": Step(
        lambda table, _: table.rekey(new=col("g")).select("x", "f", g=col("k")).rename({"new": "k"}),
        lambda table, _: rekeyed(table),
        ordered=True,
    ),
    "inner join": Step(
        lambda table, right: both(table.join(right)),
        lambda table, right: oracles.joined(table, right, "inner", first_known),
    ),
    "left join": Step(
        lambda table, right: both(table.join(right, how="left")),
        lambda table, right: oracles.joined(table, right, "left", first_known),
    ),
    "outer join": Step(
        lambda table, right: both(table.join(right, how="outer")),
        lambda table, right: oracles.joined(table, right, "outer", first_known),
    ),
    "outer join with itself": Step(
        lambda table, _: both(table.join(table.filter(col("x") > 0), how="outer")),
        lambda table, _: oracles.joined(table, oracles.where(table, has_x), "outer", first_known),
    ),
    "foreign join": Step(
        lambda table, right: both(table.join(right, on="g")),
        lambda table, right: oracles.foreign_joined(table, right, "inner", by_group, first_known),
    ),
    "left foreign join": Step(
        lambda table, right: both(table.join(right, on="g", how="left")),
        lambda table, right: oracles.foreign_joined(table, right, "left", by_group, first_known),
    ),
    "foreign join with itself": Step(
        lambda table, _: both(table.join(table, on="g", how="left")),
        lambda table, _: oracles.foreign_joined(table, table, "left", by_group, first_known),
    ),
}


def unordered(table: oracles.Table) -> oracles.Table:
    """What comes from an output's topic has positions there that depend on the micro-batches."""
    return oracles.Table(table.names, {key: row._replace(at=None) for key, row in table.rows.items()})


def check(names: list[str], outputs: set[int], pack: Pack, ways: list[Layout]) -> None:
    """Plays a chain.

    Args:
        names: Its steps; those that need an order where there is none are left out.
        outputs: After which steps there is an output, from which the next step reads.
        pack: The histories.
        ways: How they are played.
    """
    app = es.Service("s")
    table, right = (app.table(topic, key="k", schema=SCHEMA) for topic in ("left", "right"))
    chain: list[tuple[Step | None, str | None]] = []
    in_order = True
    for place, name in enumerate(names):
        step = STEPS[name]
        if step.ordered and not in_order:
            continue
        table = step.written(table, right)
        in_order = in_order and place not in outputs
        topic = f"out-{place}" if place in outputs else None
        if topic is not None:
            table = table.to(topic)
        chain.append((step, topic))
    table.to("out")

    def expected(sent: list[Placed]) -> dict[str, oracles.Table]:
        rows, other = (oracles.table(sent, topic, n, COLUMNS, "k") for n, topic in enumerate(("left", "right")))
        found = {}
        for step, topic in chain:
            rows = step.meant(rows, other)
            if topic is not None:
                rows = unordered(rows)
                found[topic] = rows
        return {**found, "out": rows}

    check_tables("chains", app, pack, ways, expected)


chains = st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=4)
ordered_chains = st.builds(
    lambda *parts: [name for name in parts if name],
    st.sampled_from(sorted(STEPS)),
    st.sampled_from(["aggregate", "count", "fold", "fold with remove", "last", "rekey"]),
    st.sampled_from(["", *sorted(STEPS)]),
    st.sampled_from(["rekey", "last"]),
)
some_outputs = st.sets(st.integers(0, 3), max_size=1)


@examples(MANY, FEW)
@given(chains, some_outputs, histories, layouts())
def test_chains_of_operations_equal_the_oracle(names, outputs, pack, ways):
    check(names, outputs, pack, ways)


@examples(MANY // 4, FEW // 2)
@given(ordered_chains, histories, layouts(3))
def test_chains_that_order_the_results_of_other_operations_equal_the_oracle(names, pack, ways):
    check(names, set(), pack, ways)


@examples(6)
@given(chains, some_outputs, histories, layouts(5))
def test_chains_of_operations_cut_in_five_ways_are_the_same(names, outputs, pack, ways):
    check(names, outputs, pack, ways)
