"""Random edits of random services: after each, every topic is what a first run of the version gives.

A pack is played through all versions of one sequence of edits, so each of its histories is a sequence of its own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

import everstate as es
from everstate.errors import TopicNotFoundError
from tests.equivalence.histories import FINITE, Layout, Pack, Placed, batches, events, packs
from tests.equivalence.playing import assert_same, blaming, examples, shown
from tests.equivalence.versions import STREAMS, TABLES, Version, edits
from tests.figures import PLAYED

if TYPE_CHECKING:
    from everstate.testing.driver import Upgrade

#: Packs of which `make test` plays its share, and in the long run.
SOME, MANY_TABLES, MANY_STREAMS = 4, 50, 20

value = st.fixed_dictionaries(
    {
        "g": st.sampled_from(["a", "a", "b", "c", None]),
        "x": st.sampled_from([-1, 0, 1, 1, 2, 5, None]),
        "f": st.none() | FINITE,
    }
)
BAD = (b"{", b'{"x": "1"}', b'{"g": 5}')
histories = packs(
    *(events(topic, value, keys="abc", bad=BAD) for topic in ("left", *TABLES)),
    *(events(topic, value, keys="abc", bad=BAD, lanes=True) for topic in ("events", *STREAMS)),
    shortest=8,
    longest=16,
    count=15,
)
layouts = st.builds(
    Layout, st.sampled_from([1, 2, 2, 3]), st.sampled_from([1, 1, 2]), st.just(0), st.integers(0, 10_000)
)


@dataclass
class Life:
    """A service that is edited while records come.

    Attributes:
        driver: It runs there.
        output: The one to whose order of arrival the others need not look.
        sent: Batches so far.
        ends: Numbers of batches after which a micro-batch of that output ended: the order that must be kept.
    """

    version: Version
    layout: Layout
    driver: es.testing.Driver
    output: str = "out-0"
    sent: list[list[Placed]] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, version: Version, layout: Layout) -> Life:
        return cls(version, layout, started(version, layout), "rows" if version.stream else "out-0")

    def play(self, batch: list[Placed]) -> None:
        send(self.driver, batch)
        self.sent.append(batch)
        read = self.version.units[self.output].topics
        if any(event.topic in read for event in batch):
            self.ends.append(len(self.sent))

    def edit(self, version: Version, meanwhile: list[Placed] | None = None, **options: Any) -> Upgrade:
        """Deploy another version; records that come meanwhile have not been processed by the one before."""
        with self.driver.batch():
            send(self.driver, meanwhile or [])
            upgrade = self.driver.upgrade(version.service(), **options)
        self.sent += [meanwhile] if meanwhile else []
        self.version = version
        read, rest = version.units[self.output].topics, self.sent[self.ends[-1] if self.ends else 0 :]
        if any(event.topic in read for batch in rest for event in batch):
            self.ends.append(len(self.sent))
        return upgrade

    def fresh(self, since: int = 0) -> tuple[es.testing.Driver, int]:
        """A first run of this version, with micro-batches as they were where that matters.

        Returns:
            The driver, and how many records of the stream came out of the batches before `since`.
        """
        last = len(self.sent)
        ends = sorted({0, since, last, *(end for end in self.ends if self.version.ordered)})
        driver, before = started(self.version, self.layout), 0
        for start, end in pairwise(ends):
            send(driver, [event for batch in self.sent[start:end] for event in batch])
            before = len(driver.records("rows")) if end == since else before
        return driver, before

    def tables(self) -> dict[str, dict[Any, Any]]:
        """All tables and dead letters that any version has made."""
        return {name: self.table(name) for topic in OUTPUTS for name in (topic, f"{topic}.dlq")}

    def table(self, topic: str) -> dict[Any, Any]:
        """A table; empty if no version has declared it so far."""
        try:
            return plain(self.driver.table(topic))
        except TopicNotFoundError:
            return {}

    @property
    def superseded(self) -> set[str]:
        """Keys of dead letters about records of tables after which their key got another one."""
        last: dict[tuple[str, Any], Placed] = {}
        gone = set()
        for event in (event for batch in self.sent for event in batch if event.topic in TABLES):
            if (event.topic, event.key) in last:
                was = last[event.topic, event.key]
                gone.add(f'["{was.topic}",{was.partition},{was.offset}]')
            last[event.topic, event.key] = event
        return gone


OUTPUTS = [f"out-{place}" for place in range(3)]


def started(version: Version, layout: Layout) -> es.testing.Driver:
    topics = dict.fromkeys((*TABLES, *STREAMS), ())
    return es.testing.Driver(version.service(), layout.partitions, shards=layout.shards, topics=topics)


def send(driver: es.testing.Driver, batch: list[Placed]) -> None:
    with driver.batch():
        for event in batch:
            driver.send(event.topic, event.key, event.value, event.ts, event.partition)


def plain(table: dict[Any, Any]) -> dict[Any, str]:
    """Values as text that tells 1 from 1.0, and not 0.0 from -0.0; of a dead letter only what it is about."""
    return {key: shown(_positive(value)) for key, value in table.items()}


def _positive(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _positive(part) for name, part in value.items() if name not in {"reason", "step"}}
    return value + 0.0 if isinstance(value, float) else value


def check_tables(life: Life) -> dict[str, dict[Any, Any]]:
    """Every table is that of a first run; what no version has any more is empty."""
    (fresh, _), found = life.fresh(), life.tables()
    for output in OUTPUTS:
        letters = f"{output}.dlq"
        if output not in life.version.outputs:
            assert found[output] == {}
            continue
        assert_same(found[output], plain(fresh.table(output)), f"{output} of {life.version}")
        wanted = plain(fresh.table(letters))
        # A cutover need not repeat letters about records that were superseded before it.
        needed = {key: letter for key, letter in wanted.items() if key in found[letters] or key not in life.superseded}
        # An output that begins may meet records of another schema that an earlier version has left on its source.
        about = {key: letter for key, letter in found[letters].items() if not key.startswith('["out-')}
        assert_same(about, needed, f"{letters} of {life.version}")
    return found


def check_written(upgrade: Upgrade, before: dict[str, dict[Any, Any]], after: dict[str, dict[Any, Any]]) -> None:
    """A cutover writes each key that differs, once, and no other; it removes none that the version has."""
    for action in upgrade.plan.actions:
        for topic, records in ((action.output, upgrade.records), (f"{action.output}.dlq", upgrade.dead_letters)):
            own = [record for record in records if record.topic == topic]
            was, now = before[topic], after[topic]
            differing = {key for key in {**was, **now} if was.get(key) != now.get(key)}
            if action.kind == "nothing":
                assert own == [], f"{topic}: nothing was to be done"
            elif action.kind != "retire" or not topic.endswith(".dlq"):
                assert Counter(record.key for record in own) == Counter(differing), (topic, action.kind)
            for record in own:
                assert record.value is not None or record.key not in now, f"{topic}: {record.key} was removed"


def unchanged(life: Life) -> None:
    """The same version again is no change, and writes nothing when it is recalculated all the same."""
    same = life.edit(life.version)
    assert {action.kind for action in same.plan.actions} == {"nothing"}
    forced = life.edit(life.version, recalculate=life.version.outputs)
    assert {action.kind for action in forced.plan.actions} <= {"recalculate", "nothing"}
    assert (same.records, forced.records, same.dead_letters, forced.dead_letters) == ([], [], [], [])


def phases(pack: Pack, layout: Layout, count: int) -> list[list[list[Placed]]]:
    """A pack in micro-batches, two or so for each version."""
    parts = batches(pack, Layout(layout.partitions, layout.shards, 2 * count, layout.seed))
    return [parts[2 * place : 2 * place + 2] for place in range(count)]


def check_edits(sequence: list[Version], pack: Pack, layout: Layout) -> None:
    def check(some: Pack) -> None:
        life = Life.of(sequence[0], layout)
        for version, parts in zip(sequence, phases(some, layout, len(sequence)), strict=True):
            if version is not sequence[0]:
                before = life.tables()
                upgrade = life.edit(version, parts.pop(0) if parts and layout.seed % 2 else None)
                check_written(upgrade, before, check_tables(life))
            for part in parts:
                life.play(part)
        check_tables(life)
        unchanged(life)

    blaming(check, pack)
    PLAYED["edits"] += len(pack)


def check_stream(sequence: list[Version], pack: Pack, layout: Layout) -> None:
    """After each cutover comes what a first run gives for the records after it, in the same order."""

    def check(some: Pack) -> None:
        life = Life.of(sequence[0], layout)
        for version, parts in zip(sequence, phases(some, layout, len(sequence)), strict=True):
            mark, cut = len(life.driver.records("rows")), len(life.sent)
            if version is not sequence[0]:
                # Of a source that is new, everything before the cutover is the past.
                late = version.topics == life.version.topics and parts and layout.seed % 2
                upgrade = life.edit(version, parts.pop(0) if late else None)
                assert [record for record in upgrade.records if record.topic == "rows"] == []
            for part in parts:
                life.play(part)
            fresh, silent = life.fresh(since=cut)
            wanted, found = fresh.records("rows")[silent:], life.driver.records("rows")[mark:]
            assert [_line(record) for record in found] == [_line(record) for record in wanted], version
        unchanged(life)

    blaming(check, pack)
    PLAYED["edits of streams"] += len(pack)


def _line(record: es.testing.DriverRecord) -> str:
    return shown((record.key, record.value, record.ts))


@examples(MANY_TABLES, SOME)
@given(edits(), histories, layouts)
def test_edits_of_tables_lead_to_what_a_first_run_gives(sequence, pack, layout):
    check_edits(sequence, pack, layout)


@examples(MANY_STREAMS, SOME)
@given(edits(stream=True, longest=1), histories, layouts)
def test_edits_of_streams_lose_and_double_nothing(sequence, pack, layout):
    check_stream(sequence, pack, layout)
