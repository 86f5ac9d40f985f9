"""From a service and its log to a plan: gathers what the plan must know, changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from everstate.errors import DefinitionError, EverstateError, PlanDriftError, StateError
from everstate.fingerprints import print_unit
from everstate.fingerprints.noted import Notes, note_unit
from everstate.fingerprints.prints import UnitPrint
from everstate.generations.deploy.outputs import levels, prepared
from everstate.generations.generation import Status
from everstate.generations.state import spark_steps
from everstate.generations.state.net import Net
from everstate.generations.state.past import beyond, covered, unread
from everstate.generations.state.topic_marks import require_same_partitions, require_same_topics
from everstate.log.archive.files import of_another
from everstate.log.archive.reading import load
from everstate.plan.actions import Keep
from everstate.plan.document import drift
from everstate.plan.explaining import explained
from everstate.plan.facts import Deployed, Options, OutputFacts, SourceFacts
from everstate.plan.service_decision import decide
from everstate.schema.topic_names import dead_letter_topic
from everstate.topology.nodes import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everstate.dsl.service import Service
    from everstate.generations.deploy.outputs import PreparedOutput
    from everstate.generations.deploy.site import Site
    from everstate.generations.generation import Generation, OutputGenerations
    from everstate.log.archive.archive import Archive
    from everstate.log.descriptions import TopicInfo
    from everstate.log.protocol import Log
    from everstate.plan.actions import Action, Plan
    from everstate.topology.unit import Unit


@dataclass(frozen=True)
class Planned:
    """A plan with what is needed to carry it out.

    Attributes:
        plan: The plan.
        units: The outputs of the service by topic, those that feed others first.
        prints: What they are.
        generations: Their generations, and those of outputs that are no longer declared.
        policy: What happens to records that cannot be processed.
        configuration: The values that the service has read, by name.
    """

    plan: Plan
    units: dict[str, Unit]
    prints: dict[str, UnitPrint]
    generations: dict[str, OutputGenerations]
    policy: str
    configuration: dict[str, Any] = field(default_factory=dict)

    def notes(self, output: str) -> Notes:
        """What the text of an output says."""
        return note_unit(self.units[output], self.configuration)


def prints_of(service: Service) -> dict[str, UnitPrint]:
    """What the outputs of a service are at this moment, by topic.

    Raises:
        DefinitionError: If it has none, or a function whose meaning cannot be seen.
    """
    if not service.outputs:
        raise DefinitionError("the service has no output", hint="Declare one with .to(TOPIC).")
    return {
        unit.output.topic: print_unit(unit, policy=service.on_error, settings=service.configuration)
        for unit in service.units()
    }


def make_plan(
    service: Service,
    site: Site,
    options: Options,
    net: Net | None = None,
    prints: Mapping[str, UnitPrint] | None = None,
) -> Planned:
    """What happens if the service is started now.

    Args:
        service: The service.
        site: Where.
        options: What is asked for.
        net: What has looked at samples already with this code.
        prints: What the outputs are, by topic; by default what they are at this moment.

    Raises:
        DefinitionError: If the service has no output, or a function whose meaning cannot be seen.
    """
    declared = service.units()
    units = {name: unit for name in levels(declared) for unit in declared if unit.output.topic == name}
    known = prints_of(service) if prints is None else prints
    prints = {name: known[name] for name in units}
    generations = site.registry.generations()
    facts = {
        name: _output_facts(name, units.get(name), generations.get(name), site)
        for name in [*units, *(name for name in generations if name not in units)]
    }
    net = net or Net(site.folder, site.code)
    for name, unit in units.items():
        carried = service.on_change.get(name, "recalculate") != "recalculate"
        facts[name] = _checked(facts[name], unit, prints[name], generations.get(name), net, carried=carried)
        told = spark_steps.warnings(service.name, unit, service.spark_steps, site.log)
        facts[name] = replace(facts[name], warnings=(*facts[name].warnings, *told))
    topics = {topic for unit in units.values() for topic in unit.topics}
    made = {topic for unit in units.values() for topic in unit.written} | service.spark_steps.feeds.keys()
    sources = {
        topic: _source_facts(topic, site, load(site.log, service.name, site.home, topic), outputs=made)
        for topic in sorted(topics)
    }
    plan = decide(service.name, list(prints.values()), facts, sources, on_change=service.on_change, options=options)
    plan = _explained(plan, units, prints, generations, site, service.configuration)
    return Planned(plan, units, prints, generations, service.on_error, dict(service.configuration))


def _explained(
    plan: Plan,
    units: dict[str, Unit],
    prints: dict[str, UnitPrint],
    generations: dict[str, OutputGenerations],
    site: Site,
    configuration: Mapping[str, Any],
) -> Plan:
    """The same plan with what the user edited, in the user's own text."""

    def action(found: Action) -> Action:
        versions = generations.get(found.output)
        active = None if versions is None else versions.active
        if active is None or found.output not in units or not found.differences:
            return found
        kept = site.folder(found.output, active).read_sources()
        both = (UnitPrint.from_json(active.description), prints[found.output])
        notes = (
            None if kept is None else Notes.from_document(kept),
            None if kept is None else note_unit(units[found.output], configuration),
        )
        return replace(found, differences=explained(found.differences, both, notes))

    return replace(plan, actions=tuple(map(action, plan.actions)), startup=site.executor.startup)


