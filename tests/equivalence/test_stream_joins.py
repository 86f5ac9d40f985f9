"""Joins of streams against a plain model: two rows are a pair if each came before the other was given up."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars import col

import everstate as es
from everstate.topology.nodes import StreamJoin
from tests.equivalence.playing import examples
from tests.equivalence.test_windows import moment
from tests.figures import PLAYED

#: The operations whose results are proven here.
PROVES = (StreamJoin,)

#: So many histories make as much work as a pack of the other families.
HISTORIES = 10
#: The window into which what is joined is counted.
WINDOW = 8


class Row(NamedTuple):
    """A record of one side: its partition, key, time and number."""

    side: int
    partition: int
    key: str | None
    ts: int
    number: int


class Case(NamedTuple):
    """A history and the join that it is played through."""

    rows: list[Row]
    partitions: int
    how: str
    before: int
    after: int
    grace: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    partitions = draw(st.integers(1, 2))
    key = st.sampled_from(["a", "a", "b", None])
    step = st.tuples(st.integers(-12, 15), st.integers(0, 1), st.integers(0, 1), key)
    now, rows = 0, []
    for number, (by, side, lane, name) in enumerate(draw(st.lists(step, max_size=25))):
        rows.append(Row(side, lane % partitions, name, max(0, now + by), number))
        now = max(now, now + by // 2)
    how = draw(st.sampled_from(["inner", "left", "outer"]))
    before, after = draw(st.sampled_from([(0, 0), (5, 5), (0, 9), (9, 0), (3, 6)]))
    return Case(rows, partitions, how, before, after, draw(st.sampled_from([0, 0, 2, 7])))


#: Histories that are played side by side: each is a key of its own, and all go by the time of the same partitions.
SIDE_BY_SIDE = 20


def side_by_side(seed: int) -> Case:
    """Many histories as one."""
    chance = random.Random(seed)
    partitions, now, rows = chance.randint(1, 2), 0, []
    for _ in range(chance.randint(5, 15)):
        for key in range(SIDE_BY_SIDE):
            ts = max(0, now + chance.randint(-12, 6))
            rows.append(Row(chance.randrange(2), chance.randrange(partitions), chr(0x100 + key), ts, len(rows)))
        now += chance.randint(0, 7)
    before, after = chance.choice([(0, 0), (5, 5), (0, 9), (9, 0), (3, 6)])
    return Case(rows, partitions, chance.choice(["inner", "left", "outer"]), before, after, chance.choice([0, 0, 2, 7]))


def expected(case: Case) -> tuple[Counter[Any], dict[Any, int], int]:
    """What comes out, (key, left, right); how many of these count in each window; how many rows were too late."""
    times: dict[tuple[int, int], int] = {}
    sides: tuple[list[tuple[Row, int]], ...] = ([], [])
    closes = (case.after + case.grace + 1, case.before + case.grace + 1)
    late = 0
    for row in case.rows:
        now = times[row.side, row.partition] = max(times.get((row.side, row.partition), 0), row.ts)
        if row.key is None or now < row.ts + closes[row.side]:
            sides[row.side].append((row, now))
        else:
            late += 1
    frontier = min(times.values()) if len(times) == 2 * case.partitions else -1
    given: list[tuple[Any, int, int]] = []
    matched = set()
    for left, left_at in sides[0]:
        for right, right_at in sides[1]:
            near = -case.before <= right.ts - left.ts <= case.after
            met = left_at < right.ts + closes[1] and right_at < left.ts + closes[0]
            if left.key is not None and left.key == right.key and near and met:
                given.append(((left.key, left.number, right.number), max(left.ts, right.ts), max(left_at, right_at)))
                matched |= {left, right}
    alone = {"inner": (), "left": (0,), "outer": (0, 1)}[case.how]
    for side in alone:
        for row, at in sides[side]:
            close = row.ts + closes[side]
            if row not in matched and (row.key is None or frontier >= close):
                numbers = (row.number, None) if side == 0 else (None, row.number)
                given.append(((row.key, *numbers), row.ts, max(close, at)))
    return Counter(row for row, _, _ in given), counted(given), late


def counted(given: list[tuple[Any, int, int]]) -> dict[Any, int]:
    """Of rows with their time and stream time, how many count in each window."""
    windows: dict[Any, int] = defaultdict(int)
    for (key, *_), ts, at in given:
        begin = ts // WINDOW * WINDOW
        if key is not None and at < begin + WINDOW:
            windows[key, moment(begin), moment(begin + WINDOW)] += 1
    return dict(windows)


def service(case: Case) -> es.Service:
    app = es.Service("s")
    sides = [app.stream(f"in{side}", key="k", schema={f"n{side}": int, "at": int}, time="at") for side in (0, 1)]
    within = (f"{case.before}ms", f"{case.after}ms")
    joined = sides[0].join(sides[1], within=within, grace=f"{case.grace}ms", how=case.how)
    joined.to("joined")
    joined.group_by("k").window(es.tumbling(f"{WINDOW}ms")).agg(n=es.count()).to("counted")
    joiner = sides[0].join(
        sides[1],
        within=within,
        grace=f"{case.grace}ms",
        how=case.how,
        joiner=lambda left, right: f"{left and left['n0']}/{right and right['n1']}",
        schema=str,
    )
    joiner.filter(col("value") != "").to("texts")
    return app


def play(
    case: Case, shards: int, chance: random.Random, batches: int, app: es.Service | None = None
) -> es.testing.Driver:
    driver = es.testing.Driver(app or service(case), partitions=case.partitions, shards=shards)
    cuts = sorted(chance.randint(0, len(case.rows)) for _ in range(batches - 1))
    for start, end in zip([0, *cuts], [*cuts, len(case.rows)], strict=True):
        with driver.batch():
            for row in case.rows[start:end]:
                value = {f"n{row.side}": row.number, "at": row.ts}
                driver.send(f"in{row.side}", row.key, value, ts=5000 - row.ts, partition=row.partition)
    return driver


def compare(driver: es.testing.Driver, case: Case, where: str) -> None:
    rows, windows, late = expected(case)
    found = Counter((record.key, record.value["n0"], record.value["n1"]) for record in driver.records("joined"))
    assert found == rows, where
    texts = Counter((record.key, record.value) for record in driver.records("texts"))
    assert texts == Counter({(key, f"{left}/{right}"): n for (key, left, right), n in rows.items()}), where
    assert driver.table("counted") == {key: {"n": n} for key, n in windows.items()}, where
    assert driver.counts("joined").get("dropped.late", 0) == late, where


@examples(150, 75)
@given(cases(), st.integers(0, 10**6))
def test_joins_of_streams_cut_in_any_way_equal_the_model(case, seed):
    chance = random.Random(seed)
    compare(play(case, chance.choice([1, 3]), chance, 1), case, "one micro-batch")
    compare(play(case, chance.choice([1, 3]), chance, chance.randint(2, 6)), case, "several micro-batches")
    PLAYED["joins of streams"] += 1


@examples(100, 25)
@given(st.integers(0, 10**6))
def test_joins_of_many_histories_side_by_side_equal_the_model(seed):
    case, chance = side_by_side(seed), random.Random(seed)
    compare(play(case, chance.choice([1, 3]), chance, chance.randint(2, 5)), case, "side by side")
    PLAYED["joins of streams"] += SIDE_BY_SIDE


@pytest.mark.parametrize(("how", "alone", "dropped"), [("inner", 0, 2), ("left", 1, 1), ("outer", 2, 0)])
def test_row_without_a_key_waits_for_nobody_so_it_is_never_late(how, alone, dropped):
    old = [Row(0, 0, None, 0, 2), Row(1, 0, None, 0, 3)]
    case = Case([Row(0, 0, "a", 500, 0), Row(1, 0, "b", 500, 1), *old], 1, how, 5, 5, 0)
    driver = play(case, 1, random.Random(0), 2)
    compare(driver, case, how)
    assert len(driver.records("joined")) == alone
    assert driver.counts("joined") == ({"dropped.null_key": dropped} if dropped else {})
