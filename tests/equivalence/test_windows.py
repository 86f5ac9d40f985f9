"""Windows against a plain model of the one rule of time: a row counts if its own stream time is below the close."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars import col

import everstate as es
from everstate.topology.nodes import RowWindowAggregate, RowWindowFold, SessionFold, WindowAggregate, WindowFold
from tests.equivalence.playing import FEW, examples
from tests.figures import PLAYED

#: The operations whose results are proven here.
PROVES = (WindowAggregate, WindowFold, RowWindowAggregate, RowWindowFold, SessionFold)

SHAPES = ("tumbling", "hopping", "session", "sliding")

#: So many histories make as much work as a pack of the other families.
HISTORIES = 10


class Row(NamedTuple):
    """A record: which partition, its group, its time, its amount; None is a record that cannot be decoded."""

    partition: int
    group: str
    ts: int
    amount: int | None


class Case(NamedTuple):
    """A history and the windows that it is played through."""

    rows: list[Row]
    partitions: int
    shape: str
    size: int
    advance: int
    grace: int
    keep: int | None
    final: bool


@st.composite
def cases(draw: st.DrawFn) -> Case:
    partitions = draw(st.integers(1, 3))
    size = draw(st.sampled_from([1, 4, 5, 10]))
    shape = draw(st.sampled_from(SHAPES))
    advance = draw(st.sampled_from([step for step in (1, 2, 3, 4, size) if step <= size]))
    grace = draw(st.sampled_from([0, 0, 1, 7]))
    keep = draw(st.sampled_from([None, None, grace + 1, 20]))
    amount = st.none() | st.integers(-3, 9)
    # Mostly onward, with rows that are early, late and much too late.
    steps = draw(
        st.lists(st.tuples(st.integers(-12, 15), st.integers(0, 2), st.sampled_from("ab"), amount), max_size=25)
    )
    now, rows = 0, []
    for by, lane, group, value in steps:
        rows.append(Row(lane % partitions, group, max(0, now + by), value))
        now = max(now, now + by // 2)
    return Case(rows, partitions, shape, size, advance, grace, keep, draw(st.booleans()))


#: Histories that are played side by side: each is a group of its own, early and late in its own way, and all of them go
#: by the time of the same partitions.
SIDE_BY_SIDE = 20


def side_by_side(shape: str, seed: int) -> Case:
    """Many histories as one."""
    chance = random.Random(seed)
    size, lanes = chance.choice([1, 4, 5, 10]), chance.randint(1, 4)
    grace = chance.choice([0, 0, 1, 7])
    now, rows = 0, []
    for _ in range(chance.randint(5, 20)):
        for number in range(SIDE_BY_SIDE):
            ts = max(0, now + chance.randint(-12, 6))
            rows.append(Row(chance.randrange(lanes), chr(0x100 + number), ts, chance.choice([None, *range(-3, 10)])))
        now += chance.randint(0, 7)
    advance = chance.choice([step for step in (1, 2, 3, 4, size) if step <= size])
    keep = chance.choice([None, None, grace + 1, 20])
    return Case(rows, lanes, shape, size, advance, grace, keep, chance.random() < 0.5)


class Counted(NamedTuple):
    """A row that may count, in the order of results: its time and position, its partition's stream time, its amount."""

    ts: int
    partition: int
    number: int
    st: int
    amount: int


def spans(case: Case, rows: list[Counted]) -> dict[tuple[int, int], list[Counted]]:
    """The windows that the rows of a group make, with the rows that count in each."""
    if case.shape in ("tumbling", "hopping"):
        step = case.size if case.shape == "tumbling" else case.advance
        bounds = {(b, b + case.size - 1) for row in rows for b in range(0, row.ts + 1, step) if b + case.size > row.ts}
        return inside(rows, bounds, case.grace + 1)
    if case.shape == "session":
        runs: list[list[Counted]] = []
        for row in sorted(row for row in rows if row.st <= row.ts + case.size + case.grace):
            if runs and row.ts - runs[-1][-1].ts <= case.size:
                runs[-1].append(row)
            else:
                runs.append([row])
        return {(run[0].ts, run[-1].ts): run for run in runs}
    made = {(max(r.ts - case.size, 0), max(r.ts, case.size)) for r in rows if r.st <= max(r.ts, case.size) + case.grace}
    found = inside(rows, made, case.grace + 1)
    timely = {(row.ts + 1, row.ts + 1 + case.size) for row in rows if not too_late(case, row.ts, row.st)}
    return found | inside(rows, timely, case.grace + 1)


