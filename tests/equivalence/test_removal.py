"""The tombstone service against a plain model of the topic, and what its owner makes of removed keys in later versions.

The model knows the records of a topic and nothing else: the last record of each key and partition, and the least stream
time of the partitions. What comes back, live or with an edit, are the keys of which input has come since.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from polars import col

import everstate as es
from everstate.topology.nodes.removal import Removal
from tests.equivalence.playing import examples
from tests.figures import PLAYED

#: The operations whose results are proven here.
PROVES = (Removal,)

TOPICS = ("rows", "sums")


class Send(NamedTuple):
    """A record; a tombstone without `n`."""

    key: str
    n: int | None
    ts: int


class Remove(NamedTuple):
    """A run of the tombstone service."""

    topic: str
    after: int


class Edit(NamedTuple):
    """A new version."""

    factor: int


class Case(NamedTuple):
    """A history, the partitions and shards."""

    steps: list[Send | Remove | Edit]
    partitions: int
    shards: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    sends = st.tuples(st.integers(-20, 12), st.sampled_from("abcdef"), st.booleans())
    removals = st.builds(Remove, st.sampled_from(TOPICS), st.sampled_from([1, 5, 20, 100]))
    drawn = draw(st.lists(st.one_of(sends, sends, removals, st.builds(Edit, st.integers(1, 3))), max_size=40))
    now, steps = 0, []
    for number, step in enumerate(drawn):
        if isinstance(step, (Remove, Edit)):
            steps.append(step)
            continue
        by, key, deletes = step
        # Each value is new: what repeats the one before is no change of a table.
        steps.append(Send(key, None if deletes and number % 3 == 0 else number + 1, max(0, now + by)))
        now = max(now, now + by // 2)
    return Case(steps, draw(st.integers(1, 3)), draw(st.sampled_from([1, 3])))


def service(factor: int) -> es.Service:
    app = es.Service("s")
    app.table("in", key="k", schema={"n": int}).select(n=col("n") * factor).to("rows")
    events = app.stream("events", key="k", schema={"n": int})
    events.group_by("k").agg(total=col("n").sum()).select(total=col("total") * factor).to("sums")
    return app


def expected_removals(driver: es.testing.Driver, topic: str, partitions: int, after: int) -> dict[str, Any]:
    """The key, partition, offset and time of all last records that are due."""
    last: dict[tuple[str, int], Any] = {}
    times: dict[int, int] = {}
    for record in driver.records(topic):
        times[record.partition] = max(times.get(record.partition, 0), record.ts)
        last[record.key, record.partition] = record
    frontier = min(times.values()) if len(times) == partitions else -1
    return {
        key: (place, record.offset, record.ts)
        for (key, place), record in last.items()
        if record.value is not None and record.ts + after <= frontier
    }


class Model:
    """What the topics of the service hold."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.sums: dict[str, int] = {}
        self.gone: dict[str, set[str]] = {topic: set() for topic in TOPICS}

    def take(self, step: Send) -> None:
        if step.n is None:
            self.rows.pop(step.key, None)
        else:
            self.rows[step.key] = step.n
            self.sums[step.key] = self.sums.get(step.key, 0) + step.n
            self.gone["sums"].discard(step.key)
        self.gone["rows"].discard(step.key)

    def tables(self, factor: int) -> dict[str, Any]:
        return {
            "rows": {key: {"n": n * factor} for key, n in self.rows.items() if key not in self.gone["rows"]},
            "sums": {key: {"total": n * factor} for key, n in self.sums.items() if key not in self.gone["sums"]},
        }


def removed(driver: es.testing.Driver, step: Remove, partitions: int) -> set[str]:
    """Run the service; returns what it has removed, having looked at each tombstone."""
    # What came before its first run of this length counts as well; a shorter one waits for the next record.
    due = expected_removals(driver, step.topic, partitions, step.after)
    before = len(driver.records(step.topic))
    count = driver.remove_quiet(step.topic, after=f"{step.after}ms")
    written = driver.records(step.topic)[before:]
    found = {r.key: (r.partition, int(r.headers["es-removed"]), r.ts) for r in written}
    assert all(record.value is None for record in written)
    assert count == len(written) == len(found)
    assert found.items() <= due.items()
    return set(found)


@examples(150, 75)
@given(cases())
def test_removed_keys_are_those_that_were_quiet_and_stay_removed_until_input_comes(case):
    driver, model, factor = es.testing.Driver(service(1), case.partitions, shards=case.shards), Model(), 1
    for step in case.steps:
        if isinstance(step, Send):
            driver.send("in", step.key, None if step.n is None else {"n": step.n}, ts=step.ts)
            if step.n is not None:
                driver.send("events", step.key, {"n": step.n}, ts=step.ts)
            model.take(step)
        elif isinstance(step, Remove):
            model.gone[step.topic] |= removed(driver, step, case.partitions)
        else:
            factor = step.factor
            driver.upgrade(service(factor))
        assert {topic: driver.table(topic) for topic in TOPICS} == model.tables(factor), step
    PLAYED["removal"] += 1


@examples(100)
@given(cases())
def test_one_length_of_time_removes_all_that_is_due_at_every_run(case):
    driver = es.testing.Driver(service(1), case.partitions, shards=case.shards)
    for step in case.steps:
        if isinstance(step, Send):
            driver.send("in", step.key, None if step.n is None else {"n": step.n}, ts=step.ts)
        elif isinstance(step, Remove):
            due = expected_removals(driver, "rows", case.partitions, 5)
            assert removed(driver, Remove("rows", 5), case.partitions) == set(due)
            assert not expected_removals(driver, "rows", case.partitions, 5)


def test_the_wall_clock_removes_keys_although_nothing_comes_and_a_longer_time_removes_no_more():
    driver = es.testing.Driver(service(1), partitions=2)
    driver.send("in", "a", {"n": 1}, ts=1_000)
    driver.send("in", "b", {"n": 2}, ts=5_000)
    driver.advance(clock=6_000)
    assert driver.remove_quiet("rows", after="5s", clock="wall") == 1
    driver.advance(clock=9_999)
    assert driver.remove_quiet("rows", after="5s", clock="wall") == 0
    driver.advance(clock=10_000)
    assert driver.remove_quiet("rows", after="5s", clock="wall") == 1
    assert driver.table("rows") == {}
    driver.send("in", "c", {"n": 3}, ts=9_000)
    driver.advance(clock=13_000)
    assert driver.remove_quiet("rows", after="10s", clock="wall") == 0
    assert driver.remove_quiet("rows", after="2s", clock="wall") == 0
    driver.advance(clock=13_001)
    assert driver.remove_quiet("rows", after="2s", clock="wall") == 1
    assert [r.key for r in driver.records("rows") if r.value is None] == ["a", "b", "c"]


def test_what_is_left_of_a_removed_key_in_other_outputs_stays():
    driver = es.testing.Driver(service(1))
    driver.send("in", "a", {"n": 1}, ts=0)
    driver.send("events", "a", {"n": 1}, ts=0)
    driver.send("in", "b", {"n": 2}, ts=50)
    assert driver.remove_quiet("rows", after="10ms") == 1
    driver.upgrade(service(2))
    assert (driver.table("rows"), driver.table("sums")) == ({"b": {"n": 4}}, {"a": {"total": 2}})
    driver.tombstone("in", "a")
    driver.upgrade(service(3))
    assert driver.table("rows") == {"b": {"n": 6}}
