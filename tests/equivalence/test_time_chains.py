"""Time between outputs: windows over a stream that another output has written, however either of them was cut.

The model knows no topic in between: a row counts by the stream time that it had where it was first read.
"""

from __future__ import annotations

import contextlib
import random
from collections import defaultdict
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from polars import col

import everstate as es
from tests.equivalence import test_stream_joins as joins
from tests.equivalence import test_windows as windows
from tests.equivalence.playing import examples
from tests.figures import PLAYED

#: Beyond all times of a history, and so many keys that each partition of each topic gets some.
LATER = 100_000
KEYS = 12


def expected(case: windows.Case) -> tuple[dict[Any, dict[str, int]], int]:
    """The table of all windows, final or not, and how many rows were too late for it."""
    times: dict[int, int] = {}
    groups: dict[str, list[windows.Counted]] = defaultdict(list)
    late = 0
    for number, row in enumerate(case.rows):
        if row.amount is None:
            continue
        times[row.partition] = now = max(times.get(row.partition, 0), row.ts)
        if row.amount < 0:
            continue
        groups[row.group].append(windows.Counted(row.ts, row.partition, number, now, row.amount))
        late += windows.too_late(case, row.ts, now)
    table = {
        (group, windows.moment(begin), windows.moment(last + (case.shape in ("tumbling", "hopping")))): {
            "n": len(rows),
            "total": sum(row.amount for row in rows),
        }
        for group, found in groups.items()
        for (begin, last), rows in windows.spans(case, found).items()
    }
    return table, late


def first(how: str) -> es.Service:
    """What writes the stream in between: without state, by arrival, or by functions with state and a side."""
    app = es.Service("first")
    rows = app.stream("in", key="id", schema={"g": str, "amount": int, "at": int}, time=col("at"))
    rows = rows.filter(col("amount") >= 0)
    if how == "stateful":
        rows = rows.apply(lambda row, state: row, stateful=True, schema={"g": str, "amount": int, "at": int})
    if how == "side":
        shape = {"g": str, "amount": int, "at": int}
        sent = rows.process(lambda row, ctx: ctx.forward(row, to="mid"), schema=shape, sides={"mid": shape})
        sent.to("nothing", sides={"mid": "mid"})
        return app
    rows.to("mid")
    return app


def second(case: windows.Case, time: str | None, app: es.Service | None = None) -> es.Service:
    """Windows over that stream, which may take the time from a column that says the same."""
    app = app or es.Service("second")
    rows = app.stream("mid", key="id", schema={"g": str, "amount": int, "at": int}, time=time)
    aggregates = {"n": es.count(), "total": col("amount").sum()}
    rows.group_by("g").window(windows.window(case), late_to="late").agg(**aggregates).to("out")
    rows.group_by("g").window(windows.window(case), emit="final").agg(**aggregates).to("final")
    return app


def forward(
    records: list[es.testing.DriverRecord], driver: es.testing.Driver, chance: random.Random, cuts: int
) -> None:
    """What one driver has written, to another one, cut anyhow; each partition in order."""
    places = sorted(chance.randint(0, len(records)) for _ in range(cuts - 1))
    for start, end in zip([0, *places], [*places, len(records)], strict=True):
        with driver.batch():
            for record in records[start:end]:
                driver.send(record.topic, record.key, record.value, record.ts, record.partition, record.headers)


def close_all(driver: es.testing.Driver, partitions: int) -> None:
    """Rows of a group of their own, so late that all windows are over."""
    for turn in range(3):
        with driver.batch():
            for partition in range(partitions):
                for key in range(KEYS):
                    value = {"g": "z", "amount": 1, "at": LATER * (turn + 1)}
                    driver.send("in", f"z{key}", value, partition=partition)


def without(table: dict[Any, Any]) -> dict[Any, Any]:
    return {key: value for key, value in table.items() if key[0] != "z"}


@examples(400, 60)
@given(windows.cases(), st.sampled_from(["plain", "stateful", "side"]), st.integers(0, 10**6))
def test_windows_over_a_written_stream_equal_the_model(case, how, seed):
    chance, shards = random.Random(seed), random.Random(seed).choice([1, 3])
    case = case._replace(shape=chance.choice(windows.SHAPES), final=False, keep=None)
    table, late = expected(case)
    writer = es.testing.Driver(first(how), partitions=case.partitions, shards=shards)
    windows.feed(writer, case.rows, chance, chance.randint(1, 5))
    behind = writer.records("mid")
    close_all(writer, case.partitions)
    later = writer.records("mid")[len(behind) :]
    for cuts in (1, chance.randint(2, 6)):
        reader = es.testing.Driver(
            second(case, chance.choice([None, "at"])), partitions=case.partitions, shards=chance.choice([1, 3])
        )
        forward(behind, reader, chance, cuts)
        assert reader.table("out") == table
        assert reader.counts("out").get("dropped.late", 0) == late == len(reader.table("late"))
        assert reader.table("final").items() <= table.items()
        forward(later, reader, chance, 1)
        assert without(reader.table("final")) == table
        keys = [record.key for record in reader.records("final")]
        assert len(keys) == len(set(keys))
    PLAYED["time between outputs"] += 1


