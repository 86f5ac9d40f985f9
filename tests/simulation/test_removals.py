"""The tombstone service and the owner of its topic, killed and interleaved at every crash point.

Nothing is removed twice, what comes at the last moment is not buried, and no version of the owner brings a key back of
which nothing has come since.
"""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from polars import col

import everstate as es
from everstate.errors import EverstateError
from everstate.generations.compare.comparison import Comparisons
from everstate.generations.deploy.leases import Leases
from everstate.generations.deploy.options import Wishes
from everstate.generations.deploy.run import Run
from everstate.generations.deploy.settings import Settings
from everstate.generations.deploy.site import Site
from everstate.generations.in_process.executor import InProcessExecutor
from everstate.generations.registry import Registry
from everstate.generations.removals import removal_service
from everstate.log.crash import Crash, intercepted
from everstate.log.descriptions import Holder, TopicConfig
from everstate.log.memory import MemoryLog
from everstate.log.records import to_records
from tests.simulation.world import silent

NOWHERE = Path("/nowhere")
AFTER = "50ms"


def owner(factor):
    app = es.Service("owner")
    app.table("in", key="k", schema={"n": int}).select(n=col("n") * factor).to("out")
    return app


class World:
    """A log with the owner's topic, what processes have left, and what was sent."""

    def __init__(self):
        self.log = MemoryLog(clock=lambda: 1_700_000_000_000)
        self.log.create_topic("in", TopicConfig(partitions=2, compact=True))
        self.kept, self.started, self.sent = {}, 0, {}
        self.send(a=(1, 0), b=(2, 10), c=(3, 30))
        self.run(owner(1))
        self.send(a=(4, 100), d=(5, 100), e=(6, 120))
        self.run(owner(1))

    def send(self, **rows):
        for key, (n, ts) in rows.items():
            self.sent[key] = n
            value = json.dumps({"n": n}).encode()
            self.log.append("in", pl.DataFrame({"key": [key.encode()], "value": [value], "ts": [ts]}))

    def run(self, service, at=None, then=None):
        """Drain a service in a process of its own; returns the points that it has met.

        Args:
            service: The service.
            at: The number of the point where it is killed, or stands still.
            then: What happens there; without it the process dies.
        """
        self.started += 1
        log, met = self.log.process(Holder("host", 1000 + self.started, float(self.started))), []
        settings = Settings(approval="approve", max_records=4, recalculation_records=4)
        run = Run(service, Wishes())
        run.at(
            Site(
                log=log,
                home=NOWHERE,
                registry=Registry(log, service.name),
                leases=Leases(log, service.name, 0, run.ending.lost, [], farewell=0),
                settings=settings,
                comparisons=Comparisons(log),
                executor=InProcessExecutor(log, NOWHERE, settings, self.kept.setdefault(service.name, {})),
                samples=False,
            )
        )
        outside = False

        def hook(name):
            nonlocal outside
            if outside:
                return
            met.append(name)
            if at == len(met):
                if then is None:
                    log.end()
                    raise Crash(name)
                outside = True
                then()
                outside = False

        try:
            with intercepted(hook), run.rollout(run.begin(), silent, lambda: None) as rollout:
                rollout.drain()
        except Crash:
            pass
        finally:
            log.end()
        return met

    def records(self, topic):
        if not self.log.has_topic(topic):
            return []
        return [r for p in self.log.describe(topic).start for r in to_records(topic, self.log.read(topic, p, 0))]

    def table(self, topic="out"):
        return {key.decode(): json.loads(v) for key, v in self.log.latest(topic).select("key", "value").iter_rows()}

    def removed(self):
        """Key, partition and offset of all that was removed, from the tombstones."""
        return [
            (r.key.decode(), r.partition, int(dict(r.headers)["es-removed"]))
            for r in self.records("out")
            if "es-removed" in dict(r.headers)
        ]

    def check(self, *alive, factor=1):
        assert self.table() == {key: {"n": self.sent[key] * factor} for key in alive}
        assert len(set(self.removed())) == len(self.removed())
        noted = {key: (place["partition"], place["offset"]) for key, place in self.table("out.removed").items()}
        latest = {key: (partition, offset) for key, partition, offset in self.removed()}
        assert noted == latest


