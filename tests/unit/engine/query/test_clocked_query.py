"""Planner, tasks, shards and commits of a query as Spark calls them, on a clock of the test's own.

Only Spark itself is left out: addresses go from the reader to tasks, packed rows to shards, reports to the log.
"""

from __future__ import annotations

import json

import polars as pl
import pytest

import everstate as es
from everstate import col
from everstate.log import vectors
from everstate.log.descriptions import Batch, Commit, Split, Staged, TopicConfig
from everstate.log.opening import open_log
from everstate.log.planning import Timing, suited
from everstate.schema.topic_names import dead_letter_topic

pyspark = pytest.importorskip("pyspark")

from pyspark.sql.streaming.datasource import ReadMaxRows  # noqa: E402

from everstate.engine.query import source  # noqa: E402
from everstate.engine.query.job import Job  # noqa: E402
from everstate.engine.query.packing import Packed, pack  # noqa: E402
from everstate.engine.query.shard_numbers import shard_ids, stage_groups  # noqa: E402
from everstate.engine.query.shard_task import ShardTask  # noqa: E402
from everstate.engine.query.source_task import ingested  # noqa: E402
from everstate.kernels.pages.page_store import MemoryPages  # noqa: E402

MINUTE = 60_000


@pytest.fixture
def clock(monkeypatch):
    """The wall clock, in a list that the test changes."""
    now = [1_000_000]
    monkeypatch.setattr(source, "wall_clock", lambda: now[0])
    return now


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.setattr(Job, "log", lambda job: open_log(job.url))
    log = open_log(tmp_path / "log")
    log.create_topic("in", TopicConfig(partitions=2))
    yield log
    log.close()


class Query:
    """One generation of one output.

    Args:
        log: The log.
        unit: What to run.
        closed: It is this generation, repeats what the first one has done, up to where that is, and writes to a topic
            of its own; 0 for the first one.
        most: The most records of a batch.
    """

    def __init__(self, log, unit, *, shards=2, closed=0, most=1000):
        self.log, self.unit, self.closed, self.most = log, unit, closed, most
        self.name, self.timing = unit.output.topic, Timing.of(unit)
        self.generation = str(closed or 1)
        self.target = f"{self.name}-{closed}" if closed else self.name
        for topic in (self.target, dead_letter_topic(self.target)):
            log.create_topic(topic, TopicConfig(compact=True), exist_ok=True)
        self.lease = log.acquire(self.target)
        self.initial = log.begin_offsets(unit.topics)
        stops = log.order(unit.service, self.name, unit.topics) if closed else None
        last = log.last_commit(unit.service, self.name)
        limit = {**last.end, **self.timing.within(last.end)} if closed else None
        self.job = Job.of(
            unit,
            url=log.url,
            opening=b"",
            target=self.target,
            dead_letters=dead_letter_topic(self.target),
            partitions=1,
            generation=self.generation,
            policy="dead-letter",
            shards=shards,
            vectors=suited(stops, self.timing) if closed and self.timing.ordered else None,
        )
        self.options = source.SourceOptions(
            url=log.url,
            topics=unit.topics,
            initial=self.initial,
            end=limit,
            max_records=most,
            tasks=3,
            task_records=2,
            order=(unit.service, self.name) if closed else (),
            recorded=0 if stops is None else len(stops),
            timing=self.timing.to_document(),
            live=not closed,
            owner=(unit.service, self.name, self.generation),
        )
        self.pages = {}
        self.books = {}
        self.batch, self.position = 0, self.initial
        self.restart()

    def restart(self):
        """Another process plans and runs the batches."""
        self.reader = source.LogReader(source.SourceOptions.from_spark(self.options.to_spark()))

    def drain(self):
        """Run batches until there is nothing to do; says how many there were."""
        before = self.batch
        while (end := self.planned()) != self.position:
            self.run(end)
        return self.batch - before

    def planned(self):
        found = self.reader.latestOffset(json.loads(vectors.to_json(self.position)), ReadMaxRows(self.most))
        return vectors.from_json(json.dumps(found))

    def run(self, end):
        start, after = self.position, {}
        groups = self.reader.partitions(json.loads(vectors.to_json(start)), json.loads(vectors.to_json(end)))
        packed = []
        for sender, group in enumerate(groups):
            addresses = [Split(*row) for row in self.reader.read(group)]
            packed += pack(ingested(self.job, addresses), shards=self.job.shards, sender=sender)
        reports = []
        stages = stage_groups(self.unit.depth, self.job.shards)
        for place, some in enumerate(stages):
            onward = []
            for number in shard_ids(self.job.shards):
                rows = [tuple(vars(item).values()) for item in packed if item.shard == number]
                if not rows:
                    continue
                pages = MemoryPages()
                pages.blocks = dict(self.pages.get((place, number), {}))
                task = ShardTask(self.job, some, number, pages, self.books.get((place, number)))
                passing, parcels = task.run(rows)
                if place == len(stages) - 1:
                    reports.append(json.loads(task.report(passing, parcels)))
                else:
                    onward += [Packed(**row) for row in task.onward(passing, parcels)]
                after[place, number] = (pages.blocks, task.bookkeeping)
            packed = onward
        staged = [Staged(**part) for report in reports for part in report["staged"]]
        times = vectors.from_offsets(reports[0]["times"])
        commit = Commit.of(
            Batch("query", self.batch, start, end, times),
            staged,
            self.lease,
            service=self.unit.service,
            output=self.name,
            generation=self.generation,
            kind="closed" if self.closed else "open",
            ordered=self.timing.noted(start, end),
        )
        self.log.commit(commit, staged)
        for place, (blocks, books) in after.items():
            self.pages[place], self.books[place] = blocks, books
        self.batch, self.position = self.batch + 1, end

    def table(self):
        found = self.log.latest(self.target).select("key", "value").iter_rows()
        return {key.decode(): json.loads(value) for key, value in found}

    def records(self):
        return self.log.read(self.target, 0, 0).select("key", "value").rows()


