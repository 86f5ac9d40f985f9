"""`expire` against a plain model: the latest record of each key, and the least stream time of all partitions."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from polars import col

import everstate as es
from everstate.topology.nodes import Expire
from tests.equivalence.playing import examples
from tests.figures import PLAYED

#: The operations whose results are proven here.
PROVES = (Expire,)


class Row(NamedTuple):
    """A record; time moves for all partitions where there is no key."""

    key: str | None
    n: int | None
    ts: int

    @property
    def group(self) -> str:
        return "odd" if self.n and self.n % 2 else "even"


class Case(NamedTuple):
    """A history, how it is cut, and how long a key may be quiet."""

    batches: list[list[Row]]
    partitions: int
    shards: int
    after: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    step = st.tuples(
        st.integers(-20, 12),
        st.sampled_from(["a", "b", "c", "d", None]),
        st.sampled_from([None, 1, 1, 2, 3, 4]),
        st.booleans(),
    )
    now, batches = 0, [[]]
    for by, key, n, cut in draw(st.lists(step, max_size=30)):
        if cut:
            batches.append([])
        batches[-1].append(Row(key, n, max(0, now + by)))
        now = max(now, now + by // 2)
    return Case(batches, draw(st.integers(1, 3)), draw(st.sampled_from([1, 3])), draw(st.sampled_from([1, 4, 10, 500])))


def lane(key: str, partitions: int) -> int:
    return ord(key) % partitions


class Model:
    """All that was sent, and what follows: the topic read as a table, and as a stream, which has no tombstones."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.latest: dict[str, Row] = {}
        self.events: dict[str, list[Row]] = {}
        self.highest = 0
        self.times: dict[str, dict[int, int]] = {"table": {}, "stream": {}}

    def take(self, row: Row) -> None:
        if row.key is None:  # `advance` goes no further back than the latest record
            row = row._replace(ts=max(row.ts, self.highest))
        self.highest = max(self.highest, row.ts)
        places = range(self.partitions) if row.key is None else [lane(row.key, self.partitions)]
        for kind, times in self.times.items():
            if row.key is None or row.n is not None or kind == "table":
                times.update({place: max(times.get(place, 0), row.ts) for place in places})
        if row.key is None:
            return
        if row.n is None:
            self.latest.pop(row.key, None)
        else:
            self.latest[row.key] = row
            self.events.setdefault(row.key, []).append(row)

    def alive(self, times: dict[Any, int], after: int, kind: str = "table") -> set[Any]:
        known = self.times[kind]
        frontier = min(known.values()) if len(known) == self.partitions else -1
        return {key for key, ts in times.items() if ts + after > frontier}

    def tables(self, after: int, factor: int) -> dict[str, Any]:
        alive = self.alive({key: row.ts for key, row in self.latest.items()}, after)
        groups: dict[str, list[Row]] = {}
        for row in self.latest.values():
            groups.setdefault(row.group, []).append(row)
        counts = {group: sum(row.key in alive for row in rows) for group, rows in groups.items()}
        newest = self.alive({group: max(row.ts for row in rows) for group, rows in groups.items()}, after)
        seen = self.alive({key: max(row.ts for row in rows) for key, rows in self.events.items()}, after, "stream")
        return {
            "alive": {key: {"n": self.latest[key].n * factor} for key in alive},
            "per-group": {group: {"rows": n} for group, n in counts.items() if n},
            "groups": {group: {"rows": len(groups[group])} for group in newest},
            "seen": {key: {"highest": max(row.n for row in self.events[key])} for key in seen},
        }


def service(after: int, factor: int = 1) -> es.Service:
    app = es.Service("s")
    span = f"{after}ms"
    rows = app.table("in", key="k", schema={"n": int, "kind": str})
    rows.select(n=col("n") * factor).expire(after=span).to("alive")
    rows.expire(after=span).group_by("kind").agg(rows=es.count()).to("per-group")
    rows.group_by("kind").agg(rows=es.count()).expire(after=span).to("groups")
    events = app.stream("in", key="k", schema={"n": int, "kind": str})
    events.group_by("k").agg(highest=col("n").max()).expire(after=span).to("seen")
    return app


