from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from everstate.generations.state.archiving import Archivist
from everstate.log import EmbeddedLog, TopicConfig
from everstate.log.archive.reading import Past, read_split, splits

HOUR_MS = 3_600_000


class Shelf:
    """A log with a clock that is set by hand, and the archive of a service beside it."""

    def __init__(self, folder):
        self.now_ms = 1_700_000_000_000
        self.folder = Path(folder)
        self.log = EmbeddedLog(self.folder / "log", clock=lambda: self.now_ms)
        self.home = self.folder / "state" / "svc"
        self.lease = self.log.acquire("svc")
        self.sent = {}

    def topic(self, name, **config):
        self.log.create_topic(name, TopicConfig(**{"retention_ms": HOUR_MS, **config}))

    def send(self, topic, count, partition=0, keys=None):
        """Append numbered values; keys are given in turn."""
        first = self.log.end_offsets([topic])[topic][partition]
        numbers = range(first, first + count)
        keys = keys or [None]
        frame = pl.DataFrame(
            {
                "key": [keys[n % len(keys)] for n in numbers],
                "value": [b"%d" % n for n in numbers],
                "ts": [self.now_ms] * count,
                "partition": [partition] * count,
            },
            schema={"key": pl.Binary, "value": pl.Binary, "ts": pl.Int64, "partition": pl.Int32},
        )
        self.log.append(topic, frame)

    def archivist(self, **options):
        return Archivist(self.log, self.lease, self.home, **options)

    def archive(self, *topics, **options):
        for topic in topics:
            self.archivist(**options).archive(topic)

    def expire(self, topic, hours=2):
        """Time passes, and the topic lets everything go that is too old."""
        self.now_ms += hours * HOUR_MS
        self.log.compact(topic)

    def past(self, **options):
        return Past(service="svc", folder=str(self.home), **options)

    def values(self, topic, start, end, partition=0, max_records=100, **options):
        found = splits(self.log, self.past(**options), topic, partition, start, end, max_records=max_records)
        frames = [read_split(self.log, split) for split in found]
        return [int(value) for frame in frames for value in frame["value"]]

    def files(self):
        return sorted(path.relative_to(self.home).as_posix() for path in self.home.rglob("*") if path.is_file())


@pytest.fixture
def shelf(tmp_path):
    shelf = Shelf(tmp_path)
    yield shelf
    shelf.log.close()