def send(log, *rows):
    """Records of (partition, key, value, ts)."""
    columns = {
        "partition": pl.Series([row[0] for row in rows], dtype=pl.Int32),
        "key": [row[1].encode() for row in rows],
        "value": [json.dumps(row[2]).encode() for row in rows],
        "ts": [row[3] for row in rows],
    }
    log.append("in", pl.DataFrame(columns))


def unit_of(build, idle=None):
    app = es.Service("s")
    build(app.stream("in", key="k", schema={"n": int}, idle_after=idle))
    return app.units()[-1]


def rings(rows):
    def watch(row: dict, ctx: es.Context) -> None:
        ctx.timer(str(row["n"]), at=ctx.now + 1000 * row["n"], clock="wall")
        ctx.timer(f"event {row['n']}", at=ctx.time + row["n"])

    def ring(ctx: es.Context) -> dict:
        return {"id": f"{ctx.key} {ctx.due}", "at": ctx.now, "time": ctx.time}

    made = rows.process(watch, on_timer=ring, schema={"id": str, "at": int, "time": int}, wall_clock=True)
    made.to("rung", key="id")


def finals(rows):
    rows.group_by("k").window(es.tumbling("10ms"), emit="final").agg(n=col("n").sum()).to("final")


def grow(log, topic):
    """One more partition, as a broker gives it to a topic."""
    with log._store.manifest.writing() as database:
        row = database.execute("SELECT id, partitions FROM topics WHERE name = ?", (topic,)).fetchone()
        database.execute("UPDATE topics SET partitions = partitions + 1 WHERE id = ?", (row["id"],))
        number = (row["id"], row["partitions"])
        database.execute("INSERT INTO partitions (topic_id, partition) VALUES (?, ?)", number)


@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize("most", [1, 3, 1000])
def test_query_rings_without_records_and_a_recalculation_finds_the_clock(log, clock, shards, most):
    live = Query(log, unit_of(rings), shards=shards)
    send(log, (0, "a", {"n": 3}, 10), (1, "b", {"n": 5}, 10), (1, "a", {"n": 60}, 12))
    began = clock[0]
    for _ in range(20):
        live.drain()
        clock[0] += 400
    assert live.batch == 7, "one with records, then one at every look that comes a second later"
    send(log, (0, "c", {"n": 1}, 90), (1, "c", {"n": 2}, 95))
    for _ in range(6):
        live.drain()
        clock[0] += 900
        live.restart()
    found = live.table()
    at = {name: row["at"] for name, row in found.items()}
    assert at["a 3"] - began in range(3000, 4500)
    assert at["b 5"] - began in range(5000, 6500)
    assert {name: row["time"] for name, row in found.items() if "event" in name} == {
        "a event 3": 13,
        "b event 5": 15,
        "a event 60": 72,
    }
    assert "a 60" not in at
    assert len(live.records()) == len(found)
    again = Query(log, unit_of(rings), shards=shards, closed=2, most=most)
    again.drain()
    assert again.table() == found
    assert again.position["in"] == live.position["in"]
    assert vectors.clock_of(again.position) == vectors.clock_of(live.position)


def test_batch_that_comes_again_has_the_clock_that_was_planned(log, clock):
    live = Query(log, unit_of(rings))
    send(log, (0, "a", {"n": 1}, 10))
    live.drain()
    clock[0] += 5000
    planned = live.planned()
    clock[0] += 5000
    live.restart()
    live.run(planned)
    assert live.table()["a 1"]["at"] == vectors.clock_of(planned) == 1_005_000


@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize("most", [1, 2, 1000])
def test_quiet_waking_empty_and_added_partitions_do_not_hold_windows_up(log, clock, shards, most):
    live = Query(log, unit_of(finals, idle="1m"), shards=shards)
    send(log, (0, "a", {"n": 1}, 5))
    live.drain()
    clock[0] += MINUTE
    send(log, (0, "a", {"n": 1}, 25))
    live.drain()
    assert len(live.table()) == 1, "partition 1 never had a record"
    send(log, (1, "b", {"n": 7}, 3), (1, "b", {"n": 2}, 26), (0, "a", {"n": 1}, 45))
    live.drain()
    assert sorted(row["n"] for row in live.table().values()) == [1], "partition 1 is awake"
    grow(log, "in")
    send(log, (2, "c", {"n": 9}, 4), (2, "c", {"n": 4}, 28), (0, "a", {"n": 1}, 47))
    live.drain()
    clock[0] += 2 * MINUTE
    send(log, (0, "a", {"n": 1}, 90))
    live.drain()
    found = live.table()
    assert sorted(row["n"] for row in found.values()) == [1, 1, 2, 2, 4], "7 and 9 were late"
    assert log.last_commit("s", "final").times == {"in": {0: 90, 1: 90, 2: 90}}
    again = Query(log, unit_of(finals, idle="1m"), shards=shards, closed=2, most=most)
    again.drain()
    assert again.table() == found
    waiting = Query(log, unit_of(finals), shards=shards, closed=3, most=most)
    waiting.drain()
    assert sorted(row["n"] for row in waiting.table().values()) != sorted(row["n"] for row in found.values())
