"""Windows of a table by a column, against a plain model: the rows that the table has at the end make the windows."""

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
from everstate.topology.nodes import (
    TableRowWindowAggregate,
    TableRowWindowFold,
    TableWindowAggregate,
    TableWindowFold,
)
from tests.equivalence.playing import FEW, assert_no_redundant_record, examples
from tests.figures import PLAYED

#: The operations whose results are proven here.
PROVES = (TableWindowAggregate, TableWindowFold, TableRowWindowAggregate, TableRowWindowFold)

SHAPES = ("tumbling", "hopping", "session", "sliding")


class Sold(NamedTuple):
    """A value of a key: its group, when it happened (None: not yet; below 0: too early to count), its amount."""

    group: str
    at: int | None
    amount: int


class Case(NamedTuple):
    """Records by key, in order (None is a tombstone), and the windows that they are played through."""

    records: list[tuple[str, Sold | None]]
    size: int
    advance: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    size = draw(st.sampled_from([1, 4, 5, 10]))
    advance = draw(st.sampled_from([step for step in (1, 2, 3, 4, size) if step <= size]))
    at = st.none() | st.just(-1) | st.integers(0, 40)
    row = st.builds(Sold, st.sampled_from("ab"), at, st.integers(-3, 9))
    records = draw(st.lists(st.tuples(st.sampled_from("pqrstuvw"), st.none() | row | row | row), max_size=30))
    return Case(records, size, advance)


def spans(case: Case, shape: str, times: set[int]) -> set[tuple[int, int]]:
    """The windows, both ends among their rows, that rows of a group at these times make."""
    if shape in ("tumbling", "hopping"):
        step = case.size if shape == "tumbling" else case.advance
        return {(b, b + case.size - 1) for at in times for b in range(0, at + 1, step) if b + case.size > at}
    if shape == "sliding":
        ending = {(max(at - case.size, 0), max(at, case.size)) for at in times}
        after = {(at + 1, at + 1 + case.size) for at in times}
        return ending | {(a, b) for a, b in after if any(a <= at <= b for at in times)}
    firsts = {at for at in times if not any(at - case.size <= other < at for other in times)}
    lasts = {at for at in times if not any(at < other <= at + case.size for other in times)}
    return {(first, min(last for last in lasts if last >= first)) for first in firsts}


def expected(case: Case, shape: str) -> dict[Any, dict[str, Any]]:
    latest = dict(case.records)
    groups: dict[str, list[tuple[str, Sold]]] = defaultdict(list)
    for key, row in latest.items():
        if row is not None and row.at is not None and row.at >= 0:
            groups[row.group].append((key, row))
    order = {key: place for place, (key, _) in enumerate(case.records)}  # the last record of a key decides
    table = {}
    for group, members in groups.items():
        for begin, last in spans(case, shape, {row.at for _, row in members if row.at is not None}):
            inside = [(key, row) for key, row in members if row.at is not None and begin <= row.at <= last]
            amounts = [row.amount for _, row in sorted(inside, key=lambda pair: order[pair[0]])]
            end = last + 1 if shape in ("tumbling", "hopping") else last
            table[group, moment(begin), moment(end)] = {
                "n": len(inside),
                "total": sum(amounts),
                "least": min(amounts),
                "last": amounts[-1],
                "all": amounts,
                "keys": "".join(sorted(key for key, row in inside if row.amount != REFUSED)) or None,
            }
    return table


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


#: An amount that the fold cannot add.
REFUSED = 9


def add(total: str, row: dict[str, Any]) -> str:
    if row["amount"] == REFUSED:
        raise ValueError("too much")
    return total + row["id"]