def require_possible(planned: Planned) -> None:
    """Stop if the plan refuses an output.

    Raises:
        TopicNotFoundError: If a source does not exist.
        LogError: If one cannot be read.
        HistoryTruncatedError: If one has lost records that are needed.
    """
    for action in planned.plan.refusals:
        unit = planned.units[action.output]
        places = {source.topic: source.location for source in unit.sources}
        raise action.error(places.get(action.missing, unit.output.location))


def require_no_drift(plan: Plan, planned: Planned) -> None:
    """Stop if code or history are not those that a plan was made for.

    Raises:
        PlanDriftError: If they are not; nothing has been changed.
    """
    if found := drift(plan, planned.plan):
        file = planned.plan.options.file
        raise PlanDriftError(
            f"the plan no longer fits: {found}", hint=f"Make it again: everstate plan {file} --out FILE"
        )


def unchanged(planned: Planned, site: Site) -> dict[str, PreparedOutput]:
    """The outputs that go on as they are, their state checked: before Spark is started, which takes a while.

    Raises:
        StateError: If state is missing or damaged, or has missed deletions.
    """
    found = {}
    for action in planned.plan.actions:
        versions = planned.generations.get(action.output)
        if isinstance(action, Keep) and versions is not None and versions.active is not None:
            found[action.output] = prepared(planned.units[action.output], versions.active, site)
    return found


def _output_facts(name: str, unit: Unit | None, versions: OutputGenerations | None, site: Site) -> OutputFacts:
    log = site.log
    published = log.last_commit(site.registry.service, name) is not None
    if versions is None:
        keys = _keys(name, log) if unit is not None and unit.output.kind is Kind.TABLE else 0
        return OutputFacts(keys=keys, published=published)

    if unit is not None and versions.active is not None:
        require_same_partitions(versions.active, unit, log)

    def deployed(generation: Generation | None) -> Deployed | None:
        return None if generation is None else _deployed(name, generation, site)

    further = () if unit is None else (side.topic for side in unit.sides)
    topics = [topic for topic in (name, dead_letter_topic(name), *further) if log.has_topic(topic)]
    retained = [deployed(generation) for generation in versions.retired]
    counts = versions.active is None or unit is None
    return OutputFacts(
        active=deployed(versions.active),
        pending=deployed(versions.building),
        retained=tuple(known for known in retained if known is not None),
        keys=_keys(name, log) if counts else 0,
        published=published,
        topics=log.topic_ids(topics),
        begins=log.begin_offsets([name])[name] if name in topics else {},
    )


