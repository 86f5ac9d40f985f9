"""Random histories of a compacted topic and a stream, compared with a model that is a list and a dictionary."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everstate.log import combined_digest
from tests.effort import examples

DAY_MS = 86_400_000
KEYS = st.sampled_from(["a", "b", "c", "d"])
RECORDS = st.lists(st.tuples(KEYS, st.none() | st.sampled_from(["1", "2", "3"])), max_size=4)
UNIQUE = st.dictionaries(KEYS, st.none() | st.sampled_from(["1", "2", "3"]), max_size=4).map(lambda d: list(d.items()))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), RECORDS),
        st.tuples(st.just("publish"), UNIQUE),
        st.tuples(st.just("publish"), UNIQUE),
        st.tuples(st.just("repeat"), st.none()),
        st.tuples(st.just("correct"), UNIQUE),
        st.tuples(st.just("compact"), st.none()),
        st.tuples(st.just("wait"), st.sampled_from([1, DAY_MS // 2, DAY_MS])),
    ),
    max_size=14,
)


@dataclass
class Model:
    """What the topics hold: every record ever written, by partition, and the table."""

    written: dict[int, list[tuple]] = field(default_factory=lambda: {0: [], 1: []})
    table: dict[str, str] = field(default_factory=dict)
    before_batch: dict[str, str | None] = field(default_factory=dict)
    batch: dict[str, str | None] = field(default_factory=dict)
    published: dict[str, str | None] = field(default_factory=dict)
    events: list[tuple] = field(default_factory=list)

    def write(self, records, place):
        for key, value in records:
            self.written[place[key]].append((key, value))
            self.set(key, value)

    def set(self, key, value):
        if value is None:
            self.table.pop(key, None)
        else:
            self.table[key] = value


class Run:
    """Applies steps to a log and to the model."""

    def __init__(self, bench) -> None:
        self.bench, self.model, self.batch_id, self.corrigible = bench, Model(), -1, False
        bench.topic("table", compact=True, partitions=2)
        bench.topic("events")
        self.place = {key: number % 2 for number, key in enumerate("abcd")}
        self.dense = "dense" in bench.can

    def do(self, step, argument):
        getattr(self, step)(argument)

    def _staged(self, content):
        records = [(key, value) for key, value in content]
        batch, staged = self.bench.batch({"events": [("e", str(self.batch_id))]}, max(0, self.batch_id))
        if records:
            partitions = pl.Series("partition", [self.place[key] for key, _ in records], dtype=pl.Int32)
            staged += self.bench.log.stage_all("table", self.bench.frame(*records).with_columns(partitions))
        return replace(batch, digest=combined_digest(staged)), staged

    def append(self, records):
        partitions = [self.place[key] for key, _ in records]
        if records:
            self.bench.send("table", *records, partition=partitions)
            self.model.write(records, self.place)
            self.corrigible = False  # what a correction restores is only defined while nobody else writes the keys

    def publish(self, content):
        self.batch_id += 1
        self.corrigible = True
        self.model.before_batch = dict(self.model.table)
        assert self.bench.log.commit(*self._staged(content)).status == "committed"
        self.model.batch, self.model.published = dict(content), dict(content)
        self.model.write(content, self.place)
        self.model.events.append(("e", str(self.batch_id)))

    def repeat(self, _):
        if self.corrigible:
            status = self.bench.log.commit(*self._staged(list(self.model.batch.items()))).status
            assert status == "skipped"

    def correct(self, content):
        if not self.corrigible:
            return
        ends = self.bench.log.end_offsets(["table"])["table"]
        published, new = self.model.published, dict(content)
        status = self.bench.log.commit(*self._staged(content)).status
        assert status == ("skipped" if self.model.batch == new else "corrected")
        # A key that an earlier content of the batch had and this one has not gets its value from before the batch.
        wanted = {key: new.get(key, self.model.before_batch.get(key)) for key in {*published, *new}}
        changes = [(key, value) for key, value in wanted.items() if key not in published or published[key] != value]
        grown = self.bench.log.end_offsets(["table"])["table"]
        if self.dense:
            assert sum(grown.values()) - sum(ends.values()) == len(changes)
        for key, value in changes:
            self.model.set(key, value)
            published[key] = value
        for partition, end in grown.items():
            fresh = self.bench.records("table", partition, start=ends[partition])
            self.model.written[partition] += [(r.key.decode(), r.value and r.value.decode()) for r in fresh]
            assert not self.dense or len(self.model.written[partition]) == end
        self.model.batch = new

    def compact(self, _):
        if "compact" in self.bench.can:
            self.bench.log.compact("table")
            self.bench.log.compact("events")

    def wait(self, milliseconds):
        if "clock" in self.bench.can:
            self.bench.clock.advance(milliseconds)

    def check(self):
        assert self.bench.table("table") == self.model.table
        assert self.bench.values("events") == self.model.events
        ends = self.bench.log.end_offsets(["table"])["table"]
        for partition, written in self.model.written.items():
            found = self.bench.records("table", partition)
            assert [r.offset for r in found] == sorted({r.offset for r in found})
            content = [(record.key.decode(), record.value and record.value.decode()) for record in found]
            if self.dense:
                assert ends[partition] == len(written)
                assert content == [written[record.offset] for record in found]
            else:
                assert content == written
            self._check_splits(partition, ends[partition], [record.offset for record in found])

    def _check_splits(self, partition, end, offsets):
        for max_records in (1, 3):
            parts = self.bench.log.splits("table", partition, 0, end, max_records=max_records)
            frames = [self.bench.log.read_split(part) for part in parts]
            assert all(len(frame) <= max_records for frame in frames)
            assert [offset for frame in frames for offset in frame["offset"].to_list()] == offsets


def check_history(bench, steps):
    run = Run(bench)
    for step, argument in steps:
        run.do(step, argument)
    run.check()
    run.compact(None)
    run.check()
    bench.log.close()


@pytest.mark.needs("clock")  # where it cannot be set, an example takes seconds: tests/kafka has some
@settings(deadline=None, max_examples=examples(500, 25))
@given(STEPS)
def test_log_random_histories_equal_the_model(new_bench, steps):
    check_history(new_bench(), steps)
