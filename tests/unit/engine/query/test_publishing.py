from __future__ import annotations

from types import SimpleNamespace

import pytest

from everstate.engine.query import publishing
from everstate.engine.query.publishing import spread
from everstate.errors import FencedError
from everstate.errors.carrying import CarriedError, decoded
from everstate.log.memory import MemoryLog


class SpreadLog:
    """A log that says which of its shares was sent."""

    def __init__(self):
        self.publishers = None

    def __reduce__(self):
        return SpreadLog, ()

    def spread(self, publishers, run):
        self.publishers, self.run = publishers, run

    def send(self, share):
        if share == "lost":
            raise FencedError("the lease has been taken over", hint="Stop.")
        return f"sent {share}"


class Context:
    """Runs what tasks would, one after the other."""

    def parallelize(self, shares, tasks):
        assert len(shares) == tasks
        return SimpleNamespace(mapPartitions=lambda fn: SimpleNamespace(collect=lambda: list(fn(iter(shares)))))


SESSION = SimpleNamespace(sparkContext=Context())


def test_spread_has_each_share_sent_by_a_task_with_a_log_of_its_own(monkeypatch):
    opened = []
    monkeypatch.setattr(publishing, "opened", lambda opening: opened.append(opening) or SpreadLog())
    log = SpreadLog()
    spread(log, 2, lambda: SESSION)
    assert log.publishers == 2
    assert log.run(["a", "b"]) == ["sent a", "sent b"]
    assert len(opened) == 1


def test_spread_error_of_a_task_keeps_its_name_on_the_way_through_java():
    log = SpreadLog()
    spread(log, 3, lambda: SESSION)
    with pytest.raises(CarriedError) as caught:
        log.run(["a", "lost", "b"])
    assert isinstance(decoded(str(caught.value)), FencedError)


def test_spread_is_not_asked_for_by_one_publisher_nor_of_a_log_that_needs_none():
    log = SpreadLog()
    spread(log, 1, lambda: SESSION)
    assert log.publishers is None
    spread(MemoryLog(), 2, lambda: SESSION)
