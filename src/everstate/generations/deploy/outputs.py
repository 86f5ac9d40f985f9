"""The outputs of a service before they run: their order, their topics, and the checks before anything starts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from everstate.errors import LogError, TombstonesMissedError, TopicNotFoundError
from everstate.formats.values import register
from everstate.generations.generation import own_dead_letters, own_side, own_topic
from everstate.generations.state.folder import OutputRecord
from everstate.generations.state.reached import complete_until
from everstate.log.descriptions import DAY_MS, TopicConfig
from everstate.schema.topic_names import dead_letter_topic
from everstate.topology.nodes import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.generations.deploy.site import Site
    from everstate.generations.generation import Generation
    from everstate.generations.state.folder import StateFolder
    from everstate.log.descriptions import Commit
    from everstate.log.protocol import Log
    from everstate.topology.unit import Unit

#: How long a table's topic keeps tombstones: who reads it may be away for a week without missing a deletion.
TOMBSTONES_MS: Final = 7 * DAY_MS


@dataclass(frozen=True, eq=False)
class PreparedOutput:
    """A generation of an output that may be started.

    Attributes:
        unit: What it computes.
        folder: Where its state is.
        generation: Which generation.
    """

    unit: Unit
    folder: StateFolder
    generation: Generation

    @property
    def name(self) -> str:
        """The output's topic."""
        return self.unit.output.topic


def levels(units: Sequence[Unit]) -> dict[str, int]:
    """The level of every output: those that it reads from have a lower one. Lower ones come first."""
    by_topic = {topic: unit for unit in units for topic in unit.written}
    known: dict[str, int] = {}

    def level(unit: Unit) -> int:
        name = unit.output.topic
        if name not in known:
            feeders = [found for topic in unit.topics if (found := by_topic.get(topic, unit)) is not unit]
            known[name] = 1 + max((level(feeder) for feeder in feeders), default=-1)
        return known[name]

    for unit in units:
        level(unit)
    return dict(sorted(known.items(), key=lambda item: item[1]))


def create_topics(units: Sequence[Unit], log: Log, policy: str) -> None:
    """Create the topics of outputs that are not there, those that feed others first.

    Raises:
        TopicNotFoundError: If a source topic is missing.
    """
    require_sources(units, log)
    order = levels(units)
    for unit in sorted(units, key=lambda unit: order[unit.output.topic]):
        output = unit.output
        partitions = output.partitions or max(log.describe(topic).config.partitions for topic in unit.topics)
        compact = output.kind is Kind.TABLE or any(feeder.traits.supersedes for feeder in output.inputs)
        config = TopicConfig(partitions=partitions, compact=compact, delete_retention_ms=TOMBSTONES_MS)
        register(output.record, output.format)
        log.create_topic(output.topic, config, exist_ok=True)
        require_fitting(output.topic, log.describe(output.topic).config, table=compact, ages=unit.ages)
        if policy == "dead-letter":
            log.create_topic(dead_letter_topic(output.topic), TopicConfig(partitions=1, compact=True), exist_ok=True)
        for side in unit.sides:
            log.create_topic(side.topic, replace(config, compact=side.kind is Kind.TABLE), exist_ok=True)
            require_fitting(side.topic, log.describe(side.topic).config, table=side.kind is Kind.TABLE)


def require_sources(units: Sequence[Unit], log: Log) -> None:
    """Stop if topics that the service reads, and does not write itself, are not there.

    Raises:
        TopicNotFoundError: It names the first, and the commands that create all of them.
    """
    made = {
        topic
        for unit in units
        for topic in (unit.output.topic, *(side.topic for side in unit.sides))
        if topic not in unit.topics
    }
    sources = {source.topic: source for unit in units for source in unit.sources if source.topic not in made}
    missing = [source for source in sources.values() if not log.has_topic(source.topic)]
    if missing:
        compact = {source.topic: " --compact" if source.kind is Kind.TABLE else "" for source in missing}
        commands = "; ".join(f"everstate topic create {topic}{option}" for topic, option in compact.items())
        hint = f"Create it: {commands}" if len(missing) == 1 else f"{len(missing)} topics are missing: {commands}"
        raise TopicNotFoundError(missing[0].topic, location=missing[0].location, hint=hint)


