"""Quiet, waking, empty and added partitions, and the recorded clock, against a plain model.

Live, the model passes over partitions as the driver must. A recalculation, cut anywhere, has to find the same stream
times and the same clock at the same places.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from polars import col

import everstate as es
from everstate.generations.deploy.settings import Settings
from everstate.log.memory.partition import Partition
from everstate.schema.durations import milliseconds
from tests.equivalence.playing import examples
from tests.figures import PLAYED

SIZE = 10
EMPTY_MS = 60_000
AFTER_S = 90


class Case(NamedTuple):
    """What happens, how many partitions there are, and after how long a quiet one is passed over."""

    steps: list[tuple[Any, ...]]
    partitions: int
    idle: str | None
    shards: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    partitions = draw(st.integers(2, 4))
    row = st.tuples(st.integers(0, partitions), st.integers(-15, 14), st.sampled_from("abc"), st.integers(1, 90))
    step = st.one_of(
        st.tuples(st.just("send"), st.lists(row, min_size=1, max_size=4)),
        st.tuples(st.just("send"), st.lists(row, min_size=1, max_size=1)),
        st.tuples(st.just("clock"), st.integers(0, 50)),
        st.tuples(st.just("grow"), st.lists(row, max_size=2)),
    )
    steps = draw(st.lists(step, min_size=3, max_size=14))
    return Case(steps, partitions, draw(st.sampled_from([None, "40s", "1m"])), draw(st.sampled_from([1, 3])))


def service(idle: str | None, factor: int = 1) -> es.Service:
    app = es.Service("s")
    rows = app.stream("in", key="k", schema={"n": int, "wait": int}, idle_after=idle)
    windows = rows.group_by("k").window(es.tumbling(f"{SIZE}ms"))
    windows.agg(n=col("n").sum() * factor).to("all")
    final = rows.group_by("k").window(es.tumbling(f"{SIZE}ms", grace="3ms"), emit="final")
    final.agg(n=col("n").sum() * factor).to("final")
    rung = rows.process(watch, on_timer=ring, schema={"k": str, "told": str}, states=[es.list_("seen", int)])
    rung.with_columns(told=col("told") + "!" * factor).to("rung")
    rung.group_by("k").agg(all=es.collect("told"), factor=es.count() * factor).to("rung-table")
    rows.group_by("k").agg(n=col("n").sum() * factor).expire(after=f"{AFTER_S}s", clock="wall").to("alive")
    return app


def watch(row: dict[str, Any], ctx: es.Context) -> None:
    ctx.seen.append(row["n"])
    ctx.timer(f"wall {row['n']}", at=ctx.now + row["wait"] * 1000, clock="wall")
    ctx.timer(f"event {row['n']}", at=ctx.time + row["wait"] // 4)


def ring(ctx: es.Context) -> dict[str, Any]:
    return {"k": ctx.key, "told": f"{ctx.due} at {ctx.now} {ctx.time} {len(ctx.seen)}"}


class Model:
    """Partitions as lists of rows and of times that they were given."""

    def __init__(self, case: Case) -> None:
        self.idle = None if case.idle is None else milliseconds(case.idle)
        self.lanes: list[list[tuple[Any, ...]]] = [[] for _ in range(case.partitions)]
        self.stood = [(0, 0)] * case.partitions
        self.clock = self.highest = 0
        self.waiting: dict[str, tuple[str, int]] = {}
        self.rung: dict[str, tuple[str, int]] = {}

    def send(self, lane: int, ts: int, key: str, n: int, wait: int) -> None:
        self.lanes[lane].append(("row", ts, key, n))
        self.waiting[f"wall {n}"] = (key, self.clock + wait * 1000)

    def grow(self) -> None:
        """A new partition begins where all others are."""
        times = [self.time(lane) for lane in range(len(self.lanes))]
        self.lanes.append([] if None in times else [("given", self.pass_over(new=True), True)])
        self.stood.append((0, self.clock))

    def time(self, lane: int) -> int | None:
        return max((event[1] for event in self.lanes[lane]), default=None)

    def rows(self, lane: int) -> int:
        return sum(event[0] == "row" for event in self.lanes[lane])

    def quiet(self, lane: int) -> bool:
        patience = self.idle
        if not self.rows(lane):
            patience = EMPTY_MS if patience is None else min(patience, EMPTY_MS)
        return patience is not None and self.clock - self.stood[lane][1] >= patience

    def looked(self) -> None:
        """What the planner sees of the partitions, and what it does about quiet ones."""
        for lane in range(len(self.lanes)):
            if self.stood[lane][0] != self.rows(lane):
                self.stood[lane] = (self.rows(lane), self.clock)
        reached = self.pass_over()
        for lane in range(len(self.lanes)):
            if reached is not None and self.quiet(lane) and (self.time(lane) is None or self.time(lane) < reached):
                self.lanes[lane].append(("given", reached, not self.rows(lane)))
        for name, (key, at) in list(self.waiting.items()):
            if at <= self.clock:
                self.rung[name] = (key, self.clock)
                del self.waiting[name]

    def pass_over(self, new: bool = False) -> int | None:
        busy = [self.time(lane) for lane in range(len(self.lanes)) if not self.quiet(lane)]
        return min(busy) if busy and None not in busy else None

    def tables(self, idle: bool, factor: int) -> dict[str, Any]:
        every: dict[Any, int] = {}
        final: dict[Any, int] = {}
        times = []
        for lane in self.lanes:
            now = None
            for kind, ts, *rest in lane:
                if kind == "given" and not (idle or rest[0]):
                    continue
                now = ts if now is None else max(now, ts)
                if kind == "row":
                    start = ts - ts % SIZE
                    for table, grace in ((every, 0), (final, 3)):
                        if now < start + SIZE + grace:
                            table[rest[0], start] = table.get((rest[0], start), 0) + rest[1] * factor
            times.append(now)
        frontier = -1 if None in times else min(times)
        return {
            "all": every,
            "final": {place: n for place, n in final.items() if place[1] + SIZE + 3 <= frontier},
        }


def grow(driver: es.testing.Driver, topic: str) -> None:
    """One more partition, as somebody gives it to a topic on Kafka."""
    topics = driver._deployment.topics
    with topics._writing() as state:
        found = state.topic(topic)
        count = len(found.partitions) + 1
        partitions = (*found.partitions, Partition(count - 1))
        state.topics[topic] = replace(found, config=replace(found.config, partitions=count), partitions=partitions)
    topics.partitions = count


def windows(driver: es.testing.Driver, topic: str) -> dict[Any, int]:
    table = driver.table(topic)
    return {(key, int(start.timestamp() * 1000)): row["n"] for (key, start, _), row in table.items()}


def compare(driver: es.testing.Driver, model: Model, idle: bool, factor: int, where: str) -> None:
    expected = model.tables(idle, factor)
    for topic in ("all", "final"):
        assert windows(driver, topic) == expected[topic], (topic, where)
    told = [record.value["told"] for record in driver.records("rung") if record.value["told"].startswith("wall")]
    assert len(told) == len(model.rung), where
    for text in told:
        _, n, _, at, *_ = text.split()
        assert model.rung[f"wall {n}"][1] == int(at), (text, where)


def played(case: Case) -> tuple[es.testing.Driver, Model]:
    driver, model = es.testing.Driver(service(case.idle), partitions=case.partitions, shards=case.shards), Model(case)
    number = 0
    for kind, *rest in case.steps:
        if kind == "clock":
            model.clock += rest[0] * 1000
            driver.advance(clock=model.clock)
        elif kind == "grow" and len(model.lanes) < 5:
            model.grow()
            grow(driver, "in")
            if not rest[0]:
                driver._deployment.process()
        if kind == "send" or (kind == "grow" and rest[0]):
            with driver.batch():
                for place, by, key, wait in rest[0]:
                    number += 1
                    lane = len(model.lanes) - 1 if kind == "grow" else place % len(model.lanes)
                    ts = max(0, model.highest + by)
                    model.highest = max(model.highest, model.highest + by // 2)
                    driver.send("in", key, {"n": number, "wait": wait}, ts=ts, partition=lane)
                    model.send(lane, ts, key, number, wait)
        model.looked()
        compare(driver, model, idle=True, factor=1, where=f"live, after {kind}")
    return driver, model


def contents(driver: es.testing.Driver) -> dict[str, Any]:
    """What timers have told, and who is there, without the factors."""
    told = {key: [text.rstrip("!") for text in row["all"]] for key, row in driver.table("rung-table").items()}
    return {"rung-table": told, "alive": sorted(driver.table("alive"))}


@examples(200, 20)
@given(cases(), st.integers(0, 10**6))
def test_quiet_partitions_and_the_clock_equal_the_model_live_and_recalculated(case, seed):
    driver, model = played(case)
    before = contents(driver)
    chance = random.Random(seed)
    for number in range(2):
        cut_at(driver, chance.choice([1, 2, 5, 1000]))
        factor = number + 2
        driver.upgrade(service(case.idle, factor))
        compare(driver, model, idle=True, factor=factor, where="recalculated")
        assert contents(driver) == before
    driver.upgrade(service(None, 7))
    compare(driver, model, idle=False, factor=7, where="without idle_after")
    PLAYED["quiet"] += 1


def cut_at(driver: es.testing.Driver, records: int) -> None:
    """Recalculations go on in micro-batches of so many records."""
    deployment = driver._deployment
    original = type(deployment)._site

    def site(service: str, approval: str, ending: Any) -> Any:
        made = original(deployment, service, approval, ending)
        settings: Settings = replace(made.settings, recalculation_records=records)
        made.executor._settings = settings
        return replace(made, settings=settings)

    deployment._site = site


def lookups(clock: str, factor: int = 1) -> es.Service:
    app = es.Service("s")
    names = app.table("names", key="k", schema={"name": int}, idle_after="40s").expire(after="50s", clock=clock)
    rows = app.stream("rows", key="k", schema={"n": int}, idle_after="40s")
    met = rows.join(names, how="left").select("name", n=col("n"), f=col("n") * factor)
    met.group_by("n").agg(names=es.collect("name"), f=col("f").max()).to("met")
    return app


@examples(200, 20)
@given(
    st.lists(
        st.tuples(st.sampled_from(["names", "rows", "rows", "clock"]), st.sampled_from("ab"), st.integers(0, 30)),
        min_size=4,
        max_size=16,
    ),
    st.sampled_from(["event", "wall"]),
    st.sampled_from([1, 3]),
    st.integers(0, 10**6),
)
def test_rows_meet_a_table_from_which_time_deletes_as_they_met_it_live(steps, clock, shards, seed):
    driver, now = es.testing.Driver(lookups(clock), partitions=2, shards=shards), 0
    chance = random.Random(seed)
    for number, (kind, key, seconds) in enumerate(steps):
        if kind == "clock":
            now += seconds * 1000
            driver.advance(clock=now)
        else:
            value = {"name": number} if kind == "names" else {"n": number}
            driver.send(kind, key, value, ts=now + chance.randrange(-2000, 2000) if now else 0)
    before = {key: row["names"] for key, row in driver.table("met").items()}
    for factor in (2, 3):
        cut_at(driver, chance.choice([1, 3, 1000]))
        driver.upgrade(lookups(clock, factor))
        assert {key: row["names"] for key, row in driver.table("met").items()} == before
    PLAYED["quiet"] += 1
