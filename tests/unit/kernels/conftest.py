import random
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
import pytest

import everstate as es
from everstate.kernels.ledger import Ledger
from everstate.kernels.pages.page_store import MemoryPages
from everstate.kernels.parcel import Parcel, by_shard, from_block, to_block
from everstate.kernels.rows import KEY, OP, SYSTEM, TS
from everstate.kernels.shard import Shard
from everstate.schema.keys import encode_key

Record = tuple[str, str | None, Any, int]


@pytest.fixture(scope="session")
def play() -> Callable[..., es.testing.Driver]:
    """Plays a history of (topic, key, value, ts) on a driver, cut into micro-batches of the given lengths."""

    def played(
        service: es.Service, history: Sequence[Record], cuts: Sequence[int] = (), shards: int = 1, partitions: int = 1
    ) -> es.testing.Driver:
        driver = es.testing.Driver(service, partitions=partitions, shards=shards)
        start = 0
        for length in [*cuts, len(history)]:
            with driver.batch():
                for topic, key, value, ts in history[start : start + length]:
                    driver.send(topic, key, value, ts)
            start += length
        return driver

    return played


class Flow:
    """Runs one node that re-keys, on any number of tasks and shards, and checks the discipline of what comes out.

    Feeds it with rows of its input and keeps the table that comes out.

    On a table, `send` takes the latest value of each key and makes the changes that a table source would.
    """

    def __init__(self, kernel: Any, flow: Any, shards: int = 1, tasks: int = 1, policy: str = "dead-letter") -> None:
        self.kernel, self.node, self.tasks = kernel, flow.node, tasks
        self.feeder = self.node.inputs[0]
        self.ledger = Ledger(("in",), policy)
        self.pages = [MemoryPages() for _ in range(shards)]
        self.bookkeeping: list[bytes | None] = [None] * shards
        self.latest: dict[Any, dict[str, Any]] = {}
        self.table: dict[bytes, dict[str, Any]] = {}
        self.times: dict[bytes, int] = {}
        self.offset = 0

    def send(self, *records: tuple[Any, dict[str, Any] | None, int]) -> pl.DataFrame:
        """One micro-batch of (key, value or None, timestamp)."""
        rows: list[dict[str, Any]] = []
        changed: dict[Any, dict[str, Any] | None] = {}
        for key, value, ts in records:
            row = None if value is None else self._row(key, value, ts)
            self.offset += 1
            if self.feeder.kind == "stream":
                rows.append(row or {})
            elif row is not None or key in self.latest or key in changed:
                changed[key] = row or {TS: ts, "$topic": 0, "$part": 0, "$off": self.offset - 1, "$st": ts, OP: 0}
        for key, row in changed.items():
            if key in self.latest:
                old = self.latest.pop(key)
                rows.append({**old, **{name: row[name] for name in ("$ts", "$topic", "$part", "$off", "$st")}, OP: -1})
            if row[OP]:
                self.latest[key] = row
                rows.append(row)
        return self.run(rows)

    def run(self, rows: list[dict[str, Any]]) -> pl.DataFrame:
        schema = {**SYSTEM, **self.feeder.schema.polars}
        random.Random(len(rows)).shuffle(rows)
        frames = [pl.DataFrame(rows[n :: self.tasks], schema=schema) for n in range(self.tasks)]
        prepared = [self.kernel.prepare(self.node, 0, frame, self.ledger) for frame in frames]
        split = [by_shard(Parcel(1, 0, 0, frame), len(self.pages)) for frame in prepared if frame.height]
        outputs = []
        for number, pages in enumerate(self.pages):
            parts = [from_block(to_block(part[number])) for part in split if number in part]
            if not parts:
                continue
            shard = Shard(pages, self.bookkeeping[number], self.ledger)
            outputs.append(self.kernel.update(self.node, 0, [pl.concat(parts, how="diagonal")], shard))
            self.bookkeeping[number] = shard.close()
        given = pl.concat(outputs) if outputs else pl.DataFrame(schema={**SYSTEM, **self.node.schema.polars})
        self._take(given)
        return given

    def _row(self, key: Any, value: dict[str, Any], ts: int) -> dict[str, Any]:
        names = self.feeder.key.names
        parts = dict(zip(names, key if len(names) > 1 else (key,), strict=True))
        place = {
            KEY: encode_key(key, self.feeder.key),
            OP: 1,
            TS: ts,
            "$topic": 0,
            "$part": 0,
            "$off": self.offset,
            "$st": ts,
        }
        return {**place, **parts, **value}

    def _take(self, given: pl.DataFrame) -> None:
        """Apply changes, refusing any that does not fit what was already published."""
        columns = list(self.node.schema.names)
        assert dict(given.schema) == {**SYSTEM, **self.node.schema.polars}
        assert not given.select(KEY, OP).is_duplicated().any()
        for row in given.sort(OP).iter_rows(named=True):
            value = {name: row[name] for name in columns}
            if row[OP] < 0:
                old = self.table.pop(row[KEY])
                assert repr(old) == repr(value)
            else:
                assert row[KEY] not in self.table
                self.table[row[KEY]] = value
                self.times[row[KEY]] = row[TS]

    def values(self, name: str) -> dict[str, Any]:
        """One column of the table by key."""
        return {key.decode(): row[name] for key, row in self.table.items()}


@pytest.fixture(scope="session")
def flow() -> type[Flow]:
    return Flow
