"""A new version under the test driver: the plan, and the same cutover as on Spark, on topics in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from everstate.generations.difference import difference
from everstate.plan.actions import Continue, Nothing, Retire
from everstate.plan.decisions import decide
from everstate.plan.facts import Deployed, Options, OutputFacts, SourceFacts
from everstate.plan.guards import Policy, concerns, decision
from everstate.plan.preview import Counts
from everstate.testing.topics import Topics
from everstate.testing.unit_run import UnitRun, append_records
from everstate.topology.errors import ApprovalNeededError, HistoryTruncatedError
from everstate.topology.fingerprints import print_unit
from everstate.topology.nodes import Kind
from everstate.topology.unit import silenced

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from everstate.dsl.service import Service
    from everstate.generations.difference import Difference
    from everstate.plan.actions import Action, Plan
    from everstate.testing.topics import StoredRecord
    from everstate.testing.unit_run import Position
    from everstate.topology.unit import Unit


@dataclass(frozen=True, kw_only=True)
class Change:
    """A service beside the one that runs.

    Attributes:
        old: The service that runs.
        new: The one that takes its place.
        runs: The outputs of the old one as they run, by topic.
        topics: All topics.
        approval: What happens to a cutover that would remove much.
        recalculate: Outputs to rebuild although nothing has changed.
        shards: Shards of new generations.
    """

    old: Service
    new: Service
    runs: Mapping[str, UnitRun]
    topics: Topics
    approval: str
    recalculate: Sequence[str]
    shards: int

    def plan(self) -> Plan:
        """What follows from the change."""
        before = {unit.output.topic: unit for unit in self.old.units()}
        facts = {name: self._output_facts(unit) for name, unit in before.items()}
        units = self.new.units()
        facts.update({u.output.topic: self._output_facts(u, new=True) for u in units if u.output.topic not in before})
        prints = [print_unit(unit, policy=self.new.on_error, settings=self.new.configuration) for unit in units]
        sources = {topic: self._source_facts(topic) for unit in units for topic in unit.topics}
        options = Options(recalculate=tuple(self.recalculate))
        return decide(self.new.name, prints, facts, sources, on_change=self.new.on_change, options=options)

    def carry_out(self, plan: Plan) -> tuple[dict[str, UnitRun], list[tuple[str, StoredRecord]]]:
        """Bring every output to its new version, those that feed others first.

        Returns:
            The outputs as they run now, and the records that cutovers have published, each with its topic.

        Raises:
            HistoryTruncatedError: If the plan refuses an output.
            ApprovalNeededError: If a cutover has to be approved; nothing of it has been published.
        """
        for refused in plan.refusals:
            raise HistoryTruncatedError(f"output {refused.output!r}: {refused.problem}", hint=refused.hint)
        units = {unit.output.topic: unit for unit in self.new.units()}
        runs: dict[str, UnitRun] = {}
        published: list[tuple[str, StoredRecord]] = []
        for action in plan.actions:
            before = self.topics.count(action.output)
            if isinstance(action, Retire):
                self._retire(action)
            else:
                runs[action.output] = self._replaced(action, units[action.output])
            published += [(action.output, record) for record in self.topics.all(action.output)[before:]]
            if action.output in runs:
                runs[action.output].micro_batch(self.topics)
        return {name: runs[name] for name in units}, published

    def _replaced(self, action: Action, unit: Unit) -> UnitRun:
        run = self.runs.get(action.output)
        if run is not None and isinstance(action, (Nothing, Continue)):
            run.unit = unit
            return run
        fresh = UnitRun(unit, self.new.on_error, self.shards, run.generation + 1 if run is not None else 1)
        if run is None and not self.topics.count(action.output):
            return fresh
        own = self._build(fresh, run)
        table = _Compared.of(own, self.topics, action.output, kind=unit.output.kind, fmt=unit.output.format)
        self._ask(action, table)
        table.publish(self.topics, self.new.name, fresh.generation)
        return fresh

    def _build(self, fresh: UnitRun, run: UnitRun | None) -> Topics:
        """Process the history, closed: results go to topics of their own, side effects do not happen."""
        unit, own = fresh.unit, Topics(self.topics.partitions)
        fresh.unit = silenced(unit)
        recorded: list[Position] = run.order if run is not None else []
        stops = recorded if unit.order_sensitive else []
        # What a stream has published stands: it goes on exactly where the old version stopped.
        last = run.position if run is not None and unit.output.kind is Kind.STREAM else {}
        for stop in stops:
            fresh.micro_batch(self.topics, target=own, limit=self._limited(unit, stop))
        fresh.micro_batch(self.topics, target=own, limit=last)
        fresh.unit = unit
        fresh.counts.clear()
        return own

    def _limited(self, unit: Unit, stop: Position) -> Position:
        """A vector over all sources; a topic that it does not name is read after the others."""
        named = {topic for topic, _ in stop}
        places = [(topic, partition) for topic in unit.topics for partition in range(self.topics.partitions)]
        return {place: stop.get(place, 0) if place[0] in named else 0 for place in places}

    def _retire(self, action: Retire) -> None:
        compacted = action.keys and not action.keep_topic
        table = _Compared.of(Topics(self.topics.partitions), self.topics, action.output, kind=Kind.TABLE, fmt="json")
        self._ask(action, table)
        if compacted:
            table.publish(self.topics, self.new.name, action.active or 0)

    def _ask(self, action: Action, table: _Compared) -> None:
        found = concerns(table.counts, action)
        if decision(found, Policy(self.approval)) is not Policy.APPROVE:
            raise ApprovalNeededError(
                "; ".join(concern.message for concern in found), hint="upgrade(approval='approve')"
            )

    def _output_facts(self, unit: Unit, *, new: bool = False) -> OutputFacts:
        name = unit.output.topic
        keys = self.topics.latest(name).height if unit.output.kind is Kind.TABLE else 0
        if new:
            return OutputFacts(keys=keys)
        described = print_unit(unit, policy=self.old.on_error, settings=self.old.configuration)
        return OutputFacts(active=Deployed(print=described, generation=self.runs[name].generation), keys=keys)

    def _source_facts(self, topic: str) -> SourceFacts:
        ends = dict(enumerate(self.topics.end(topic)))
        return SourceFacts(topic=topic, records=sum(ends.values()), start=dict.fromkeys(ends, 0), end=ends)


@dataclass(frozen=True)
class _Compared:
    """A new generation beside its topics."""

    output: str
    table: Difference
    letters: Difference

    @classmethod
    def of(cls, own: Topics, topics: Topics, output: str, *, kind: Kind, fmt: str) -> _Compared:
        def both(topic: str) -> tuple[pl.DataFrame, pl.DataFrame]:
            return own.latest(topic), topics.latest(topic)

        table, there = both(output)
        if kind is Kind.STREAM:
            table = there = table.clear()
        return cls(output, difference(table, there, text=fmt != "json"), difference(*both(f"{output}.dlq")))

    @property
    def counts(self) -> Counts:
        return Counts(**self.table.counts, newly_dead=self.letters.new)

    def publish(self, topics: Topics, service: str, generation: int) -> None:
        append_records(topics, self.output, self.table.records, service, generation)
        append_records(topics, f"{self.output}.dlq", self.letters.records, service, generation)