def require_fitting(topic: str, config: TopicConfig, *, table: bool, ages: bool = False) -> None:
    """Refuse a topic of a cluster that somebody has made in a way which would change or lose what is published.

    Args:
        topic: Its name.
        config: How it was made.
        table: It is to hold a table.
        ages: Of that table, old rows may go: none of them changes any more.

    Raises:
        LogError: With the command that mends it.
    """
    command = f"kafka-configs.sh --bootstrap-server HOST:PORT --alter --topic {topic} --add-config"
    if config.append_time:
        raise LogError(
            f"topic {topic!r} replaces the time of each record with the broker's, which would change what is published",
            hint=f"{command} message.timestamp.type=CreateTime",
        )
    if table and config.replication is not None and not config.compact:
        raise LogError(
            f"topic {topic!r} has to hold a table, but is not compacted: rows would expire with age, or "
            "never be removed",
            hint=f"{command} cleanup.policy=compact,retention.ms=-1",
        )
    if table and not ages and config.replication is not None and config.retention_ms is not None:
        raise LogError(
            f"topic {topic!r} is to hold a table, but also deletes by age: rows that have not changed for a long "
            "time would disappear",
            hint=f"{command} cleanup.policy=compact,retention.ms=-1",
        )


def create_own_topics(unit: Unit, generation: Generation, log: Log) -> None:
    """Create the topics that hold a generation's results while it is built."""
    output = unit.output.topic
    partitions = log.describe(output).config.partitions
    if unit.output.kind is Kind.TABLE:
        config = TopicConfig(partitions=partitions, compact=True)
        log.create_topic(own_topic(unit.service, output, generation), config, exist_ok=True)
    config = TopicConfig(partitions=1, compact=True)
    log.create_topic(own_dead_letters(unit.service, output, generation), config, exist_ok=True)
    for side in unit.sides:
        if own := own_side(unit.service, output, generation, side):
            config = TopicConfig(partitions=log.describe(side.topic).config.partitions, compact=True)
            log.create_topic(own, config, exist_ok=True)


def prepared(unit: Unit, generation: Generation, site: Site) -> PreparedOutput:
    """A generation whose state has been checked.

    Raises:
        StateError: If state is missing or damaged, or has missed deletions.
    """
    name = unit.output.topic
    folder = site.folder(name, generation)
    last = site.log.last_commit(unit.service, name, generation.name)
    # A generation may have taken over before it had a batch: then it has no state either.
    site.executor.inspect(unit, generation, last if last is not None and last.batch_id >= 0 else None)
    if last is not None:
        require_every_deletion(unit, last, site.log)
    return PreparedOutput(unit, folder, generation)


def write_identity(folder: StateFolder, generation: Generation) -> None:
    """Note in a generation's folder what its state belongs to."""
    folder.write_record(
        OutputRecord(
            shards=generation.shards,
            generation=generation.name,
            fingerprint=generation.fingerprint,
            initial=generation.initial,
        )
    )


def kept_tables(unit: Unit) -> tuple[str, ...]:
    """The topics whose rows an output keeps until they are deleted there."""
    return tuple(sorted({source.topic for source in unit.sources if source.kind is Kind.TABLE}))


def require_every_deletion(unit: Unit, last: Commit, log: Log) -> None:
    """A table that missed a tombstone would keep the row for ever.

    Raises:
        TombstonesMissedError: If compaction has dropped tombstones that the output has not read.
    """
    tables = kept_tables(unit)
    positions = {topic: offsets for topic, offsets in last.end.items() if topic in tables}
    missed = log.tombstones_dropped(positions, since_ms=complete_until(log, unit.service, unit.output.topic, last))
    for topic in sorted(missed):
        raise TombstonesMissedError(
            f"output {unit.output.topic!r} was stopped for longer than topic {topic!r} keeps tombstones, "
            "so it would keep rows that were deleted there",
            hint=f"Rebuild it from its sources: everstate run SERVICE.py --recalculate {unit.output.topic}",
        )
