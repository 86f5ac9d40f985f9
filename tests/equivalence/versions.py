"""A small grammar of services, so that random edits lead from any of them to any other.

Every step takes and gives rows with the key `k` and the columns g, x and f, and has a number that changes its meaning.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl
from hypothesis import strategies as st
from polars import col

import everstate as es

if TYPE_CHECKING:
    from collections.abc import Callable

    from everstate.topology.nodes import OnChange
    from everstate.topology.unit import Unit

TABLES, STREAMS = ("left", "right"), ("events", "more")
SCHEMA = {"k": str, "g": str | None, "x": int | None, "f": float | None}
COLUMNS = {name: SCHEMA[name] for name in ("g", "x", "f")}


def turned(number: int) -> Any:
    def turn(row: dict[str, Any]) -> dict[str, Any]:
        return {"g": row["g"], "x": None if row["x"] is None else number - row["x"], "f": row["f"]}

    return turn


def added(number: int) -> Any:
    def add(total: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
        return {"g": min(total["g"] or row["k"], row["k"]), "x": (total["x"] or 0) + number, "f": row["f"]}

    return add


def counted(number: int) -> Any:
    def count(total: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
        return {**total, "x": (total["x"] or 0) + number + 1}

    return count


def discounted(number: int) -> Any:
    def discount(total: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
        return {**total, "x": total["x"] - number - 1}

    return discount


def nothing() -> dict[str, Any]:
    return {"g": None, "x": None, "f": None}


def remembered(number: int) -> Any:
    """The row before, and how many there were."""

    def remember(row: dict[str, Any], state: es.State) -> dict[str, Any]:
        last = state.get("g")
        state.set("g", row["g"])
        state.set("n", state.get("n", number) + 1)
        return {"g": last, "x": state.get("n"), "f": row["f"]}

    return remember


def rising(number: int) -> Any:
    """Lets a row pass if its x is above that of the last one that did."""

    def rises(row: dict[str, Any], state: es.State) -> bool:
        x = -100 if row["x"] is None else row["x"]
        passes = x >= state.get("x", -99) + number
        if passes:
            state.set("x", x)
        return passes

    return rises


def concatenated(number: int) -> Any:
    """Depends on the order of rows."""

    def concatenate(total: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
        text = (total["g"] or "") + (row["g"] or "-")
        return {"g": text[-3 - number :], "x": row["x"], "f": total["f"]}

    return concatenate


def kept(state: Any) -> Any:
    """Converts state that need not be converted: right only if the edit has not changed what is stored."""
    return state


def both(table: Any) -> Any:
    return table.select("g", x=pl.coalesce("x", "x_right"), f=col("f_right"))


GROUP = pl.coalesce("g", pl.lit("none"))

#: (table, the other table source, number) -> table.
TABLE_STEPS: dict[str, Callable[[Any, Any, int], Any]] = {
    "filter": lambda table, _, n: table.filter(col("x") >= n),
    "map": lambda table, _, n: table.map(turned(n), schema=COLUMNS),
    "with_columns": lambda table, _, n: table.with_columns(x=col("x") + n, f=col("f") * 3),
    "sum": lambda table, _, n: table.group_by(k=GROUP).agg(
        g=col("k").min(), x=col("x").max() + n, f=(col("f") / 3).sum()
    ),
    "count": lambda table, _, n: table.group_by(k=col("g")).agg(g=col("k").max(), x=es.count() + n, f=col("f").mean()),
    "fold": lambda table, _, n: table.group_by(k=GROUP).aggregate(nothing, added(n), schema=COLUMNS, migrate=kept),
    "fold with remove": lambda table, _, n: table.group_by(k=col("g")).aggregate(
        nothing, counted(n), discounted(n), schema=COLUMNS, migrate=kept
    ),
    "reduce": lambda table, _, n: table.group_by(k=GROUP).aggregate(nothing, concatenated(n), schema=COLUMNS),
    "join": lambda table, right, n: both(table.join(right, how=("inner", "left", "outer")[n])),
    "foreign join": lambda table, right, n: both(table.join(right, on="g", how=("inner", "left", "inner")[n])),
    "join with itself": lambda table, _, n: both(table.join(table.filter(col("x") > n), how="outer")),
}
#: Steps that go by the positions of rows, which are those of records only as long as no output lies between.
ORDERED_STEPS: dict[str, Callable[[Any, Any, int], Any]] = {
    "rekey": lambda table, _, n: (
        table.filter(col("x") >= n - 1).rekey(new=col("g")).select("x", "f", g=col("k")).rename({"new": "k"})
    ),
    "last": lambda table, _, n: table.group_by(k=GROUP).agg(
        g=col("k").last(), x=col("x").first() + n, f=col("f").last()
    ),
}
STREAM_STEPS: dict[str, Callable[[Any, int], Any]] = {
    "filter": lambda rows, n: rows.filter(col("x") >= n),
    "with_columns": lambda rows, n: rows.with_columns(x=col("x") + n),
    "rekey": lambda rows, n: (
        rows.rekey(k=pl.concat_str(GROUP, pl.lit("!" * n))) if n else rows.with_columns(f=col("f") * 2)
    ),
    "remember": lambda rows, n: rows.apply(remembered(n), stateful=True, schema=COLUMNS, migrate=kept),
    "rise": lambda rows, n: rows.filter(rising(n), stateful=True, migrate=kept),
}
#: How a stream becomes a table.
GATHERINGS: dict[str, Callable[[Any, int], Any]] = {
    "sum": lambda rows, n: rows.group_by("k").agg(g=col("g").max(), x=col("x").sum() + n, f=col("f").sum()),
    "last": lambda rows, n: rows.group_by(k=GROUP).agg(g=col("g").last(), x=es.count() + n, f=col("f").last()),
    "concatenate": lambda rows, n: rows.group_by(k=GROUP).aggregate(
        nothing, concatenated(n), schema=COLUMNS, migrate=kept
    ),
}
#: What the last output shows of its rows.
VIEWS: dict[str, Callable[[Any], Any]] = {
    "all": lambda table: table,
    "less": lambda table: table.select("g", "x"),
    "more": lambda table: table.with_columns(y=col("x").is_null()),
    "real": lambda table: table.with_columns(x=col("x").cast(float)),
}

Steps = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Version:
    """A service.

    Attributes:
        topics: A table, or streams that are merged.
        rows: Steps on the streams.
        gathering: How they become a table.
        chain: The steps before each output.
        view: What the last output shows.
        stream: There is an output of the streams' rows, too.
        wide: Sources have a column more, which is null in every record.
        on_change: What is declared for all outputs.
    """

    topics: tuple[str, ...]
    rows: Steps
    gathering: tuple[str, int]
    chain: tuple[Steps, ...]
    view: str
    stream: bool = False
    wide: bool = False
    on_change: OnChange = "recalculate"

    @property
    def schema(self) -> dict[str, Any]:
        """Of the sources."""
        return {**SCHEMA, "note": str | None} if self.wide else SCHEMA

    @property
    def outputs(self) -> list[str]:
        """The tables that it makes."""
        return [f"out-{place}" for place in range(len(self.chain))]

    @cached_property
    def units(self) -> dict[str, Unit]:
        """What is behind each output."""
        return {unit.output.topic: unit for unit in self.service().units()}

    @property
    def ordered(self) -> bool:
        """The order of arrival matters."""
        return self.stream or any(unit.order_sensitive for unit in self.units.values())

    def service(self) -> es.Service:
        """What a user would write."""
        app = es.Service("s")
        right = app.table("right", key="k", schema=self.schema)
        table = app.table("left", key="k", schema=self.schema) if self.topics == ("left",) else self._gathered(app)
        for place, steps in enumerate(self.chain):
            for name, number in steps:
                table = {**TABLE_STEPS, **ORDERED_STEPS}[name](table, right, number)
            if place == len(self.chain) - 1:
                table = VIEWS[self.view](table)
            table = table.to(f"out-{place}", on_change=self.on_change)
        return app

    def _gathered(self, app: es.Service) -> Any:
        rows, *others = (app.stream(topic, key="k", schema=self.schema) for topic in self.topics)
        rows = rows.merge(*others) if others else rows
        for name, number in self.rows:
            rows = STREAM_STEPS[name](rows, number)
        if self.stream:
            rows.to("rows", on_change=self.on_change)
        return GATHERINGS[self.gathering[0]](rows, self.gathering[1])


numbers = st.integers(0, 2)


def steps(names: Any, longest: int) -> st.SearchStrategy[Steps]:
    return st.lists(st.tuples(st.sampled_from(sorted(names)), numbers), min_size=1, max_size=longest).map(tuple)


def versions(*, stream: bool = False, longest: int = 3) -> st.SearchStrategy[Version]:
    """Any service of the grammar."""
    first = steps([*TABLE_STEPS, *ORDERED_STEPS], 2)
    topics = [STREAMS[:1], STREAMS] if stream else [TABLES[:1], STREAMS[:1], STREAMS]
    return st.builds(
        Version,
        st.sampled_from(topics),
        steps(STREAM_STEPS, 2),
        st.tuples(st.sampled_from(sorted(GATHERINGS)), numbers),
        st.tuples(first, st.lists(steps(TABLE_STEPS, 1), max_size=longest - 1)).map(
            lambda parts: (parts[0], *parts[1])
        ),
        st.sampled_from(sorted(VIEWS)),
        st.just(stream),
    )


@st.composite
def edits(draw: st.DrawFn, *, stream: bool = False, longest: int = 3) -> list[Version]:
    """A service and one to three versions that follow: small edits, and quite another service."""
    found = [draw(versions(stream=stream, longest=longest))]
    for _ in range(draw(st.integers(1, 3))):
        last, other = found[-1], draw(versions(stream=stream, longest=longest))
        on_rows = [] if last.topics == TABLES[:1] else ["rows", "gathering"]
        kind = draw(st.sampled_from(["all", "number", "chain", "topics", "view", "wide", *on_rows]))
        if kind == "number":
            place = draw(st.integers(0, len(last.chain) - 1))
            moved = tuple((name, (number + 1) % 3) for name, number in last.chain[place])
            edited = replace(last, chain=(*last.chain[:place], moved, *last.chain[place + 1 :]))
        elif kind == "wide":
            edited = replace(last, wide=not last.wide)
        else:
            edited = other if kind == "all" else replace(last, **{kind: getattr(other, kind)})
        found.append(edited if edited != last else other)
    on_change = draw(st.sampled_from(["recalculate", "migrate"]))
    return [replace(version, on_change=on_change) for version in found]