def inside(rows: list[Counted], bounds: set[tuple[int, int]], close: int) -> dict[tuple[int, int], list[Counted]]:
    found = {(a, b): [row for row in rows if a <= row.ts <= b and row.st < b + close] for a, b in bounds}
    return {bound: members for bound, members in found.items() if members}


def expected(case: Case) -> tuple[dict[Any, dict[str, Any]], int, set[int]]:
    """The table, how many rows were too late, and which: each row by its own time, the table by the frontier."""
    times: dict[int, int] = {}
    groups: dict[str, list[Counted]] = defaultdict(list)
    late = set()
    for number, row in enumerate(case.rows):
        if row.amount is None:
            continue
        times[row.partition] = now = max(times.get(row.partition, 0), row.ts)
        if too_late(case, row.ts, now):
            late.add(number)
        groups[row.group].append(Counted(row.ts, row.partition, number, now, row.amount))
    frontier = min(times.values()) if len(times) == case.partitions else -1
    table = {}
    for group, found in groups.items():
        for (begin, last), rows in spans(case, found).items():
            wait = 2 * case.size if case.shape == "session" else 0
            close = last + wait + case.grace + 1
            end = last + 1 if case.shape in ("tumbling", "hopping") else last
            if case.final and frontier < close:
                continue
            if case.keep is not None and frontier >= max(close, end + case.keep):
                continue
            amounts = [row.amount for row in sorted(rows)]
            table[group, moment(begin), moment(end)] = {
                "n": len(rows),
                "total": sum(amounts),
                "least": min(amounts),
                "last": amounts[-1],
                "all": amounts,
            }
    return table, len(late), late


def too_late(case: Case, ts: int, now: int) -> bool:
    """Whether a row comes too late for all windows that it might belong to."""
    last = ts // case.advance * case.advance + case.size - 1 if case.shape == "hopping" else ts + case.size
    if case.shape == "tumbling":
        last = ts // case.size * case.size + case.size - 1
    return now > last + case.grace


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def window(case: Case) -> es.Window:
    size, grace = f"{case.size}ms", f"{case.grace}ms"
    if case.shape == "hopping":
        return es.hopping(size, f"{case.advance}ms", grace=grace)
    return {"tumbling": es.tumbling, "session": es.session, "sliding": es.sliding}[case.shape](size, grace=grace)


def options(case: Case) -> dict[str, Any]:
    return {"emit": "final" if case.final else "update", "keep": None if case.keep is None else f"{case.keep}ms"}


def service(case: Case, *, version: int = 0) -> es.Service:
    """Aggregates that are merged, those that keep rows, and a fold in a later stage."""
    app = es.Service("s")
    schema = {"g": str, "amount": int, "at": int}
    rows = app.stream("in", key="id", schema=schema, time=col("at"))
    grouped = rows.group_by("g").window(window(case), **options(case))
    merged = grouped.agg(n=es.count(), total=col("amount").sum() + version, least=col("amount").min())
    merged.to("merged").filter(col("n") > 1).group_by("window_start").agg(n=col("n").sum()).to("read-back")
    merged.group_by("window_start").agg(n=col("n").sum(), most=col("total").max()).to("by-start")
    kept = rows.group_by("g").window(window(case), late_to="late", **options(case))
    kept.agg(n=es.count(), last=col("amount").last(), all=es.collect("amount")).to("kept")
    moved = rows.apply(lambda row, state: row["amount"], stateful=True, schema=int).group_by(g=col("id").str.head(1))
    folded = moved.window(window(case), **options(case)).aggregate(lambda: 0, lambda a, value: a + value, schema=int)
    folded.to("fold")
    if case.shape == "session":
        summed = moved.window(window(case), late_to="late-too", **options(case)).aggregate(
            lambda: 0, lambda a, value: a + value, schema=int, merge=lambda a, b: a + b
        )
        summed.to("summed")
    return app


def play(case: Case, shards: int, chance: random.Random, batches: int) -> es.testing.Driver:
    driver = es.testing.Driver(service(case), partitions=case.partitions, shards=shards)
    feed(driver, case.rows, chance, batches)
    return driver


def feed(driver: es.testing.Driver, rows: list[Row], chance: random.Random, batches: int, first: int = 0) -> None:
    """Send rows cut anyhow; partitions stay in order, but one may be ahead of another."""
    cuts = sorted(chance.randint(0, len(rows)) for _ in range(batches - 1))
    for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        with driver.batch():
            for number, row in enumerate(rows[start:end], first + start):
                value = b"{" if row.amount is None else {"g": row.group, "amount": row.amount, "at": row.ts}
                # The record's own timestamp says nothing here.
                driver.send("in", f"{row.group}{number}", value, ts=5000 - row.ts, partition=row.partition)