def compare(driver: es.testing.Driver, model: Model, after: int, factor: int, where: str) -> None:
    found = {topic: driver.table(topic) for topic in ("alive", "per-group", "groups", "seen")}
    assert found == model.tables(after, factor), where


def played(case: Case) -> tuple[es.testing.Driver, Model]:
    driver = es.testing.Driver(service(case.after), partitions=case.partitions, shards=case.shards)
    model = Model(case.partitions)
    for batch in case.batches:
        with driver.batch():
            for row in batch:
                if row.key is None:
                    driver.advance(row.ts)
                else:
                    value = None if row.n is None else {"n": row.n, "kind": row.group}
                    driver.send("in", row.key, value, ts=row.ts, partition=lane(row.key, case.partitions))
                model.take(row)
        compare(driver, model, case.after, 1, "live")
    return driver, model


@examples(150, 60)
@given(cases(), st.integers(0, 10**6))
def test_expire_equals_the_model_live_and_recalculated(case, seed):
    driver, model = played(case)
    chosen = random.Random(seed)
    for _ in range(2):
        after, factor = chosen.choice([1, 4, 10, 500]), chosen.choice([1, 3])
        driver.upgrade(service(after, factor))
        compare(driver, model, after, factor, "recalculated")
    PLAYED["expire"] += 1


#: Histories that are played side by side: each is a key of its own, and all go by the time of the same partitions.
SIDE_BY_SIDE = 20


def side_by_side(seed: int) -> Case:
    """Many histories as one."""
    chance = random.Random(seed)
    now, batches = 0, [[]]
    for _ in range(chance.randint(5, 12)):
        for key in range(SIDE_BY_SIDE):
            if chance.random() < 0.6:
                ts = max(0, now + chance.randint(-15, 6))
                batches[-1].append(Row(chr(ord("A") + key), chance.choice([None, 1, 1, 2, 3, 4]), ts))
        if chance.random() < 0.3:
            batches.append([])
        now += chance.randint(0, 6)
    return Case(batches, chance.randint(1, 3), chance.choice([1, 3]), chance.choice([1, 4, 10, 20]))


@examples(100, 25)
@given(st.integers(0, 10**6))
def test_expire_of_many_histories_side_by_side_equals_the_model(seed):
    played(side_by_side(seed))
    PLAYED["expire"] += SIDE_BY_SIDE


def test_a_key_that_expired_comes_back_with_a_longer_time_and_goes_with_a_shorter_one():
    driver = es.testing.Driver(service(after=10))
    driver.send("in", "a", {"n": 1, "kind": "odd"}, ts=0)
    driver.send("in", "b", {"n": 2, "kind": "even"}, ts=20)
    assert driver.table("alive") == {"b": {"n": 2}}
    longer = driver.upgrade(service(after=30)).records
    assert [(record.topic, record.key) for record in longer if record.topic == "alive"] == [("alive", "a")]
    shorter = driver.upgrade(service(after=5)).records
    assert [(r.topic, r.key, r.value) for r in shorter if r.topic == "alive"] == [("alive", "a", None)]


def test_a_key_that_expires_leaves_one_tombstone_at_the_time_it_was_due():
    driver = es.testing.Driver(service(after=10))
    for ts in (0, 3, 6):
        driver.send("in", "a", {"n": 1, "kind": "odd"}, ts=ts)
    driver.advance(15)
    driver.advance(16)
    driver.advance(40)
    assert [(record.value, record.ts) for record in driver.records("alive")] == [({"n": 1}, 0), (None, 16)]
    assert driver.counts("alive") == {"expired": 1}