#: The points that a run of the service meets; where another process may do something meanwhile.
REMOVAL = list(enumerate(World().run(removal_service("out", AFTER)), 1))
BETWEEN = [number for number, name in REMOVAL if "inside" not in name]


def test_there_are_points_around_every_durable_step():
    assert len(REMOVAL) > 10


@pytest.mark.parametrize("at", [number for number, _ in REMOVAL])
def test_service_killed_at_any_point_removes_each_key_once(at):
    world = World()
    world.run(removal_service("out", AFTER), at)
    world.run(removal_service("out", AFTER))
    world.check("a", "d", "e")
    world.send(f=(7, 300), g=(8, 300), a=(9, 300))
    world.run(owner(1))
    world.run(removal_service("out", AFTER), 1 + at % 7)
    world.run(removal_service("out", AFTER))
    world.check("a", "f", "g")
    world.run(owner(2))
    world.check("a", "f", "g", factor=2)


@pytest.mark.parametrize("at", BETWEEN)
def test_value_that_comes_at_any_point_is_not_buried(at):
    world = World()

    def comes():
        world.send(b=(22, 90))
        world.run(owner(1))

    world.run(removal_service("out", AFTER), at, comes)
    world.check("a", "b", "d", "e")
    world.run(owner(3))
    world.check("a", "b", "d", "e", factor=3)


@pytest.mark.parametrize("version", [1, 5])
def test_removal_at_any_point_of_the_owner_leaves_what_came_since(version):
    first = World()
    first.send(b=(22, 110))
    for at in [at for at, name in enumerate(first.run(owner(version)), 1) if "inside" not in name]:
        world = World()
        world.send(b=(22, 110))

        def removes(world=world):
            world.run(removal_service("out", AFTER))

        world.run(owner(version), at, removes)
        world.run(owner(version))
        world.check("a", "b", "d", "e", *(["c"] if not world.removed() else []), factor=version)
        world.run(owner(7))
        world.check("a", "b", "d", "e", *(["c"] if not world.removed() else []), factor=7)


class Going(World):
    """An owner that adds up what is large enough, by the first letter of its keys."""

    def __init__(self, **first):
        self.log = MemoryLog(clock=lambda: 1_700_000_000_000)
        self.log.create_topic("in", TopicConfig(partitions=1))
        self.kept, self.started, self.sent = {}, 0, {}
        self.send(**first, z=(9, 300))
        self.large(1)

    def large(self, least):
        app = es.Service("owner")
        rows = app.stream("in", key="k", schema={"n": int}).filter(col("n") >= least)
        rows.group_by(c=col("k").str.head(1)).agg(n=col("n").sum()).to("out")
        self.run(app)

    def removes(self):
        self.run(removal_service("out", AFTER))
        assert "a" not in self.table()


def test_key_that_was_removed_under_a_later_version_stays_so_on_the_way_back():
    # Its record was older in that version: the earlier one counts more of its input.
    world = Going(a=(9, 100), a2=(1, 280))
    world.large(5)
    world.removes()
    world.large(1)
    assert world.table() == {"z": {"n": 9}}
    world.send(a3=(2, 310))
    world.large(1)
    assert world.table() == {"a": {"n": 12}, "z": {"n": 9}}


def test_key_that_had_come_back_comes_back_on_the_way_back_too():
    world = Going(a=(3, 100))
    world.removes()
    world.send(a2=(1, 50))
    world.large(1)
    assert world.table() == {"a": {"n": 4}, "z": {"n": 9}}
    for _ in range(2):
        world.large(5)
        world.removes()
        world.large(1)
        assert world.table() == {"a": {"n": 4}, "z": {"n": 9}}


def test_second_process_of_the_same_service_is_refused():
    world = World()

    def second():
        with pytest.raises(EverstateError, match=r"tombstone\.out"):
            world.run(removal_service("out", AFTER))

    world.run(removal_service("out", AFTER), BETWEEN[-1], second)
    world.check("a", "d", "e")
