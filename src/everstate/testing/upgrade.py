"""A new version under the test driver: the plan, and the same cutover as on Spark, on topics in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from everstate.errors import ApprovalNeededError, ConfigurationError, EverstateError, MigrationError
from everstate.fingerprints import print_unit
from everstate.generations.compare.difference import difference
from everstate.generations.compare.letters import letter_difference
from everstate.generations.deploy.migration_plan import Version
from everstate.plan.actions import Begin, Continue, Keep, Migrate, Retire
from everstate.plan.decisions import decide
from everstate.plan.facts import Deployed, OutputFacts, SourceFacts
from everstate.plan.guards import Policy, concerns, decision
from everstate.plan.preview import Counts
from everstate.plan.refusals import refusal
from everstate.schema.topic_names import dead_letter_topic
from everstate.testing.migrating import migrated
from everstate.testing.topics import Topics
from everstate.testing.unit_run import UnitRun, append_records
from everstate.topology.nodes import Kind
from everstate.topology.unit import silenced

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everstate.dsl.service import Service
    from everstate.fingerprints.prints import UnitPrint
    from everstate.generations.compare.difference import Difference
    from everstate.plan.actions import Action, Plan
    from everstate.plan.facts import Options
    from everstate.testing.topics import StoredRecord
    from everstate.testing.unit_run import Position
    from everstate.topology.unit import Unit

#: A record with its topic.
Published: TypeAlias = "tuple[str, StoredRecord]"


def policy(approval: str) -> Policy:
    """What to do about a cutover that has to be approved.

    Raises:
        ConfigurationError: If there is no such policy.
    """
    try:
        return Policy(approval)
    except ValueError:
        raise ConfigurationError(
            f"approval={approval!r} is not one of {', '.join(Policy)}", hint="Write approval='approve', for instance."
        ) from None


def print_of(unit: Unit, service: Service) -> UnitPrint:
    """What an output of a service is, as of now.

    Raises:
        EverstateError: If its meaning cannot be seen.
    """
    return print_unit(unit, policy=service.on_error, settings=service.configuration)


def first_run(unit: Unit, service: Service, shards: int) -> UnitRun:
    """An output that has processed nothing yet; whether its meaning can be seen matters only to an upgrade."""
    described: UnitPrint | EverstateError
    try:
        described = print_of(unit, service)
    except EverstateError as error:
        described = error
    return UnitRun(unit, service.on_error, shards, described=described)


@dataclass
class Outcome:
    """What a change has led to.

    Attributes:
        runs: The outputs as they run now, those that feed others first.
        retired: Outputs that are no longer declared, as they ended.
        records: What was published to get there.
        dead_letters: The same on dead-letter topics.
        rebuilt: By output, why it was recalculated although its state was to be migrated.
    """

    runs: dict[str, UnitRun] = field(default_factory=dict)
    retired: dict[str, UnitRun] = field(default_factory=dict)
    records: list[Published] = field(default_factory=list)
    dead_letters: list[Published] = field(default_factory=list)
    rebuilt: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Change:
    """A service beside the one that runs.

    Attributes:
        new: The one that takes its place.
        runs: The outputs of the old one as they run, by topic; they stay as they are.
        retired: Outputs that earlier versions had, as they ended.
        topics: All topics; the change is published there.
        approval: What happens to a cutover that would remove much.
        options: What was asked for.
        shards: Shards of new generations.
    """

    new: Service
    runs: Mapping[str, UnitRun]
    retired: Mapping[str, UnitRun]
    topics: Topics
    approval: Policy
    options: Options
    shards: int

    def plan(self) -> Plan:
        """What follows from the change."""
        units = self.new.units()
        declared = {unit.output.topic: unit for unit in units}
        facts = {name: self._active_facts(run, declared.get(name)) for name, run in self.runs.items()}
        facts.update({unit.output.topic: self._new_facts(unit) for unit in units if unit.output.topic not in self.runs})
        sources = {topic: self._source_facts(topic) for unit in units for topic in unit.topics}
        prints = list(self._prints.values())
        return decide(self.new.name, prints, facts, sources, on_change=self.new.on_change, options=self.options)

    @cached_property
    def _prints(self) -> dict[str, UnitPrint]:
        """What the outputs of the new version are, by topic."""
        return {unit.output.topic: print_of(unit, self.new) for unit in self.new.units()}

    def carry_out(self, plan: Plan) -> Outcome:
        """Bring every output to its new version, those that feed others first.

        Raises:
            LogError: If the plan refuses an output because a source cannot be read.
            HistoryTruncatedError: If it does so because a source has lost records that are needed.
            ApprovalNeededError: If a cutover has to be approved.
        """
        for refused in plan.refusals:
            raise refusal(refused)
        units = {unit.output.topic: unit for unit in self.new.units()}
        outcome = Outcome(retired={name: run for name, run in self.retired.items() if name not in units})
        for action in plan.actions:
            output, letters = action.output, dead_letter_topic(action.output)
            marks = [self.topics.count(topic) for topic in (output, letters)]
            if isinstance(action, Retire):
                self._retire(action)
                outcome.retired[output] = self.runs[output]
            else:
                outcome.runs[output] = run = self._replaced(action, units[output], outcome.rebuilt)
                if self._begins(action):
                    run.micro_batch(self.topics)
            outcome.records += [(output, record) for record in self.topics.all(output)[marks[0] :]]
            outcome.dead_letters += [(letters, record) for record in self.topics.all(letters)[marks[1] :]]
            for run in outcome.runs.values():
                run.micro_batch(self.topics)
        return outcome

    def _begins(self, action: Action) -> bool:
        """Nothing was ever published, so there is nothing to compare with: it publishes from the beginning."""
        return isinstance(action, Begin) and not action.keys and action.output not in self.retired

    def _replaced(self, action: Action, unit: Unit, rebuilt: dict[str, str]) -> UnitRun:
        run = self.runs.get(action.output)
        if run is not None and isinstance(action, (Keep, Continue)):
            return run.deployed(unit, self._prints[action.output], self.new.on_error)
        earlier = run or self.retired.get(action.output)
        number = 1 if earlier is None else earlier.generation + 1
        described = self._prints[action.output]
        fresh = UnitRun(unit, self.new.on_error, self.shards, number, described=described)
        if self._begins(action):
            return fresh
        built = None
        if run is not None and isinstance(action, Migrate):
            try:
                fresh, built = self._migrate(run, unit)
            except MigrationError as error:
                rebuilt[action.output] = str(error)
        compared = _Compared.of(built or self._build(fresh, earlier), self.topics, unit)
        self._ask(action, compared.counts)
        compared.publish(self.topics, fresh)
        return fresh

    def _migrate(self, run: UnitRun, unit: Unit) -> tuple[UnitRun, Topics]:
        """Convert the state of the active version, then process what it has not read yet, closed."""
        old, new = Version(run.unit, run.described), Version(unit, self._prints[unit.output.topic])
        fresh, own = migrated(run, old, new, self.topics, self.new.on_error)
        fresh.micro_batch(self.topics, target=own, limit=self._last(unit, run))
        fresh.unit = unit
        fresh.counts.clear()
        return fresh, own

    def _build(self, fresh: UnitRun, earlier: UnitRun | None) -> Topics:
        """Process the history, closed: results go to topics of their own, side effects do not happen."""
        unit, own = fresh.unit, Topics(self.topics.partitions)
        order = earlier.order if earlier is not None else []
        fresh.unit = silenced(unit)
        for stop in order if unit.order_sensitive else []:
            fresh.micro_batch(self.topics, target=own, limit=stop.limit(self.topics, unit.topics))
        fresh.micro_batch(self.topics, target=own, limit=self._last(unit, earlier))
        # The order of arrival outlives generations, also those that do not depend on it.
        known = order[-1].limit(self.topics, unit.topics) if order else {}
        further = any(end > known.get(place, 0) for place, end in fresh.position.items())
        fresh.order = [*order, *(fresh.order[-1:] if further else [])]
        fresh.unit = unit
        fresh.counts.clear()
        return own

    def _last(self, unit: Unit, earlier: UnitRun | None) -> Position:
        """What a stream has published stands: it goes on exactly where the version before has stopped.

        A topic that that version did not read begins with what comes after the cutover.
        """
        if earlier is None or unit.output.kind is Kind.TABLE:
            return {}
        places = [
            (topic, partition)
            for topic in unit.topics
            if topic in earlier.unit.topics
            for partition in range(self.topics.partitions)
        ]
        return {place: earlier.position.get(place, 0) for place in places}

    def _retire(self, action: Retire) -> None:
        self._ask(action, Counts())
        if action.keys and not action.keep_topic:
            gone = difference(Topics(self.topics.partitions).latest(action.output), self.topics.latest(action.output))
            append_records(self.topics, action.output, gone.records, self.new.name, action.active or 0)

    def _ask(self, action: Action, counts: Counts) -> None:
        found = concerns(counts, action)
        if decision(found, self.approval) is not Policy.APPROVE:
            raise ApprovalNeededError(
                " ".join(concern.message for concern in found), hint="upgrade(approval='approve')"
            )

    def _active_facts(self, run: UnitRun, unit: Unit | None) -> OutputFacts:
        described = run.described
        same = unit is not None and self._prints[unit.output.topic].fingerprint == described.fingerprint
        mismatch = run.mismatch(unit) if unit is not None and same else None
        return OutputFacts(
            active=Deployed(print=described, generation=run.generation, mismatch=mismatch), keys=self._keys(run.unit)
        )

    def _new_facts(self, unit: Unit) -> OutputFacts:
        return OutputFacts(keys=self._keys(unit))

    def _keys(self, unit: Unit) -> int:
        return self.topics.latest(unit.output.topic).height if unit.output.kind is Kind.TABLE else 0

    def _source_facts(self, topic: str) -> SourceFacts:
        ends = dict(enumerate(self.topics.end(topic)))
        return SourceFacts(topic=topic, records=sum(ends.values()), start=dict.fromkeys(ends, 0), end=ends)


@dataclass(frozen=True)
class _Compared:
    """A new generation beside its topics."""

    table: Difference
    letters: Difference

    @classmethod
    def of(cls, own: Topics, topics: Topics, unit: Unit) -> _Compared:
        output, letters = unit.output.topic, dead_letter_topic(unit.output.topic)
        table, there = own.latest(output), topics.latest(output)
        if unit.output.kind is Kind.STREAM:
            table = there = table.clear()
        return cls(
            difference(table, there, text=unit.output.format != "json"),
            letter_difference(own.latest(letters), topics.latest(letters), unit, topics.latest),
        )

    @property
    def counts(self) -> Counts:
        return Counts(**self.table.counts, newly_dead=self.letters.new)

    def publish(self, topics: Topics, run: UnitRun) -> None:
        unit, output = run.unit, run.unit.output.topic
        append_records(topics, output, self.table.records, unit.service, run.generation)
        append_records(topics, dead_letter_topic(output), self.letters.records, unit.service, run.generation)
