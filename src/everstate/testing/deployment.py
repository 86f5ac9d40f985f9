"""A service as it runs under the driver, deployed as `everstate run` deploys it, with an executor in this process.

Each deployment is a run of its own: it finds what the one before has left, brings the service to its new version,
processes what there is, and ends. In between, its outputs go on micro-batch by micro-batch.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from everstate.errors import EverstateError
from everstate.fingerprints import outline, print_unit
from everstate.generations.compare.comparison import Comparisons
from everstate.generations.deploy.leases import Leases
from everstate.generations.deploy.options import Wishes
from everstate.generations.deploy.run import Run
from everstate.generations.deploy.settings import Settings
from everstate.generations.deploy.site import Site
from everstate.generations.in_process.executor import InProcessExecutor
from everstate.generations.in_process.times import Times
from everstate.generations.registry import Registry
from everstate.generations.removals import removal_service
from everstate.plan.actions import Begin, Continue, Keep
from everstate.testing.topics import Topics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from everstate.dsl.service import Service
    from everstate.fingerprints.prints import UnitPrint
    from everstate.generations.deploy.change import Changes
    from everstate.generations.deploy.executor import Execution
    from everstate.generations.deploy.run import Ending
    from everstate.generations.in_process.execution import InProcessExecution
    from everstate.generations.in_process.kept import Kept
    from everstate.log.descriptions import Lease, Record
    from everstate.plan.actions import Plan

#: Nothing is kept on disk, not even archives of sources: topics forget nothing.
_NOWHERE: Final = Path("/nowhere")
#: All that waits is one micro-batch.
_ALL: Final = 1_000_000_000


class Deployed(NamedTuple):
    """What a deployment has done.

    Attributes:
        plan: What followed from the change.
        records: What cutovers, and new outputs to begin with, have published, those that feed others first.
        rebuilt: By output, why it was recalculated although its state was to be migrated.
    """

    plan: Plan
    records: list[Record]
    rebuilt: dict[str, str]


class Deployment:
    """The topics, the state and the outputs of a service.

    Args:
        partitions: Partitions of source topics.
        shards: Shards of new generations.
        lease: Under which the deployment before has published.

    Attributes:
        topics: All topics.
        kept: The state of the outputs, by output and generation.
        executions: What processes micro-batches, by output, those that feed others first; none before a deployment.
        counts: What each output has counted.
    """

    def __init__(self, partitions: int, shards: int, lease: Lease | None = None) -> None:
        self.topics = Topics(partitions)
        self.counts: dict[str, Counter[str]] = {}
        self.executions: dict[str, InProcessExecution] = {}
        self._shards = shards
        self.kept: dict[tuple[str, str], Kept] = {}
        self._times = Times()
        self._lease = lease
        self._clock = 0
        self._removing: dict[str, Deployment] = {}

    def copy(self) -> Deployment:
        """The same at this moment; a deployment onto one does not show in the other."""
        other = Deployment(self.topics.partitions, self._shards, self._lease)
        other.topics = self.topics.copy()
        other._times = self._times.copy()
        other._clock = self._clock
        other.counts = {output: counts.copy() for output, counts in self.counts.items()}
        other.kept.update({place: kept.copy() for place, kept in self.kept.items() if kept.exists()})
        for topic, removing in self._removing.items():
            other._removing[topic] = copied = removing.copy()
            copied.topics = other.topics
        return other

    def remove_quiet(self, topic: str, after: str, clock: str) -> int:
        """Run the tombstone service of a topic until there is nothing left to do; says how many keys are gone."""
        known = self._removing.setdefault(topic, Deployment(self.topics.partitions, self._shards))
        known.topics, known.executions, known.counts = self.topics, {}, {}
        known.tick(self._clock)
        service = removal_service(topic, after, clock=clock)
        prints, _ = seen(service)
        known.deploy(service, prints, "approve", Wishes())
        return sum(counts["removed"] for counts in known.counts.values())

    def deploy(self, service: Service, prints: Mapping[str, UnitPrint], approval: str, wishes: Wishes) -> Deployed:
        """Bring the service to this version, and process what there is.

        Args:
            service: The version.
            prints: What its outputs are, by topic.
            approval: What happens to a cutover that would remove much.
            wishes: What is asked for.

        Raises:
            EverstateError: If that cannot be done; this object is of no use then.
        """
        made = {topic for unit in service.units() for topic in (unit.output.topic, *unit.routed)}
        for topic in sorted({topic for unit in service.units() for topic in unit.topics} - made):
            self.topics.ensure(topic)
        if self._lease is not None:
            self.topics.release(self._lease)  # the run before has ended
        run = Run(service, wishes, prints)
        site = self._site(service.name, approval, run.ending)
        run.at(site)
        planned = run.begin()
        shown = _Shown()
        with run.rollout(planned, shown.of, lambda: None) as rollout:
            rollout.drain()
        site.leases.give_building_back()
        self._lease = site.leases.publishing()
        self.executions = {name: shown.executions[name] for name in planned.units}
        kept = {action.output for action in planned.plan.actions if isinstance(action, (Keep, Continue))}
        self.counts = {name: self.counts.get(name, Counter()) if name in kept else Counter() for name in planned.units}
        self.process()  # what the topic of an output says that is no longer declared
        return Deployed(planned.plan, list(self._replaced(planned.plan)), shown.changes.rebuilt)

    def process(self) -> None:
        """One micro-batch of each output, those that feed others first; one that failed before comes before it.

        Raises:
            EverstateError: If one fails: nothing of it has been published, and its state is as it was.
        """
        for name, execution in self.executions.items():
            execution.start(once=True)
            while execution.active():
                pass
            self.counts[name].update(execution.tally.counts)
            execution.tally.counts.clear()

    def advance(self, ts: int) -> None:
        """Move the stream time of all source partitions, of outputs that feed others first."""
        for name, execution in self.executions.items():
            self.process()
            execution.advance(ts)
            self.counts[name].update(execution.tally.counts)
            execution.tally.counts.clear()
        self.process()

    def tick(self, clock: int) -> None:
        """Set the wall clock; outputs that go by it have a micro-batch."""
        self._clock = max(self._clock, clock)
        self.process()

    def _site(self, service: str, approval: str, ending: Ending) -> Site:
        settings = Settings(
            approval=approval,
            cores=self._shards,
            max_records=_ALL,
            recalculation_records=_ALL,
            retain_generations=0,
        )
        log = self.topics
        return Site(
            log=log,
            home=_NOWHERE,
            registry=Registry(log, service),
            leases=Leases(log, service, 0, ending.lost, ()),
            settings=settings,
            comparisons=Comparisons(log),
            executor=InProcessExecutor(
                log,
                _NOWHERE,
                settings,
                self.kept,
                ordered=True,
                recorded=True,
                times=self._times,
                clock=lambda: self._clock,
            ),
            samples=False,  # the executor takes them down
        )

    def _replaced(self, plan: Plan) -> Iterator[Record]:
        """The records of cutovers, and those that new outputs have begun with, output by output."""
        for action in plan.actions:
            for publication in self.topics.publications:
                begins = publication.cutover or isinstance(action, Begin)
                if publication.output == action.output and begins:
                    yield from self.topics.published(publication.ranges)
        self.topics.publications.clear()


class _Shown:
    """Nobody looks at what runs, but it is remembered: it goes on when the deployment has ended."""

    def __init__(self) -> None:
        self.executions: dict[str, InProcessExecution] = {}

    @contextmanager
    def of(self, changes: Changes) -> Iterator[_Shown]:
        """The display of what runs."""
        self.changes = changes
        yield self

    def update(self) -> None:
        """Nothing is shown."""

    def tell(self, text: str) -> None:
        """Nothing is said."""

    def approves(self, why: str) -> bool:
        """Nobody is asked: a test says before what is to happen."""
        del why
        return False

    def finished(self, executions: Sequence[Execution]) -> None:
        """These have processed what there was."""
        self.executions.update({execution.name: execution for execution in executions})  # type: ignore[misc]  # its own


def seen(service: Service) -> tuple[dict[str, UnitPrint], EverstateError | None]:
    """What the outputs of a service are at this moment, and why that cannot be seen of one of them.

    An output whose meaning cannot be seen can be run all the same, as long as no other version takes its place.
    """
    prints, unseen = {}, None
    for unit in service.units():
        try:
            described = print_unit(unit, policy=service.on_error, settings=service.configuration)
        except EverstateError as error:
            described, unseen = outline(unit, policy=service.on_error), unseen or error
        prints[unit.output.topic] = described
    return prints, unseen
