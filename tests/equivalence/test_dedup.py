"""`dedup` against a plain model: rows one by one in the order of arrival, compared with all that have passed."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars import col

import everstate as es
from everstate.topology.nodes import Dedup
from tests.equivalence.playing import examples
from tests.figures import PLAYED

#: The operations whose results are proven here.
PROVES = (Dedup,)

#: The names of an id: a column, or an expression.
IDS: dict[str, Any] = {"column": "id", "expression": col("id").str.to_lowercase(), "several": ["id", "k"], "key": None}


class Row(NamedTuple):
    """A record: its partition, key, id, time and number."""

    partition: int
    key: str | None
    id: str | None
    ts: int
    number: int


class Case(NamedTuple):
    """A history, how it is cut, and by what its rows are compared."""

    batches: list[list[Row]]
    partitions: int
    by: str
    within: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    partitions = draw(st.integers(1, 3))
    step = st.tuples(
        st.integers(-15, 12),
        st.integers(0, 2),
        st.sampled_from(["a", "b", None]),
        st.sampled_from(["x", "X", "y", None]),
        st.booleans(),
    )
    now, batches = 0, [[]]
    for number, (by, lane, key, name, cut) in enumerate(draw(st.lists(step, max_size=30))):
        if cut:
            batches.append([])
        batches[-1].append(Row(lane % partitions, key, name, max(0, now + by), number))
        now = max(now, now + by // 2)
    return Case(batches, partitions, draw(st.sampled_from(sorted(IDS))), draw(st.sampled_from([1, 4, 10])))


#: Histories that are played side by side: each is an id of its own, and all go by the time of the same partitions.
SIDE_BY_SIDE = 20


def side_by_side(seed: int) -> Case:
    """Many histories as one."""
    chance = random.Random(seed)
    partitions, now, batches, number = chance.randint(1, 4), 0, [[]], 0
    for _ in range(chance.randint(5, 15)):
        for name in range(SIDE_BY_SIDE):
            ts = max(0, now + chance.randint(-15, 6))
            key = chance.choice(["a", "b", None])
            batches[-1].append(Row(chance.randrange(partitions), key, chr(ord("A") + name), ts, number))
            number += 1
        if chance.random() < 0.25:
            batches.append([])
        now += chance.randint(0, 6)
    return Case(batches, partitions, chance.choice(["column", "expression"]), chance.choice([1, 4, 10]))


def identity(row: Row, by: str) -> Any:
    return {
        "column": row.id,
        "expression": row.id and row.id.lower(),
        "several": None if None in (row.id, row.key) else (row.id, row.key),
        "key": row.key,
    }[by]


def expected(case: Case) -> tuple[Counter[Any], dict[str, int]]:
    """What comes out, (key, number), and what is counted."""
    times: dict[int, int] = {}
    passed: list[tuple[Any, int]] = []
    out: Counter[Any] = Counter()
    counts: Counter[str] = Counter()
    for batch in case.batches:
        arrived = []
        for place, row in enumerate(batch):
            times[row.partition] = max(times.get(row.partition, 0), row.ts)
            arrived.append((times[row.partition], row.partition, place, row))
        for now, _, _, row in sorted(arrived):
            name = identity(row, case.by)
            if name is None:
                counts["dropped.null_key"] += 1
            elif now >= row.ts + case.within:
                counts["unchecked"] += 1
                out[row.key, row.number] += 1
            elif not any(other == name and abs(ts - row.ts) < case.within for other, ts in passed):
                passed.append((name, row.ts))
                out[row.key, row.number] += 1
    return out, dict(counts)


def service(case: Case, factor: int = 1) -> es.Service:
    app = es.Service("s")
    rows = app.stream("in", key="k", schema={"id": str | None, "n": int, "at": int}, time="at")
    first = rows.dedup(IDS[case.by], within=f"{case.within}ms")
    first.to("first")
    first.with_columns(n=col("n") * factor).to("numbers", key="n")
    return app


def compare(driver: es.testing.Driver, case: Case, factor: int, where: str) -> None:
    rows, _ = expected(case)
    assert Counter((record.key, record.value["n"]) for record in driver.records("first")) == rows, where
    assert set(driver.table("numbers")) == {number * factor for _, number in rows}, where


def played(case: Case, shards: int) -> es.testing.Driver:
    driver = es.testing.Driver(service(case), partitions=case.partitions, shards=shards)
    for batch in case.batches:
        with driver.batch():
            for row in batch:
                value = {"id": row.id, "n": row.number, "at": row.ts}
                driver.send("in", row.key, value, ts=5000 - row.ts, partition=row.partition)
    return driver


@examples(150, 75)
@given(cases(), st.integers(0, 10**6))
def test_dedup_equals_the_model_live_and_recalculated(case, seed):
    driver = played(case, random.Random(seed).choice([1, 3]))
    compare(driver, case, 1, "live")
    assert driver.counts("first") == expected(case)[1]
    driver.upgrade(service(case, factor=3))
    compare(driver, case, 3, "recalculated")
    PLAYED["dedup"] += 1


@examples(100, 25)
@given(st.integers(0, 10**6))
def test_dedup_of_many_histories_side_by_side_equals_the_model(seed):
    case = side_by_side(seed)
    driver = played(case, random.Random(seed).choice([1, 3]))
    compare(driver, case, 1, "side by side")
    assert driver.counts("first") == expected(case)[1]
    PLAYED["dedup"] += SIDE_BY_SIDE


@pytest.mark.parametrize("reached", range(18))
def test_dedup_remembers_an_id_as_long_as_a_row_may_meet_it(reached):
    """Every first time in a slice and every second time, in micro-batches of their own with time in between."""
    pairs = [(first, second) for first in range(4) for second in range(reached + 1)]
    rows = [[Row(0, "a", f"{first}/{second}", first, place) for place, (first, second) in enumerate(pairs)]]
    rows.append([Row(0, "a", "between", reached, len(pairs))])
    rows.append(
        [row._replace(ts=second, number=1000 + row.number) for row, (_, second) in zip(rows[0], pairs, strict=True)]
    )
    case = Case(rows, 1, "column", 4)
    compare(played(case, 1), case, 1, "live")
