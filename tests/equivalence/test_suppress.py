"""`suppress` against a plain model: what has changed of each key, since when, and what has come out of it."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars import col

import everstate as es
from everstate.errors import StateError
from everstate.topology.nodes import Suppress
from tests.equivalence.playing import examples
from tests.figures import PLAYED

#: The operations whose results are proven here.
PROVES = (Suppress,)


class Row(NamedTuple):
    """A record; without a number it deletes its key, without a key it moves time."""

    key: str | None
    n: int | None
    ts: int


class Case(NamedTuple):
    """A history, how it is cut, and what is held back."""

    batches: list[list[Row]]
    partitions: int
    shards: int
    until: int | None
    most: int | None


@st.composite
def cases(draw: st.DrawFn) -> Case:
    step = st.tuples(
        st.sampled_from("abcdef"), st.none() | st.integers(0, 2), st.integers(-6, 8), st.booleans(), st.integers(0, 9)
    )
    now, batches = 0, [[]]
    for key, n, by, cut, kind in draw(st.lists(step, max_size=30)):
        if kind == 0:
            batches += [[Row(None, None, now)], []]
            continue
        if cut:
            batches.append([])
        batches[-1].append(Row(key, n, max(0, now + by)))
        now = max(now, now + by)
    shards = draw(st.sampled_from([1, 3]))
    until = draw(st.sampled_from([None, 0, 1, 5, 12]))
    most = draw(st.sampled_from([0, 1, 3] if until is None else [None, None, 1, 3])) if shards == 1 else None
    return Case(batches, draw(st.integers(1, 3)), shards, 7 if until is None and most is None else until, most)


def lane(key: str, partitions: int) -> int:
    return ord(key) % partitions


class Model:
    """The table, what of it has come out, and since when each of the other keys is held back."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.table: dict[str, int] = {}
        self.shown: dict[str, int] = {}
        self.since: dict[str, int] = {}
        self.times: dict[int, int] = {}
        self.highest = 0

    def take(self, batch: list[Row]) -> None:
        last: dict[str, Row] = {}
        for row in batch:
            ts = max(row.ts, self.highest) if row.key is None else row.ts
            self.highest = max(self.highest, ts)
            lanes = range(self.case.partitions) if row.key is None else [lane(row.key, self.case.partitions)]
            self.times.update({place: max(self.times.get(place, 0), ts) for place in lanes})
            if row.key is not None:
                last[row.key] = row
        for key, row in last.items():
            if self.table.get(key) != row.n:
                self.since.setdefault(key, row.ts)
                self.table.pop(key, None)
                self.table.update({} if row.n is None else {key: row.n})
        self.let_out()

    def let_out(self) -> None:
        whole = len(self.times) == self.case.partitions
        now = min(self.times.values()) if whole else -1
        until = self.case.until
        ripe = [key for key, since in self.since.items() if until is not None and since + until <= now]
        rest = sorted((since, key) for key, since in self.since.items() if key not in ripe)
        excess = 0 if self.case.most is None else max(0, len(rest) - self.case.most)
        for key in [*ripe, *(key for _, key in rest[:excess])]:
            self.flush(key)

    def flush(self, key: str) -> None:
        del self.since[key]
        self.shown.pop(key, None)
        self.shown.update({key: self.table[key]} if key in self.table else {})


def service(case: Case, factor: int = 1) -> es.Service:
    app = es.Service("s")
    rows = app.table("in", key="k", schema={"n": int}).select(n=col("n") * factor)
    until = None if case.until is None else f"{case.until}ms"
    held = rows.suppress(until=until, max_keys=case.most)
    held.to("held")
    held.group_by("n").agg(rows=es.count()).to("counted")
    return app


def compare(driver: es.testing.Driver, shown: dict[str, int], factor: int, where: str) -> None:
    assert driver.table("held") == {key: {"n": n * factor} for key, n in shown.items()}, where
    numbers = [n * factor for n in shown.values()]
    assert driver.table("counted") == {n: {"rows": numbers.count(n)} for n in numbers}, where


def send(driver: es.testing.Driver, batch: list[Row], partitions: int) -> None:
    if batch and batch[0].key is None:
        driver.advance(batch[0].ts)
        return
    with driver.batch():
        for row in batch:
            value = None if row.n is None else {"n": row.n}
            driver.send("in", row.key, value, ts=row.ts, partition=lane(str(row.key), partitions))