@examples(200, 30)
@given(windows.cases(), st.integers(0, 10**6))
def test_units_of_one_service_cut_in_any_way_equal_the_model(case, seed):
    chance = random.Random(seed)
    case = case._replace(shape=chance.choice(windows.SHAPES), final=False, keep=None)
    table, _ = expected(case)
    app = second(case, chance.choice([None, "at"]), first(chance.choice(["plain", "stateful"])))
    driver = es.testing.Driver(app, partitions=case.partitions, shards=chance.choice([1, 3]))
    windows.feed(driver, case.rows, chance, chance.randint(1, 5))
    assert driver.table("out") == table
    close_all(driver, case.partitions)
    assert without(driver.table("final")) == table


@examples(200, 30)
@given(joins.cases(), st.integers(0, 10**6))
def test_windows_over_joined_streams_equal_the_model(case, seed):
    chance = random.Random(seed)
    _, counted, _ = joins.expected(case)
    writer = joins.play(case, chance.choice([1, 3]), chance, chance.randint(1, 5))
    app = es.Service("second")
    rows = app.stream("joined", key="k", schema={"n0": int | None, "n1": int | None})
    rows.group_by("k").window(es.tumbling(f"{joins.WINDOW}ms")).agg(n=es.count()).to("counted")
    reader = es.testing.Driver(app, partitions=case.partitions, shards=chance.choice([1, 3]))
    forward(writer.records("joined"), reader, chance, chance.randint(1, 5))
    assert reader.table("counted") == {key: {"n": n} for key, n in counted.items()}


def behind(case: joins.Case) -> es.Service:
    """Steps that keep the rows of a join, in the join's own unit; none of them gives a row up."""
    app = es.Service("s")
    sides = [app.stream(f"in{side}", key="k", schema={f"n{side}": int}) for side in (0, 1)]
    third = app.stream("third", key="k", schema={"m": int})
    values = app.table("values", key="k", schema={"v": int}, history="1h")
    within = (f"{case.before}ms", f"{case.after}ms")
    joined = sides[0].join(sides[1], within=within, grace=f"{case.grace}ms", how=case.how)
    kept = joined.group_by("k")
    kept.window(es.session("10s", grace="1h")).agg(all=es.collect("n0")).select(n=col("all").list.len()).to("session")
    kept.window(es.sliding("10s", grace="1h")).agg(n=es.count()).to("sliding")
    joined.join(third, within="10s", grace="1h").group_by("k").agg(n=es.count()).to("again")
    joined.join(values, how="left", grace="10s").group_by("k").agg(n=es.count()).to("waited")
    return app


def test_partners_of_one_record_that_come_one_by_one_are_all_kept():
    rows = [(1, 7), (0, 10), (1, 5), (1, 14), (1, 5)]
    last = [joins.Row(side, 0, "z", LATER, 0) for side in (0, 1)]
    case = joins.Case([joins.Row(side, 0, "a", ts, 1) for side, ts in rows] + last, 1, "inner", 20, 20, 0)
    driver = es.testing.Driver(behind(case))
    driver.send("third", "a", {"m": 0}, ts=0)
    for row in case.rows:
        driver.send(f"in{row.side}", row.key, {f"n{row.side}": row.number}, ts=row.ts)
    assert [key[0] for key in driver.table("session")] == ["a", "z"]
    assert {row["n"] for key, row in driver.table("session").items() if key[0] == "a"} == {4}
    assert max(row["n"] for key, row in driver.table("sliding").items() if key[0] == "a") == 4
    assert driver.table("again")["a"] == driver.table("waited")["a"] == {"n": 4}


def test_rows_of_timers_that_one_record_has_set_are_all_kept():
    app = es.Service("s")
    names = app.table("names", key="k", schema={"name": str}, history="1h")

    def watch(row: dict[str, Any], ctx: es.Context) -> dict[str, Any]:
        for after in (2, 4):
            ctx.timer(f"t{after}", at=ctx.time + after)
        return row

    def ring(ctx: es.Context) -> dict[str, Any]:
        return {"x": ctx.time}

    rows = app.stream("in", key="k", schema={"x": int}).process(watch, on_timer=ring, schema={"x": int})
    rows.join(names, how="left", grace="50ms").group_by("k").agg(n=es.count()).to("waited")
    rows.group_by("k").window(es.sliding("10s", grace="1h")).agg(n=es.count()).to("sliding")
    driver = es.testing.Driver(app)
    driver.send("in", "a", {"x": 0}, ts=10)
    for ts in (12, 14, 100):
        driver.advance(ts)
    assert driver.table("waited") == {"a": {"n": 3}}
    assert max(row["n"] for row in driver.table("sliding").values()) == 3