def compare(driver: es.testing.Driver, case: Case, where: object, version: int = 0) -> None:
    table, late, which = expected(case)
    merged = {k: {"n": v["n"], "total": v["total"] + version, "least": v["least"]} for k, v in table.items()}
    assert driver.table("merged") == merged, where
    starts: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for (_, start, _), value in merged.items():
        starts[start].append(value)
    by_start = {s: {"n": sum(v["n"] for v in vs), "most": max(v["total"] for v in vs)} for s, vs in starts.items()}
    assert driver.table("by-start") == by_start, where
    large = {s: sum(v["n"] for v in vs if v["n"] > 1) for s, vs in starts.items()}
    assert driver.table("read-back") == {s: {"n": n} for s, n in large.items() if n}, where
    assert driver.table("kept") == {k: {n: v[n] for n in ("n", "last", "all")} for k, v in table.items()}, where
    assert driver.table("fold") == {k: v["total"] for k, v in table.items()}, where
    if case.shape == "session":
        assert driver.table("summed") == driver.table("fold"), where
        assert len(driver.table("late-too")) == late, where
    found = {letter["key"]: letter["value"]["amount"] for letter in driver.table("late").values()}
    assert found == {f"{case.rows[number].group}{number}": case.rows[number].amount for number in which}, where
    if not version:
        assert driver.counts("merged").get("dropped.late", 0) == late, where


@pytest.mark.parametrize("shape", SHAPES)
@examples(150, FEW)
@given(cases(), st.integers(0, 10**6))
def test_windows_cut_in_any_way_equal_the_model(shape, case, seed):
    case, chance = case._replace(shape=shape), random.Random(seed)
    compare(play(case, chance.choice([1, 3]), chance, 1), case, "one micro-batch")
    compare(play(case, chance.choice([1, 3]), chance, chance.randint(2, 6)), case, "several micro-batches")
    PLAYED["windows"] += 1


@pytest.mark.parametrize("shape", SHAPES)
@examples(25, 5)
@given(st.integers(0, 10**6))
def test_windows_of_many_histories_side_by_side_equal_the_model(shape, seed):
    case, chance = side_by_side(shape, seed), random.Random(seed)
    compare(play(case, chance.choice([1, 3]), chance, chance.randint(2, 5)), case, "side by side")
    PLAYED["windows"] += SIDE_BY_SIDE


@examples(200, 30)
@given(cases(), st.integers(0, 10**6))
def test_windows_published_once_only_if_final_are_never_taken_back(case, seed):
    case = case._replace(final=True, keep=None)
    driver = play(case, 1, random.Random(seed), 5)
    keys = [record.key for record in driver.records("merged")]
    assert len(keys) == len(set(keys))


@examples(200, 30)
@given(cases(), cases(), st.integers(0, 10**6))
def test_windows_of_an_edited_version_equal_the_model_of_the_new_one(case, other, seed):
    chance = random.Random(seed)
    middle = chance.randint(0, len(case.rows))
    driver = es.testing.Driver(service(case), partitions=case.partitions, shards=chance.choice([1, 3]))
    feed(driver, case.rows[:middle], chance, 3)
    edited = other._replace(rows=case.rows, partitions=case.partitions)
    driver.upgrade(service(edited, version=1))
    feed(driver, case.rows[middle:], chance, 2, middle)
    compare(driver, edited, "after an edit", version=1)


def texts(case: Case, *, version: str = "") -> es.Service:
    """Sessions whose result tells in which order their rows came."""
    app = es.Service("s")
    rows = app.stream("in", key="id", schema={"g": str, "amount": int, "at": int}, time=col("at"))
    grouped = rows.group_by("g").window(window(case), **options(case))
    told = grouped.aggregate(
        lambda: version, lambda a, row: f"({a}{row['id']})", schema=str, merge=lambda a, b: f"[{a}|{b}]"
    )
    told.to("told")
    return app


@examples(150, FEW)
@given(cases(), st.integers(0, 10**6))
def test_sessions_that_are_merged_are_recalculated_in_the_order_in_which_their_rows_came(case, seed):
    case, chance = case._replace(shape="session"), random.Random(seed)
    drivers = [
        es.testing.Driver(texts(case, version=version), partitions=case.partitions, shards=chance.choice([1, 3]))
        for version in ("", "v")
    ]
    cut, batches = chance.randint(0, 10**6), chance.randint(1, 6)
    for driver in drivers:
        feed(driver, case.rows, random.Random(cut), batches)
    drivers[0].upgrade(texts(case, version="v"))
    assert drivers[0].table("told") == drivers[1].table("told")
    PLAYED["windows"] += 1
