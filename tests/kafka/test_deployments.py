"""Whole deployments on a real broker, without Spark: processes that die anywhere, and the next one that finishes.

The worlds, the services and the checks are those of the simulation in memory; only the log is Kafka's.
"""

from __future__ import annotations

import pytest

from everstate.errors import LogError
from everstate.log import TopicConfig
from everstate.log.crash import Crash
from everstate.log.kafka import KafkaLog, shares
from tests.kafka.points import SHARES
from tests.simulation.world import World

pytestmark = [pytest.mark.kafka]

#: Where the outcome is decided, and then all that a deployment on files and transactions meets otherwise.
DECISIVE = ["log.commit.inside_transaction", "log.cutover.inside_transaction"]
OTHERS = [
    "log.commit.before_transaction",
    "log.commit.after_transaction",
    "log.cutover.before_transaction",
    "log.cutover.after_transaction",
    "cutover.staged",
    "build.round_ended",
    "registry.planned.after",
    "registry.recalculating.before",
    "registry.ready.after",
    "registry.publishing.after",
    "generation.delete.topics_gone",
]
POINTS = [*DECISIVE, *(pytest.param(point, marks=pytest.mark.long) for point in OTHERS)]


class ProcessLog(KafkaLog):
    """The cluster as one of several processes sees it that live in one."""

    def __init__(self, servers, staging, holder=None):
        self._ended = False
        super().__init__(servers, staging=staging)
        self._place, self._holder = (servers, staging), holder

    def __getattribute__(self, name):
        if not name.startswith("__") and name != "end" and object.__getattribute__(self, "__dict__").get("_ended"):
            raise Crash("the process has ended")
        return super().__getattribute__(name)

    def process(self, holder):
        return ProcessLog(*self._place, holder)

    def acquire(self, name, *, holder=None, take_over=False):
        return super().acquire(name, holder=holder or self._holder, take_over=take_over)

    def end(self):
        """As abruptly as a kill: what is pending stays so until somebody takes its id."""
        if not object.__getattribute__(self, "__dict__")["_ended"]:
            self.close()
            self._ended = True


@pytest.fixture
def world(servers, tmp_path):
    world = World(outputs=("balances", "doubled", "even"), log=ProcessLog(servers, tmp_path / "staging"))
    for version in (0, 1):
        world.send(8)
        assert world.deploy(version) == "done"
        world.check(version)
    world.send(3)
    yield world
    world.log.close()


@pytest.mark.parametrize("point", POINTS)
def test_deployment_that_dies_anywhere_is_finished_by_the_next_process(world, point):
    assert world.deploy(2, (point, 1)) == "died"
    world.check_always()
    world.send(3)
    assert world.deploy(2) == "done"
    world.check(2)


@pytest.mark.parametrize(
    ("point", "publishers", "version"),
    [
        (("kafka.share.after_transaction", 1), 1, 2),
        *(
            pytest.param((point, hit), publishers, version, marks=pytest.mark.long)
            for point, hits in SHARES.items()
            for hit in range(1, hits + 1)
            for publishers, version in ((1, 1), (2, 2), (3, 1))
        ),
    ],
)
def test_batch_of_several_publishers_that_dies_is_finished_by_this_version_or_the_next_with_more_or_fewer(
    world, monkeypatch, point, publishers, version
):
    monkeypatch.setattr(shares, "WORTH", 1)
    present, process = [2], ProcessLog.process

    def spread(log, holder):
        found = process(log, holder)
        found.spread(present[0], lambda parts: [found.send(part) for part in parts])
        return found

    monkeypatch.setattr(ProcessLog, "process", spread)
    assert world.deploy(1, point) == "died"
    present[0] = publishers
    for _ in range(2):
        world.send(3)
        assert world.deploy(version) == "done"
        world.check(version)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (TopicConfig(partitions=2, compact=True, append_time=True), r"time of each record(?s:.*)=CreateTime"),
        (TopicConfig(partitions=2), r"is not compacted(?s:.*)cleanup.policy=compact,retention.ms=-1"),
        (
            TopicConfig(partitions=2, compact=True, retention_ms=604_800_000),
            r"also deletes by age(?s:.*)cleanup.policy=compact,retention.ms=-1",
        ),
    ],
)
def test_output_topic_that_would_change_or_lose_what_is_published_is_refused_with_the_cure(
    servers, tmp_path, config, reason
):
    world = World(outputs=("balances",), log=ProcessLog(servers, tmp_path / "staging"))
    world.log.create_topic("balances", config)
    world.send(3)
    with pytest.raises(LogError, match=reason):
        world.deploy(0)
    world.log.close()
