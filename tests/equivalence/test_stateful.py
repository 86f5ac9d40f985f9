from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import everstate as es
from everstate.topology.nodes import Stateful
from tests.equivalence import oracles
from tests.equivalence.histories import BAD, Layout, Pack, Placed, events, layouts, packs, schema, values
from tests.equivalence.playing import FEW, MANY, assert_dead, check_streams, examples, play

#: The operations whose results are proven here.
PROVES = (Stateful,)

COLUMNS = ("g", "h", "x", "f", "n")
HISTORY = {"seen": int, "last": list[float | None], "x": int | None}

histories = packs(events("in", values(COLUMNS), bad=BAD))


class Remembered:
    """A dict with the methods of `es.State`, so that oracle and service run the same functions."""

    def __init__(self, held: dict[str, Any]) -> None:
        self.held = held

    def get(self, key: str, default: Any = None) -> Any:
        return self.held.get(key, default)

    def set(self, key: str, value: Any) -> None:
        self.held[key] = value

    def exists(self, key: str) -> bool:
        return key in self.held

    def delete(self, key: str) -> None:
        self.held.pop(key, None)


def numbered(row: dict[str, Any], state: Any) -> dict[str, Any]:
    last = state.get("last", [])
    state.set("seen", state.get("seen", 0) + 1)
    state.set("last", [*last, row["f"]][-2:])
    return {"seen": state.get("seen"), "last": last, "x": row["x"]}


def changed(row: dict[str, Any], state: Any) -> bool:
    """Lets a row pass if its group is another than that of the row before; forgets when there is none."""
    before = state.get("g")
    if row["g"] is None:
        state.delete("g")
    else:
        state.set("g", row["g"])
    return before != row["g"]


def summed(row: dict[str, Any], state: Any) -> None:
    state.set("sum", state.get("sum", 0) + (row["h"] or 0))
    row["h"] = state.get("sum")
    row["n"] = {"a": row["n"]["a"], "l": row["n"]["l"][:1]}


#: What a user writes, and what it must give.
CHAINS: dict[str, tuple[Any, Any]] = {
    "apply": (
        lambda rows: rows.apply(numbered, stateful=True, schema=HISTORY),
        lambda rows: remembering(rows, numbered, "apply"),
    ),
    "filter": (
        lambda rows: rows.filter(changed, stateful=True),
        lambda rows: remembering(rows, changed, "filter"),
    ),
    "update": (
        lambda rows: rows.update(summed, stateful=True),
        lambda rows: remembering(rows, summed, "update"),
    ),
    "one after the other": (
        lambda rows: (
            rows.filter(changed, stateful=True)
            .update(summed, stateful=True)
            .apply(numbered, stateful=True, schema=HISTORY)
        ),
        lambda rows: remembering(
            remembering(remembering(rows, changed, "filter"), summed, "update"), numbered, "apply"
        ),
    ),
}


def remembering(rows: oracles.Stream, fn: Any, mode: str) -> oracles.Stream:
    return oracles.stateful(rows, lambda row, held: fn(row, Remembered(held)), mode)


def check(name: str, pack: Pack, ways: list[Layout]) -> None:
    written, meant = CHAINS[name]
    app = es.Service("s")
    written(app.stream("in", key="id", schema=schema(*COLUMNS))).to("out")

    def expected(sent: list[Placed]) -> dict[str, oracles.Stream]:
        return {"out": meant(oracles.stream(sent, "in", 0, COLUMNS))}

    check_streams("stateful functions", app, pack, ways, expected)


@examples(MANY, FEW)
@given(st.sampled_from(sorted(CHAINS)), histories, layouts())
def test_stateful_functions_equal_the_oracle(name, pack, ways):
    check(name, pack, ways)


@examples(4)
@given(histories, layouts(5))
def test_stateful_functions_cut_in_five_ways_give_the_same(pack, ways):
    check("one after the other", pack, ways)


def wary(row: dict[str, Any], state: Any) -> dict[str, Any]:
    """Raises after it changed its state, which must then be as before."""
    state.set("seen", state.get("seen", 0) + 1)
    if row["x"] is None:
        raise ValueError("no x")
    return {"seen": state.get("seen")}


@examples(15)
@given(histories, layouts())
def test_stateful_functions_that_raise_leave_no_trace(pack, ways):
    app = es.Service("s")
    app.stream("in", key="id", schema=schema(*COLUMNS)).apply(wary, stateful=True, schema={"seen": int}).to("out")
    for layout in ways:
        driver, sent = play(app, pack, layout)
        rows = oracles.stream(sent, "in", 0, COLUMNS)
        dead = {("in", *row.at[2:]) for _, row in rows.rows if row.at and row.columns["x"] is None}
        assert_dead(driver, "out", dead | oracles.dead(sent))
        seen: dict[Any, int] = {}
        wanted = []
        for key, row in rows.rows:
            if row.columns["x"] is not None:
                seen[key] = seen.get(key, 0) + 1
                wanted.append((key[0], seen[key]))
        assert sorted((record.key, record.value["seen"]) for record in driver.records("out")) == sorted(wanted)
