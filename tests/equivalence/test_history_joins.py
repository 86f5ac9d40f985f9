"""Tables that go by time, and joins as of the time of the row, against a plain model that never forgets.

The model goes through the live micro-batches one by one: records of the table, rows that arrive, rows that have waited
for long enough. Operators forget what nobody can ask for any longer; the model keeps all.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from datetime import UTC, datetime
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from polars import col

import everstate as es
from everstate.topology.nodes import HistoryJoin, LatestByTime
from tests.equivalence.playing import FEW, MANY, examples
from tests.figures import PLAYED

#: The operations whose results are proven here.
PROVES = (HistoryJoin, LatestByTime)

KEYS = ("a", "b")
#: Histories in a pack: their keys never meet, but they share the partitions, and so the time.
HISTORIES = 6
WINDOW = 5


class Event(NamedTuple):
    """A record: its topic, partition, key, value, time and number. The table has a key in one partition alone."""

    topic: str
    lane: int
    key: str | None
    value: Any
    ts: int
    number: int


class Case(NamedTuple):
    """A history, how it is cut, and the parameters of the join."""

    batches: list[list[Event]]
    partitions: int
    how: str
    history: int
    grace: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    chance = random.Random(draw(st.integers(0, 10**6)))
    now, batches = 0, [[]]
    for number in range(draw(st.integers(0, 25 * HISTORIES))):
        now += chance.choice([0, 0, 0, 0, 1])
        ts = max(0, now + chance.randint(-9, 3))
        key = f"{chance.randrange(HISTORIES)}{chance.choice(KEYS)}"
        if chance.random() < 0.15:
            batches.append([])
        if chance.random() < 0.5:
            value = None if chance.random() < 0.25 else {"rate": number}
            batches[-1].append(Event("rates", 0, key, value, ts, number))
        else:
            value = {"ref": None if chance.random() < 0.1 else key, "n": number}
            batches[-1].append(Event("rows", chance.randrange(3), f"k{number % 3}", value, ts, number))
    how, partitions = draw(st.sampled_from(["inner", "left"])), draw(st.integers(1, 3))
    return Case(batches, partitions, how, draw(st.sampled_from([1, 4, 9])), draw(st.sampled_from([0, 2, 7])))


def service(case: Case, factor: int = 1) -> es.Service:
    app = es.Service("s")
    rates = app.table("rates", key="ref", schema={"rate": int}, history=f"{case.history}ms")
    rows = app.stream("rows", key="k", schema={"ref": str | None, "n": int}).with_columns(n=col("n") * factor)
    joined = rows.join(rates, on="ref", how=case.how, grace=f"{case.grace}ms")
    joined.to("joined", key="n")
    joined.group_by("ref").window(es.tumbling(f"{WINDOW}ms")).agg(n=es.count(), sum=col("n").sum()).to("counted")
    rates.with_columns(rate=col("rate") * factor).to("rates-now")
    versioned = app.table("rates", key="ref", schema={"rate": int}, versioned=True)
    versioned.group_by(last=col("ref").str.slice(-1)).agg(rates=es.collect("rate"), f=col("rate").sum() * factor).to(
        "by"
    )
    return app


class Model:
    """What the outputs have, from the live micro-batches."""

    def __init__(self, case: Case, factor: int) -> None:
        self.case, self.factor = case, factor
        self.versions: dict[str, dict[int, tuple[int, Any]]] = defaultdict(dict)
        self.times: dict[int, int] = {}
        self.waiting: list[tuple[Event, int]] = []
        self.joined: dict[Any, Any] = {}
        self.windows: dict[Any, list[int]] = defaultdict(list)
        self.counts: Counter[str] = Counter()
        for batch in case.batches:
            self.play(batch)

    def play(self, batch: list[Event]) -> None:
        case = self.case
        for event in batch:
            if event.topic == "rates":
                self.versions[event.key][event.ts] = (event.number, event.value)
        due = []
        for event in batch:
            if event.topic == "rows":
                lane = event.lane % case.partitions
                reached = self.times[lane] = max(self.times.get(lane, 0), event.ts)
                if event.value["ref"] is not None and reached < event.ts + case.grace:
                    self.waiting.append((event, reached))
                else:
                    due.append((event, reached, reached))
        frontier = min(self.times.values()) if len(self.times) == case.partitions else -1
        for event, reached in self.waiting:
            if event.ts + case.grace <= frontier:
                due.append((event, reached, max(reached, event.ts + case.grace)))
        self.waiting = [(event, at) for event, at in self.waiting if event.ts + case.grace > frontier]
        for event, reached, at in due:
            self.join(event, reached, at)

    def join(self, event: Event, reached: int, given: int) -> None:
        ref, n = event.value["ref"], event.value["n"] * self.factor
        if ref is None and self.case.how == "inner":
            self.counts["dropped.null_key"] += 1
            return
        old = reached >= event.ts + self.case.history
        self.counts["beyond_history"] += old
        known = [ts for ts in self.versions[ref] if ts <= event.ts] if ref is not None and not old else []
        found = self.versions[ref][max(known)][1] if known else None
        if found is None and self.case.how == "inner":
            return
        self.joined[n] = {"k": event.key, "ref": ref, "rate": found and found["rate"]}
        begin = event.ts // WINDOW * WINDOW
        if ref is not None and given < begin + WINDOW:
            self.windows[ref, moment(begin), moment(begin + WINDOW)].append(n)

    def now(self) -> dict[str, int]:
        newest = {key: versions[max(versions)][1] for key, versions in self.versions.items() if versions}
        return {key: value["rate"] for key, value in newest.items() if value is not None}

    def by(self) -> dict[str, Any]:
        groups = defaultdict(list)
        for key, versions in self.versions.items():
            if versions and versions[max(versions)][1] is not None:
                number, value = versions[max(versions)]
                groups[key[-1]].append((max(versions), number, value["rate"]))
        return {
            last: {"rates": sorted(rate for *_, rate in rows), "f": sum(rate for *_, rate in rows) * self.factor}
            for last, rows in groups.items()
        }


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def compare(driver: es.testing.Driver, model: Model, where: str) -> None:
    assert driver.table("joined") == model.joined, where
    windows = {key: {"n": len(rows), "sum": sum(rows)} for key, rows in model.windows.items()}
    assert driver.table("counted") == windows, where
    assert driver.table("rates-now") == {key: {"rate": r * model.factor} for key, r in model.now().items()}, where
    by = {key: {**value, "rates": sorted(value["rates"])} for key, value in driver.table("by").items()}
    assert by == model.by(), where


@examples(MANY, FEW // 3)
@given(cases(), st.integers(0, 10**6))
def test_history_joins_equal_the_model_live_and_recalculated(case, seed):
    shards = random.Random(seed).choice([1, 3])
    driver = es.testing.Driver(service(case), partitions=case.partitions, shards=shards)
    for batch in case.batches:
        with driver.batch():
            for event in batch:
                lane = event.lane % case.partitions if event.topic == "rows" else None
                driver.send(event.topic, event.key, event.value, ts=event.ts, partition=lane)
    model = Model(case, 1)
    compare(driver, model, "live")
    counts = driver.counts("joined")
    assert {name: counts.get(name, 0) for name in model.counts} == model.counts
    driver.upgrade(service(case, factor=3))
    compare(driver, Model(case, 3), "recalculated")
    PLAYED["joins as of the row's time"] += HISTORIES
