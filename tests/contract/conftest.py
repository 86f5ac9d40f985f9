"""Every log passes the same suite; another one is added to `BENCHES`.

What a log cannot do by its nature is said by its bench: `can` names abilities, and a test that needs one is marked with
`needs` and left out elsewhere.

| ability | |
|---|---|
| `clock` | its time can be set |
| `compact` | it compacts when it is told to |
| `dense` | offsets follow each other without a gap, and are known after a commit |
| `count` | it knows how many records a topic has |
| `several` | two of them at a time, apart from each other |
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import ClassVar

import polars as pl
import pytest

from everstate.log import Commit, Copy, EmbeddedLog, Lease, Log, MemoryLog, TopicConfig, combined_digest, open_log
from everstate.log.records import to_records
from everstate.log.timing import wall_clock
from tests import brokers

#: A day in 2023; the suite's own time begins here.
START_MS = 1_700_000_000_000


@dataclass
class Clock:
    now_ms: int = START_MS

    def __call__(self) -> int:
        return self.now_ms

    def advance(self, milliseconds: int) -> None:
        self.now_ms += milliseconds


@dataclass
class Bench:
    """A log with what the tests do over and over."""

    can: ClassVar[frozenset[str]] = frozenset()

    log: Log
    clock: Clock
    lease: Lease | None = None
    _batches: dict[str, int] = field(default_factory=dict)

    def with_clock(self, clock) -> Log:
        """The same log, as a process sees it that has another clock."""
        raise NotImplementedError

    @staticmethod
    def frame(*records: tuple, **columns) -> pl.DataFrame:
        """Records of (key, value) or (key, value, ts), text or None."""
        return frame(*records, **columns)

    def topic(self, name: str, **config) -> str:
        self.log.create_topic(name, TopicConfig(**config))
        return name

    def send(self, topic: str, *records: tuple, **columns) -> None:
        """Append (key, value) or (key, value, ts) of text or None."""
        self.log.append(topic, frame(*records, **columns))

    def records(self, topic: str, partition: int = 0, start: int | None = None):
        first = self.log.begin_offsets([topic])[topic][partition] if start is None else start
        return list(to_records(topic, self.log.read(topic, partition, first)))

    def values(self, topic: str, partition: int = 0) -> list[tuple]:
        return [(text(record.key), text(record.value)) for record in self.records(topic, partition)]

    def content(self, topic: str) -> list:
        """All that can be compared between two logs with the same history."""
        partitions = sorted(self.log.describe(topic).start)
        if "dense" in self.can:
            return [
                (self.records(topic, number), self.log.end_offsets([topic])[topic][number]) for number in partitions
            ]
        return [[(r.key, r.value, r.headers) for r in self.records(topic, number)] for number in partitions]

    def offsets(self, topic: str, partition: int = 0) -> list[int]:
        return [record.offset for record in self.records(topic, partition)]

    def table(self, topic: str) -> dict[str, str]:
        latest = self.log.latest(topic)
        rows = {text(key): text(value) for key, value in latest.select("key", "value").iter_rows()}
        assert len(rows) == len(latest)
        return rows

    def batch(self, content: dict[str, list[tuple]], batch_id: int = 0, **changes) -> tuple[Commit, list]:
        """Stage content by topic and describe it as a batch of ten source records."""
        if self.lease is None:
            self.lease = self.log.acquire("service")
        staged = [part for topic, records in content.items() for part in self.log.stage_all(topic, frame(*records))]
        identity = {
            "service": "service",
            "output": "output",
            "generation": "g1",
            "query_id": "q1",
            "batch_id": batch_id,
            "start": {"source": {0: 10 * batch_id, 1: 0}},
            "end": {"source": {0: 10 * batch_id + 10, 1: 0}},
            "digest": combined_digest(staged),
            "token": self.lease.token,
        }
        return Commit(**{**identity, **changes}), staged

    def pause(self, milliseconds: int) -> None:
        """Let time pass; where the clock can be set, without waiting."""
        if "clock" in self.can:
            self.clock.advance(milliseconds)
        else:
            time.sleep(milliseconds / 1000)

    def copy(self, topic: str) -> Copy:
        return Copy(topic, self.log.latest(topic))

    def count(self, topic: str) -> int:
        """How many records there are, whether or not the log counts them."""
        known = self.log.describe(topic).records
        partitions = self.log.describe(topic).start
        return sum(len(self.records(topic, number)) for number in partitions) if known is None else known

    def publish(self, content: dict[str, list[tuple]], batch_id: int = 0, **changes):
        return self.log.commit(*self.batch(content, batch_id, **changes))


def frame(*records: tuple, **columns) -> pl.DataFrame:
    rows = [(*record, None)[:3] for record in records]
    built = pl.DataFrame(
        [(data(key), data(value), ts) for key, value, ts in rows],
        schema={"key": pl.Binary, "value": pl.Binary, "ts": pl.Int64},
        orient="row",
    )
    return built.with_columns(**{name: pl.Series(values) for name, values in columns.items()})


def data(content: str | None) -> bytes | None:
    return None if content is None else content.encode()


def text(content: bytes | None) -> str | None:
    return None if content is None else content.decode()


class EmbeddedBench(Bench):
    can = frozenset({"clock", "compact", "dense", "count", "several"})

    @classmethod
    def make(cls, paths) -> Bench:
        clock = Clock()
        return cls(EmbeddedLog(paths.mktemp("log"), clock=clock), clock)

    def with_clock(self, clock) -> Log:
        return EmbeddedLog(self.log.url, clock=clock)


class MemoryBench(Bench):
    can = EmbeddedBench.can

    @classmethod
    def make(cls, paths) -> Bench:
        clock = Clock()
        return cls(MemoryLog(clock=clock), clock)

    def with_clock(self, clock) -> Log:
        return MemoryLog.opened(self.log.url.removeprefix("memory:"), clock=clock)


class KafkaBench(Bench):
    """A cluster has a clock of its own, compacts when it likes, and gives offsets to the ends of transactions."""

    @classmethod
    def make(cls, paths) -> Bench:
        servers = brokers.address()
        brokers.wipe(servers)
        return cls(open_log(f"kafka://{servers}", staging=paths.mktemp("staging")), wall_clock)


BENCHES = {"embedded": EmbeddedBench, "memory": MemoryBench, "kafka": KafkaBench}
MARKS = {"kafka": [pytest.mark.kafka]}
#: What `make test` tries on a broker, too; the rest of the contract, which takes minutes there, is for `make long`.
ON_A_BROKER = {"test_commit", "test_cutover"}


@pytest.hookimpl(tryfirst=True)  # marks count when tests are chosen by them
def pytest_collection_modifyitems(config, items) -> None:
    """Leave out what a log cannot do by its nature."""
    kept, left_out = [], []
    for item in items:
        needed = {name for mark in item.iter_markers("needs") for name in mark.args}
        chosen = getattr(item, "callspec", None) and item.callspec.params.get("new_bench")
        if chosen == "kafka" and item.path.stem not in ON_A_BROKER:
            item.add_marker(pytest.mark.long)
        (left_out if chosen and needed - BENCHES[chosen].can else kept).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


@pytest.fixture(scope="session", params=[pytest.param(name, marks=MARKS.get(name, ())) for name in sorted(BENCHES)])
def new_bench(request, tmp_path_factory):
    """Makes an empty log with a clock of its own, as often as a test likes."""
    return lambda: BENCHES[request.param].make(tmp_path_factory)


@pytest.fixture
def bench(new_bench):
    made = new_bench()
    yield made
    made.log.close()