@examples(200, 15)
@given(joins.cases(), st.integers(0, 10**6))
def test_steps_that_keep_joined_rows_lose_none_however_they_are_cut(case, seed):
    chance = random.Random(seed)
    last = [joins.Row(side, lane, "z", LATER, 0) for side in (0, 1) for lane in range(case.partitions)]
    case = case._replace(rows=[*case.rows, *last])
    rows, *_ = joins.expected(case)
    wanted: dict[str, int] = defaultdict(int)
    for (key, *_), n in rows.items():
        wanted[key] += n
    driver = es.testing.Driver(behind(case), partitions=case.partitions, shards=chance.choice([1, 3]))
    with driver.batch():
        for key in "ab":
            driver.send("third", key, {"m": 0}, ts=0)
    for row in case.rows:
        driver.send(f"in{row.side}", row.key, {f"n{row.side}": row.number}, ts=row.ts, partition=row.partition)
    for topic in ("session", "sliding", "again", "waited"):
        found: dict[str, int] = {}
        for key, row in driver.table(topic).items():
            name = key[0] if isinstance(key, tuple) else key
            found[name] = max(row["n"], found.get(name, 0))
        assert {key: found.get(key, 0) for key in "ab"} == {key: wanted[key] for key in "ab"}, topic
    PLAYED["time between outputs"] += 1


def ordering(case: joins.Case) -> es.Service:
    """Steps that put the rows of a join in order, which those of one record share with each other."""
    app = es.Service("s")
    sides = [app.stream(f"in{side}", key="k", schema={f"n{side}": int, "at": int}, time="at") for side in (0, 1)]
    within = (f"{case.before}ms", f"{case.after}ms")
    joined = sides[0].join(sides[1], within=within, grace=f"{case.grace}ms", how=case.how)
    kept = joined.group_by("k")
    # Nothing tells the values of rows apart that have the same, so those of "tens" often are.
    pair = {"tens": es.collect(col("n0") // 10), "ones": es.collect("n1")}
    ends = {"first": col("n0").first(), "last": col("n1").last(), "texts": es.collect(pl.concat_list("n0", "n1"))}
    kept.agg(**pair, **ends, tops=es.top_k("n1", 3, by=col("n0") // 10)).to("all")
    kept.agg(first=col("n1").first(), last=pl.struct("n1", "n0").last()).to("ends")
    kept.window(es.tumbling("20ms", grace="1h")).agg(**pair, last=col("n1").last()).to("tumbling")
    kept.window(es.hopping("20ms", "10ms", grace="1h")).agg(first=col("n1").first()).to("hopping")
    for name, window in (("session", es.session("10ms", grace="1h")), ("sliding", es.sliding("10ms", grace="1h"))):
        kept.window(window).agg(**pair, last=col("n1").last()).to(name)
        kept.window(window).reduce(lambda one, other: other).to(f"{name}-reduced")
    kept.window(es.session("10ms", grace="1h")).agg(last=col("n1").last(), n=es.count()).to("merged")
    return app


def test_partners_of_one_record_come_in_the_same_order_whenever_they_come():
    rows = [(1, 7, 7), (0, 10, 1), (1, 5, 5)]
    found = []
    for apart in (False, True):
        driver = es.testing.Driver(ordering(joins.Case([], 1, "inner", 20, 20, 0)))
        with contextlib.nullcontext() if apart else driver.batch():
            for side, at, number in rows:
                driver.send(f"in{side}", "a", {f"n{side}": number, "at": at})
        found.append({topic: driver.table(topic) for topic in ("all", "ends", "session-reduced")})
    assert found[0] == found[1]
    assert found[0]["all"]["a"]["ones"] == [5, 7]


@examples(60, 20)
@given(joins.cases(), st.integers(0, 10**6))
def test_order_of_joined_rows_is_the_same_however_they_are_cut(case, seed):
    chance = random.Random(seed)
    topics = [unit.output.topic for unit in ordering(case).units()]
    once = joins.play(case, 1, chance, 1, ordering(case))
    again = joins.play(case, chance.choice([1, 3]), chance, chance.randint(2, 12), ordering(case))
    for topic in topics:
        assert once.table(topic) == again.table(topic), topic
    assert again.upgrade(ordering(case), recalculate=topics).records == []
    PLAYED["time between outputs"] += 1
