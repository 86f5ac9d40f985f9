"""Fixtures of tests on Spark: one session for all of them, since starting one takes longer than most tests."""

from __future__ import annotations

import json

import polars as pl
import pytest

from everstate.log.descriptions import TopicConfig
from everstate.log.opening import open_log

#: The session of this process: every folder that imports the fixture has one of its own, Spark has one a process.
_sessions = []


@pytest.fixture(scope="session")
def spark():
    from everstate.engine.jvm.session import start_session, stop_session
    from everstate.generations.deploy.settings import Settings

    if not _sessions:
        _sessions.append(start_session(Settings(cores=2, memory="1g"), "tests"))
    yield _sessions[0]
    if _sessions:  # all fixtures of this scope end together, when the tests do
        stop_session(_sessions.pop())


@pytest.fixture
def log(tmp_path):
    log = open_log(tmp_path / "log")
    yield log
    log.close()


class Topics:
    """Sends and reads JSON records."""

    def __init__(self, log):
        self.log = log

    def create(self, name, partitions=2, compact=False):
        self.log.create_topic(name, TopicConfig(partitions=partitions, compact=compact))

    def send(self, topic, records, ts=0):
        keys = [None if key is None else key.encode() for key, _ in records]
        values = [None if value is None else self._value(value) for _, value in records]
        times = [ts + place for place in range(len(records))]
        frame = pl.DataFrame(
            {"key": keys, "value": values, "ts": times}, schema={"key": pl.Binary, "value": pl.Binary, "ts": pl.Int64}
        )
        self.log.append(topic, frame)

    def table(self, topic):
        frame = self.log.latest(topic)
        return {key.decode(): json.loads(value) for key, value in frame.select("key", "value").iter_rows()}

    def count(self, topic):
        return sum(self.log.describe(topic).end.values())

    @staticmethod
    def _value(value):
        return value if isinstance(value, bytes) else json.dumps(value).encode()


@pytest.fixture
def topics(log):
    return Topics(log)


@pytest.fixture
def run(spark, log):
    """Drain a service in the shared session."""
    from everstate.engine.commands.runner import Runner

    def drain(service, **settings):
        given = {"log": log.url, "session": spark, "show": False, "cores": 2, **settings}
        Runner(service, **given).run(once=True)

    return drain
