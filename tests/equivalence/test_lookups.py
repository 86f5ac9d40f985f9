"""Joins with tables that one side drives, and with global tables, against a plain model.

The model goes through the live micro-batches one by one: tables first, then the rows of streams, each of which meets
what the tables have by then. A recalculation, whatever its micro-batches are, has to give the same.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from polars import col

import everstate as es
from everstate.topology.nodes import StreamGlobalJoin, StreamTableForeignJoin, StreamTableJoin, TableGlobalJoin
from tests.equivalence.playing import FEW, MANY, examples
from tests.figures import PLAYED

#: The operations whose results are proven here.
PROVES = (StreamGlobalJoin, StreamTableForeignJoin, StreamTableJoin, TableGlobalJoin)

KEYS = ("a", "b", "c")


class Event(NamedTuple):
    """A record: its topic, partition, key, value, time and number. Tables have a key in one partition alone."""

    topic: str
    lane: int
    key: str | None
    value: dict[str, Any] | None
    ts: int
    number: int


class Case(NamedTuple):
    """A history, how it is cut, and the kind of its joins."""

    batches: list[list[Event]]
    partitions: int
    how: str


#: Histories in a pack: their keys never meet, so that one run of a service plays them all.
HISTORIES = 10


@st.composite
def cases(draw: st.DrawFn) -> Case:
    step = st.tuples(
        st.sampled_from(["rows", "rows", "table", "global", "left", "votes"]),
        st.integers(0, 2),
        st.sampled_from([*KEYS, None]),
        st.sampled_from([*KEYS, None]),
        st.integers(0, 9),
    )
    histories = [draw(st.lists(step, max_size=14)) for _ in range(HISTORIES)]
    chance = random.Random(draw(st.integers(0, 10**6)))
    turns = [place for place, history in enumerate(histories) for _ in history]
    chance.shuffle(turns)
    batches: list[list[Event]] = [[]]
    for number, history in enumerate(turns):
        topic, lane, *names, ts = histories[history].pop(0)
        key, ref = (name and f"{history}{name}" for name in names)
        if chance.random() < 0.2:
            batches.append([])
        if topic in {"rows", "votes"}:
            value = {"ref": ref, "n": number}
        else:
            key = key or f"{history}a"
            value = {"ref": ref, "n": number} if topic == "left" else {"name": f"{topic[0]}{number}"}
            value = None if lane == 2 else value
        batches[-1].append(Event(topic, lane, key, value, ts, number))
    return Case(batches, draw(st.integers(1, 3)), draw(st.sampled_from(["inner", "left"])))


def service(case: Case, factor: int = 1) -> es.Service:
    app = es.Service("s")
    columns = {"ref": str | None, "n": int}
    rows = app.stream("rows", key="k", schema=columns)
    table = app.table("table", key="k", schema={"name": str})
    left = app.table("left", key="k", schema=columns)
    everywhere = app.global_table("global", key="g", schema={"name": str})
    polls = app.stream("votes", key="k", schema=columns).group_by("ref").agg(votes=es.count(), last=col("n").last())
    numbered = rows.with_columns(n=col("n") * factor)
    numbered.join(table, how=case.how).to("by-key", key="n")
    numbered.join(table, on="ref", how=case.how, joiner=called, schema=CALLED).to("by-column", key="n")
    numbered.join(table.filter(col("name") > "t2"), on=lambda row: row["ref"], how=case.how).to("filtered", key="n")
    numbered.join(polls, on=col("ref"), how=case.how).to("polled", key="n")
    numbered.join(everywhere, on="ref", how=case.how).to("with-global", key="n")
    both = numbered.join(everywhere, how=case.how).join(table, on="ref", how=case.how, suffix="_table")
    both.group_by("name").agg(n=es.count(), sum=col("n").sum(), names=es.collect("name_table")).to("by-name")
    left.with_columns(n=col("n") * factor).join(everywhere, on="ref", how=case.how).to("left-with-global")
    left.join(everywhere, how=case.how, joiner=called, schema=CALLED).group_by("global").agg(n=es.count()).to("counted")
    return app


CALLED = {"n": int, "global": str | None, "other": str | None}


def called(row: dict[str, Any], other: dict[str, Any] | None) -> dict[str, Any] | None:
    """A joiner: sees whole rows, and leaves some pairs out."""
    if row["n"] % 5 == 4:
        return None
    key = None if other is None else other["g"] if "g" in other else other["k"]
    return {"n": row["n"], "global": key, "other": other and other["name"]}


class Model:
    """What the outputs have, from the live micro-batches."""

    def __init__(self, case: Case, factor: int) -> None:
        self.how, self.factor = case.how, factor
        self.tables: dict[str, dict[str, Any]] = defaultdict(dict)
        self.polls: dict[str, tuple[int, Any]] = {}
        self.out: dict[str, dict[Any, Any]] = defaultdict(dict)
        self.met: list[tuple[Any, int, str | None, Any]] = []
        self.dropped: Counter[str] = Counter()
        self.places: Counter[tuple[str, int]] = Counter()
        for batch in case.batches:
            self.play(batch, case.partitions)

    def play(self, batch: list[Event], partitions: int) -> None:
        placed = []
        for event in batch:
            lane = event.lane % partitions if event.topic in {"rows", "votes"} else 0
            placed.append((event, (lane, self.places[event.topic, lane])))
            self.places[event.topic, lane] += 1
        for event, place in placed:
            if event.topic in {"table", "global", "left"}:
                self.tables[event.topic].pop(event.key, None)
                if event.value is not None:
                    self.tables[event.topic][event.key] = event.value
            elif event.topic == "votes" and event.value["ref"] is None:
                self.dropped["polled"] += 1
            elif event.topic == "votes":
                count, last = self.polls.get(event.value["ref"], (0, (-1, (0, 0), 0)))
                self.polls[event.value["ref"]] = (count + 1, max(last, (event.ts, place, event.number)))
        for event, place in placed:
            if event.topic == "rows":
                self.meet(event, place)

    def meet(self, event: Event, place: tuple[int, int]) -> None:
        n, ref = event.value["n"] * self.factor, event.value["ref"]
        row = {"k": event.key, "ref": ref, "n": n}
        tables = self.tables
        self.join("by-key", event.key, tables["table"].get(event.key), row)
        self.join("filtered", ref, self.filtered(ref), row)
        count, last = self.polls.get(ref, (None, None))
        self.join("polled", ref, count and {"votes": count, "last": last[-1]}, row)
        self.join("with-global", ref, tables["global"].get(ref), row)
        found = tables["table"].get(ref)
        if found is not None or self.how == "left":
            made = called(row, found and {"k": ref, **found})
            if made is not None:
                self.out["by-column"][n] = {"k": event.key, "global": made["global"], "other": made["other"]}
        one, other = tables["global"].get(event.key), tables["table"].get(ref)
        if self.how == "left" or None not in (one, other):
            name = one and one["name"]
            if name is not None:  # a null group belongs nowhere
                self.met.append((name, n, other and other["name"], (event.ts, *place)))

    def filtered(self, key: str | None) -> dict[str, Any] | None:
        found = self.tables["table"].get(key)
        return found if found is not None and found["name"] > "t2" else None

    def join(self, output: str, key: str | None, found: dict[str, Any] | None, row: dict[str, Any]) -> None:
        if self.how == "inner" and key is None:
            self.dropped[output] += 1
        if found is None and self.how == "inner":
            return
        right = {"votes": None, "last": None} if output == "polled" else {"name": None}
        self.out[output][row["n"]] = {"k": row["k"], "ref": row["ref"]} | (found or right)

    def by_name(self) -> dict[Any, Any]:
        groups = defaultdict(list)
        for name, n, other, at in self.met:
            groups[name].append((at, n, other))
        return {
            name: {"n": len(rows), "sum": sum(n for _, n, _ in rows), "names": [other for *_, other in sorted(rows)]}
            for name, rows in groups.items()
        }

    def left_with_global(self) -> dict[Any, Any]:
        found = {}
        for key, row in self.tables["left"].items():
            right = self.tables["global"].get(row["ref"])
            if right is not None or self.how == "left":
                found[key] = {**row, "n": row["n"] * self.factor, "name": right and right["name"]}
        return found

    def counted(self) -> dict[Any, Any]:
        groups: Counter[Any] = Counter()
        for key, row in self.tables["left"].items():
            right = self.tables["global"].get(key)
            if right is not None or self.how == "left":
                made = called(row, right and {"g": key, **right})
                if made is not None and made["global"] is not None:
                    groups[made["global"]] += 1
        return {key: {"n": count} for key, count in groups.items()}


def compare(driver: es.testing.Driver, case: Case, factor: int, where: str) -> None:
    model = Model(case, factor)
    for output in ("by-key", "by-column", "filtered", "polled", "with-global"):
        assert driver.table(output) == model.out[output], (output, where)
    assert driver.table("by-name") == model.by_name(), where
    assert driver.table("left-with-global") == model.left_with_global(), where
    assert driver.table("counted") == model.counted(), where


def played(case: Case, shards: int) -> es.testing.Driver:
    driver = es.testing.Driver(service(case), partitions=case.partitions, shards=shards)
    for batch in case.batches:
        with driver.batch():
            for event in batch:
                lane = event.lane % case.partitions if event.topic in {"rows", "votes"} else None
                driver.send(event.topic, event.key, event.value, ts=event.ts, partition=lane)
    return driver


@examples(MANY, FEW // 5)
@given(cases(), st.integers(0, 10**6))
def test_lookups_equal_the_model_live_and_recalculated(case, seed):
    driver = played(case, random.Random(seed).choice([1, 3]))
    compare(driver, case, 1, "live")
    dropped = Model(case, 1).dropped
    assert {name: driver.counts(name).get("dropped.null_key", 0) for name in dropped} == dropped
    driver.upgrade(service(case, factor=3))
    compare(driver, case, 3, "recalculated")
    PLAYED["joins with tables that are looked up"] += HISTORIES
