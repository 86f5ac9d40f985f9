from __future__ import annotations

import polars as pl
import pytest

from everstate.log import EmbeddedLog, TopicConfig


class TestLog(EmbeddedLog):
    """An embedded log whose clock is set by hand."""

    __test__ = False

    def __init__(self, path) -> None:
        self.now_ms = 1_700_000_000_000
        super().__init__(path, clock=lambda: self.now_ms)

    def topic(self, name, **config):
        self.create_topic(name, TopicConfig(**config))

    def send(self, topic, *records):
        rows = [(key, value) for key, value in records]
        self.append(topic, pl.DataFrame(rows, schema={"key": pl.Binary, "value": pl.Binary}, orient="row"))

    def files(self):
        return sorted(self.path.rglob("*.arrows"))

    def segments(self, topic):
        from everstate.log.embedded.manifest import catalogue

        with self._store.manifest.reading() as database:
            found = catalogue.topic_named(database, topic)
            return [
                item.segment
                for partition in range(found.config.partitions)
                for item in catalogue.segments(database, found, partition)
            ]


@pytest.fixture
def log(tmp_path):
    made = TestLog(tmp_path / "log")
    yield made
    made.close()