def _checked(
    facts: OutputFacts, unit: Unit, described: UnitPrint, versions: OutputGenerations | None, net: Net, *, carried: bool
) -> OutputFacts:
    """The same facts with what the samples of the generations say of the output as it is now."""
    if versions is None:
        return facts
    warnings: dict[str, None] = {}

    def checked(deployed: Deployed) -> Deployed:
        generation = versions.numbered(deployed.generation)
        if generation is None:
            return deployed
        active = facts.active is not None and deployed.generation == facts.active.generation
        found = net.check(unit, described, generation, carried=carried and active)
        if active:
            warnings.update(dict.fromkeys(found.warnings))
        return replace(deployed, mismatch=found.mismatch)

    return replace(
        facts,
        active=checked(facts.active) if facts.active is not None else None,
        pending=checked(facts.pending) if facts.pending is not None else None,
        retained=tuple(checked(deployed) for deployed in facts.retained),
        warnings=tuple(warnings),
    )


def _deployed(output: str, generation: Generation, site: Site) -> Deployed:
    last = site.log.last_commit(site.registry.service, output, generation.name)
    return Deployed(
        print=UnitPrint.from_json(generation.description),
        generation=generation.number,
        shards=generation.shards,
        end=last.end if last is not None else {},
        rate=generation.rate or None,
        resumable=_resumable(output, generation, site),
        migrated=site.folder(output, generation).migrated,
        topics=generation.topics,
        begins=generation.begins,
    )


def _resumable(output: str, generation: Generation, site: Site) -> bool:
    """Whether a generation's state can be continued."""
    if generation.status is Status.ACTIVE:
        return True
    if generation.status is Status.PLANNED:
        return False  # the process that planned it has not got to making all of its folder
    try:
        resumable_unit(output, generation, site)
    except EverstateError:
        return False
    return True


def resumable_unit(output: str, generation: Generation, site: Site) -> Unit:
    """The archived code of a generation whose state can be continued.

    Raises:
        StateError: If code or state are damaged, or the sources no longer have all that it has not read.
    """
    unit, log = site.code(output, generation), site.log
    require_same_topics(generation, unit.topics, log)
    prepared(unit, generation, site)
    last = log.last_commit(unit.service, output, generation.name)
    stands = last.end if last is not None else generation.initial
    for topic in unread(log, unit.service, site.home, unit.topics, stands, generation):
        raise StateError(
            f"generation {generation.number} of {output!r} has not read all of topic {topic!r}, and the rest is gone",
            hint="It has to be recalculated: run the version of the file that it was deployed from.",
        )
    return unit


def _keys(topic: str, log: Log) -> int:
    if not log.has_topic(topic) or not log.describe(topic).most_records:
        return 0
    return log.latest(topic).height


def _source_facts(topic: str, site: Site, archive: Archive, *, outputs: set[str]) -> SourceFacts:
    log = site.log
    if not log.has_topic(topic):
        # An output of this service is made before anything reads it.
        return SourceFacts(topic=topic, exists=topic in outputs)
    info = log.describe(topic)
    found = covered(log, info, archive)
    problem, cure = _problem(info, site, archive)
    return SourceFacts(
        topic=topic,
        problem=problem,
        cure=cure,
        records=found.records,
        archived=found.archived,
        kept=found.kept,
        missing=found.missing,
        start=found.start,
        end=info.end,
        compacted=info.config.compact,
        superseded=found.superseded,
        id=info.id,
    )


def _problem(info: TopicInfo, site: Site, archive: Archive) -> tuple[str, str]:
    """Why a topic cannot be read, and what to do; empty if the first records of every partition can be."""
    if beyond(archive, info.end) or not archive.is_of(info.id):
        other = of_another(site.home, info.name)
        return other.message, other.hint or ""
    try:
        for partition, start in info.start.items():
            site.log.read(info.name, partition, start, limit=1)
    except EverstateError as error:
        return f"topic {info.name} cannot be read: {error.message}", error.hint or ""
    except OSError as error:
        return f"topic {info.name} cannot be read: {error}", ""
    return "", ""
