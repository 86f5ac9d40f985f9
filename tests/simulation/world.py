"""A deployment without Spark and without disks: processes that are started, die at any crash point, and wake up.

The log is in memory and all processes share it; what an executor keeps outlives the process, as a checkpoint does. The
deployment itself (plans, leases, builds, comparison, migration, cutover, registry) is that of `everstate run`.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from everstate.engine.commands import rollback
from everstate.errors import FencedError, LeaseError
from everstate.generations.compare.comparison import Comparisons
from everstate.generations.deploy.leases import Leases
from everstate.generations.deploy.options import Wishes
from everstate.generations.deploy.run import Run
from everstate.generations.deploy.settings import Settings
from everstate.generations.deploy.site import Site
from everstate.generations.generation import Status, own_topics
from everstate.generations.registry import Registry
from everstate.log.crash import Crash, intercepted
from everstate.log.descriptions import Holder, TopicConfig
from everstate.log.memory import MemoryLog
from everstate.log.records import to_records
from tests.simulation import shop
from tests.simulation.remembering import RememberingExecutor
from tests.simulation.shop import OUTPUTS, SERVICE, Version

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    import everstate as es
    from everstate.generations.in_process.executor import InProcessExecutor

#: A crash point, and which time that it is met: 1 for the first.
Point = tuple[str, int]

_NOWHERE = Path("/nowhere")


class Silence:
    """A display that nobody looks at."""

    def update(self) -> None:
        """Nothing."""

    def tell(self, text: str) -> None:
        """Nothing."""

    def approves(self, why: str) -> bool:
        """Nobody is there to say so."""
        return False

    def finished(self, executions: object) -> None:
        """Nothing."""


@contextlib.contextmanager
def silent(changes):
    yield Silence()


@dataclass
class Process:
    """One process; it holds what it holds until it ends."""

    log: MemoryLog
    run: Run
    site: Site


@dataclass
class World:
    """The log, what processes have left, and what was sent."""

    outputs: tuple[str, ...] = OUTPUTS
    shards: int = 1
    log: MemoryLog = field(default_factory=lambda: MemoryLog(clock=lambda: 1_700_000_000_000))
    kept: dict = field(default_factory=dict)
    sent: list = field(default_factory=list)
    started: int = 0
    met: list = field(default_factory=list)
    executor: type[InProcessExecutor] = RememberingExecutor

    def __post_init__(self) -> None:
        self.log.create_topic("payments", TopicConfig(partitions=2), exist_ok=True)

    def send(self, count: int) -> None:
        first = len(self.sent)
        rows = [{"account": f"a{n % 4}", "id": n, "amount": n * 7 % 10} for n in range(first, first + count)]
        self.sent += rows
        values = [json.dumps({"id": row["id"], "amount": row["amount"]}).encode() for row in rows]
        keys = [row["account"].encode() for row in rows]
        self.log.append("payments", pl.DataFrame({"key": keys, "value": values, "ts": [row["id"] for row in rows]}))

    def version(self, version: int | Version) -> Version:
        """A version of that logic that is otherwise as usual here."""
        return version if isinstance(version, Version) else Version(version, self.outputs, shards=self.shards)

    def service(self, version: int | Version) -> es.Service:
        """What a version declares."""
        return shop.service(self.version(version))

    def process(self, version: int | Version, **wishes: object) -> Process:
        """A process that is about to deploy a version."""
        self.started += 1
        log = self.log.process(Holder("host", 1000 + self.started, float(self.started)))
        settings = Settings(approval="approve", recalculation_records=7, max_records=5)
        run = Run(self.service(version), Wishes(**wishes))
        site = Site(
            log=log,
            home=_NOWHERE,
            registry=Registry(log, SERVICE),
            leases=Leases(log, SERVICE, 0, run.ending.lost, [], farewell=0),
            settings=settings,
            comparisons=Comparisons(log),
            executor=self.executor(log, _NOWHERE, settings, self.kept),
            samples=False,
        )
        return Process(log, run.at(site), site)

    def deploy(
        self,
        version: int | Version,
        at: Point | None = None,
        then: Callable[[], None] | None = None,
        act: Callable[[Process], None] | None = None,
        **wishes,
    ) -> str:
        """Run a version until it has drained its sources.

        Args:
            version: Which one.
            at: A crash point, and which time that it is met.
            then: What happens there while the process stands still; by default it dies.
            act: What the process does instead.
            wishes: What is asked for.

        Returns:
            "done"; "died" where it was told to; "fenced" by another process, or kept out by one.
        """
        process, left, outside = self.process(version, **wishes), at[1] if at is not None else 0, False

        def hook(met: str) -> None:
            nonlocal left, outside
            if outside:
                return  # that is another process
            self.met.append(met)
            if at is None or met != at[0]:
                return
            left -= 1
            if left:
                return
            if then is None:
                process.log.end()
                raise Crash(met)
            outside = True
            then()
            outside = False

        try:
            with intercepted(hook):
                (act or drain)(process)
        except Crash:
            return "died"
        except LeaseError:
            return "fenced"
        finally:
            process.log.end()
        return "done"

    def copy(self) -> World:
        """The same world at this moment, apart."""
        kept = {place: kept.copy() for place, kept in self.kept.items()}
        return World(self.outputs, self.shards, self.log.copy(), kept, list(self.sent), self.started)

    # -- what must hold -----------------------------------------------------------------------------------------------

    def table(self, topic: str) -> dict:
        if not self.log.has_topic(topic):
            return {}
        return {key.decode(): json.loads(value) for key, value in self.log.latest(topic)[["key", "value"]].iter_rows()}

    def records(self, topic: str) -> list:
        if not self.log.has_topic(topic):
            return []
        partitions = range(self.log.describe(topic).config.partitions)
        return [record for p in partitions for record in to_records(topic, self.log.read(topic, p, 0))]

    def check(self, version: int | Version) -> None:
        """I1 to I5 after a deployment that got to its end."""
        version = self.version(version)
        for output, expected in shop.tables(version, self.sent).items():
            assert self.table(output) == expected, output
        if "even" in version.outputs:
            assert self.published() == Counter(shop.even(self.sent))
        self.check_always()
        self.check_generations(version.outputs)

    def check_generations(self, declared: Collection[str]) -> None:
        """Each output that is declared has one active generation, and nothing is left of others that are gone."""
        registry = Registry(self.log, SERVICE)
        for output, history in registry.generations().items():
            assert history.building is None
            active = [g for g in history.generations if g.status is Status.ACTIVE]
            assert len(active) == (output in declared), "one is active, or none of an output that is gone"
            known = {(output, generation.name) for generation in history.generations}
            left = {place for place, kept in self.kept.items() if place[0] == output and kept.exists()}
            assert left <= known, "state of a generation that nobody knows"
            own = own_topics(SERVICE, output, self.log.topics(internal=True))
            idle = {g.number for g in history.generations if g.status is not Status.ACTIVE}
            assert set(own.values()) <= idle, "topics of a generation that nobody knows, or that has published them"

    def check_always(self) -> None:
        """What holds at any moment: nothing is written twice in a row, and generations follow each other."""
        for output in shop.TABLES:
            last: dict[bytes, bytes | None] = {}
            for record in self.records(output):
                assert last.get(record.key) != record.value, (output, record.key, record.value)
                last[record.key] = record.value
        assert max(self.published().values(), default=1) == 1

    def written(self) -> dict[str, int]:
        """How many records each output has written."""
        return {output: len(self.records(output)) for output in OUTPUTS}

    def published(self) -> Counter[int]:
        """How often each payment is on the stream."""
        return Counter(json.loads(record.value)["id"] for record in self.records("even"))


def go_back(process: Process) -> None:
    """What `everstate rollback` does to the first output that has something to go back to, if there is one."""
    try:
        rollback._take_building(process.site)
        generations = process.site.registry.generations()
        if possible := [output for output, versions in sorted(generations.items()) if rollback._kept(versions)]:
            planned = rollback._plan(process.run, possible[:1], None)
            with process.run.rollout(planned, silent, lambda: None) as rollout:
                rollout.replace()
    finally:
        with contextlib.suppress(FencedError):
            process.site.leases.release()


def drain(process: Process) -> None:
    """What `everstate run --once` does."""
    try:
        planned = process.run.begin()
        with process.run.rollout(planned, silent, lambda: None) as rollout:
            rollout.drain()
    finally:
        with contextlib.suppress(FencedError):
            process.site.leases.release()