def service(case: Case, shape: str, version: int = 0) -> es.Service:
    size = f"{case.size}ms"
    shapes = {"tumbling": es.tumbling, "session": es.session, "sliding": es.sliding}
    window = es.hopping(size, f"{case.advance}ms") if shape == "hopping" else shapes[shape](size)
    app = es.Service("s")
    rows = app.table("in", key="id", schema={"id": str, "g": str, "at": int | None, "amount": int})
    grouped = rows.group_by("g").window(window, time=col("at"))
    merged = grouped.agg(n=es.count(), total=col("amount").sum() + version, least=col("amount").min())
    merged.to("merged")
    merged.group_by("window_start").agg(n=col("n").sum(), most=col("total").max()).to("by-start")
    kept = grouped.agg(n=es.count(), last=col("amount").last(), all=es.collect("amount"))
    kept.to("kept")
    kept.group_by("g").agg(lasts=es.collect("last")).to("lasts")
    grouped.aggregate(str, add, schema=str).to("fold")
    return app


def feed(driver: es.testing.Driver, records: list[Any], chance: random.Random, first: int = 0) -> None:
    cuts = sorted(chance.randint(0, len(records)) for _ in range(chance.randint(0, 4)))
    for start, end in zip([0, *cuts], [*cuts, len(records)], strict=True):
        with driver.batch():
            for number, (key, row) in enumerate(records[start:end], first + start):
                value = None if row is None else {"g": row.group, "at": row.at, "amount": row.amount}
                driver.send("in", key, value, ts=1000 + number)


def compare(driver: es.testing.Driver, case: Case, shape: str, version: int = 0) -> None:
    table = expected(case, shape)
    merged = {k: {"n": v["n"], "total": v["total"] + version, "least": v["least"]} for k, v in table.items()}
    assert driver.table("merged") == merged
    starts: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for (_, start, _), value in merged.items():
        starts[start].append(value)
    assert driver.table("by-start") == {
        s: {"n": sum(v["n"] for v in vs), "most": max(v["total"] for v in vs)} for s, vs in starts.items()
    }
    assert driver.table("kept") == {k: {n: v[n] for n in ("n", "last", "all")} for k, v in table.items()}
    groups: dict[str, list[int]] = defaultdict(list)
    for (group, _, _), value in table.items():
        groups[group].append(value["last"])
    found = {group: sorted(value["lasts"]) for group, value in driver.table("lasts").items()}
    assert found == {group: sorted(lasts) for group, lasts in groups.items()}
    assert driver.table("fold") == {k: v["keys"] for k, v in table.items() if v["keys"]}
    for topic in ("merged", "kept", "fold"):
        assert_no_redundant_record(driver, topic)


@pytest.mark.parametrize("shape", SHAPES)
@examples(500, FEW)
@given(cases(), st.integers(0, 10**6))
def test_windows_of_a_table_cut_in_any_way_equal_the_model(shape, case, seed):
    chance = random.Random(seed)
    for shards in (1, 3):
        driver = es.testing.Driver(service(case, shape), partitions=chance.randint(1, 3), shards=shards)
        feed(driver, case.records, chance)
        compare(driver, case, shape)
    PLAYED["table windows"] += 1


@examples(200, FEW)
@given(cases(), cases(), st.sampled_from(SHAPES), st.sampled_from(SHAPES), st.integers(0, 10**6))
def test_windows_of_a_table_edited_equal_the_model_of_the_new_version(case, other, shape, new_shape, seed):
    chance = random.Random(seed)
    middle = chance.randint(0, len(case.records))
    driver = es.testing.Driver(service(case, shape), partitions=2, shards=chance.choice([1, 3]))
    feed(driver, case.records[:middle], chance)
    edited = other._replace(records=case.records)
    driver.upgrade(service(edited, new_shape, version=1))
    feed(driver, case.records[middle:], chance, middle)
    compare(driver, edited, new_shape, version=1)


def test_windows_of_a_table_name_rows_without_a_time_and_those_before_1970():
    driver = es.testing.Driver(service(Case([], 5, 5), "tumbling"))
    driver.send("in", "a", {"g": "g", "at": None, "amount": 1}, ts=1)
    driver.send("in", "b", {"g": "g", "at": -1, "amount": 1}, ts=1)
    assert driver.table("merged") == {}
    assert driver.counts("merged")["dropped.null_time"] == 1
    (letter,) = driver.table("merged.dlq").values()
    assert letter["key"] == "b"
    assert letter["reason"] == "time= gives no time at or after 1970"