@examples(150, 60)
@given(cases(), st.integers(0, 10**6))
def test_suppress_equals_the_model_and_a_cutover_publishes_what_is_held_back(case, seed):
    chance, factor = random.Random(seed), 1
    driver = es.testing.Driver(service(case), partitions=case.partitions, shards=case.shards)
    model, edited = Model(case), chance.randint(0, len(case.batches))
    for number, batch in enumerate(case.batches):
        if number == edited:
            factor = 3
            driver.upgrade(service(case, factor))
            for key in list(model.since):
                model.flush(key)
            compare(driver, model.shown, factor, "cut over")
        send(driver, batch, case.partitions)
        if batch:
            model.take(batch)
        compare(driver, model.shown, factor, f"batch {number}")
    changed = [(record.key, record.value) for record in driver.records("held")]
    latest: dict[Any, Any] = {}
    for key, value in changed:
        assert latest.get(key) != value, "a record that changes nothing"
        latest[key] = value
    PLAYED["suppress"] += 1


#: Histories that are played side by side: each is a key of its own, and all go by the time of the same partitions.
SIDE_BY_SIDE = 20


def side_by_side(seed: int) -> Case:
    """Many histories as one."""
    chance = random.Random(seed)
    now, batches = 0, [[]]
    for _ in range(chance.randint(5, 12)):
        for key in range(SIDE_BY_SIDE):
            if chance.random() < 0.5:
                ts = max(0, now + chance.randint(-6, 4))
                batches[-1].append(Row(chr(ord("A") + key), chance.choice([None, 0, 1, 2]), ts))
        if chance.random() < 0.3:
            batches.append([])
        now += chance.randint(0, 5)
    until, shards = chance.choice([0, 1, 5, 12]), chance.choice([1, 3])
    most = chance.choice([None, 1, 5]) if shards == 1 else None
    return Case(batches, chance.randint(1, 3), shards, until, most)


@examples(100, 25)
@given(st.integers(0, 10**6))
def test_suppress_of_many_histories_side_by_side_equals_the_model(seed):
    case = side_by_side(seed)
    driver = es.testing.Driver(service(case), partitions=case.partitions, shards=case.shards)
    model = Model(case)
    for number, batch in enumerate(case.batches):
        send(driver, batch, case.partitions)
        if batch:
            model.take(batch)
        compare(driver, model.shown, 1, f"batch {number}")
    PLAYED["suppress"] += SIDE_BY_SIDE


@examples(100, 30)
@given(cases(), st.integers(0, 10**6))
def test_suppress_cut_in_any_way_comes_to_the_same_table(case, seed):
    chance = random.Random(seed)
    rows = [row for batch in case.batches for row in batch if row.key is not None]
    held = case._replace(until=case.until or 1, most=None)
    for _ in range(3):
        driver = es.testing.Driver(service(held), partitions=case.partitions, shards=chance.choice([1, 3]))
        rest = list(rows)
        while rest:
            size = chance.randint(1, len(rest))
            send(driver, rest[:size], case.partitions)
            rest = rest[size:]
        driver.advance(1000)
        table = {}
        for row in rows:
            table[row.key] = row.n
        compare(driver, {key: n for key, n in table.items() if n is not None}, 1, "in the end")


def windows(version: str) -> es.Service:
    """Final results, asked for in three ways."""
    app = es.Service("s")
    rows = app.stream("in", key="k", schema={"n": int})
    for kind in (es.tumbling("10ms", grace="5ms"), es.session("10ms"), es.sliding("10ms")):
        name = kind.shape
        final = rows.group_by("k").window(kind, emit="final").agg(n=col("n").sum())
        updated = rows.group_by("k").window(kind).agg(n=col("n").sum())
        if version == "emitted":
            final.filter(col("n") > 0).to(name)
        elif version == "suppressed":
            updated.filter(col("n") > 0).suppress(until="close").to(name)
        else:
            updated.to(f"{name}-updated").filter(col("n") > 0).suppress(until="close").to(name)
    return app


def test_suppress_until_close_is_emit_final_before_and_after_a_topic():
    found = {}
    for version in ("emitted", "suppressed", "read back"):
        driver = es.testing.Driver(windows(version))
        chance = random.Random(5)
        for number in range(40):
            driver.send("in", chance.choice("ab"), {"n": chance.randint(-1, 3)}, ts=max(0, 3 * number - 20))
        driver.advance(400)
        shapes = ("tumbling", "session", "sliding")
        found[version] = {shape: [(r.key, r.value) for r in driver.records(shape)] for shape in shapes}
        assert all(len({key for key, _ in rows}) == len(rows) for rows in found[version].values())
    assert found["emitted"] == found["suppressed"] == found["read back"]
    assert all(found["emitted"].values())


def test_suppress_that_is_full_and_shall_fail_stops_by_name():
    app = es.Service("s")
    app.table("in", key="k", schema={"n": int}).suppress(until="1h", max_keys=2, when_full="fail").to("held")
    driver = es.testing.Driver(app)
    for key in "ab":
        driver.send("in", key, {"n": 1}, ts=0)
    with pytest.raises(StateError, match="max_keys=2") as raised:
        driver.send("in", "c", {"n": 1}, ts=0)
    assert "when_full='emit'" in str(raised.value.hint)
