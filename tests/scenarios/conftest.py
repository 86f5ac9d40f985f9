from __future__ import annotations

import json
from collections import Counter

import pytest

from everstate.generations.registry import Registry
from everstate.log.opening import open_log
from everstate.log.records import to_records
from tests.spark_session import log, run, spark, topics

__all__ = ["log", "run", "spark", "topics"]


class World:
    """A log, versions of a service that are deployed on it one after the other, and what each deployment wrote."""

    def __init__(self, topics, run, folder):
        self.topics = topics
        self.log = topics.log
        self._run = run
        self._folder = folder
        self._scratch = 0

    def deploy(self, service, **settings):
        """Run a version until it has drained its sources; returns the records that it wrote, by topic."""
        before = self._ends()
        self._run(service, **settings)
        written = {}
        for topic, ends in self._ends().items():
            new = [
                (record.key.decode(), None if record.value is None else json.loads(record.value))
                for partition, end in ends.items()
                for record in self._records(topic, partition, before.get(topic, {}).get(partition, 0), end)
            ]
            written[topic] = new
        return written

    def table(self, topic):
        return self.topics.table(topic)

    def from_scratch(self, make, *sources, topic):
        """What a first run of a version over the whole input gives, on a log of its own."""
        self._scratch += 1
        other = open_log(self._folder / f"scratch{self._scratch}")
        try:
            for source in sources:
                info = self.log.describe(source)
                other.create_topic(source, info.config)
                for partition in range(info.config.partitions):
                    frame = self.log.read(source, partition, info.start[partition])
                    other.append(source, frame)
            self._run(make, log=other.url)
            rows = other.latest(topic).select("key", "value").iter_rows()
            return {key.decode(): json.loads(value) for key, value in rows}
        finally:
            other.close()

    def generations(self, service, output):
        return Registry(self.log, service).read(output)

    def _ends(self):
        return {topic: self.log.describe(topic).end for topic in self.log.topics()}

    def _records(self, topic, partition, start, end):
        first = max(start, self.log.describe(topic).start[partition])
        found = to_records(topic, self.log.read(topic, partition, first))
        return [record for record in found if start <= record.offset < end]


@pytest.fixture
def world(topics, run, tmp_path):
    return World(topics, run, tmp_path)


def keys(records):
    """How often each key was written."""
    return Counter(key for key, _ in records)
