"""The outputs of a service on their way to Spark: order, topics, folders, and the checks before anything starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from everstate.engine.folder import OutputFolder, OutputRecord
from everstate.engine.inspection import inspect
from everstate.engine.spread import stage_groups
from everstate.generations.generation import own_dead_letters, own_topic
from everstate.log.protocol import TopicConfig
from everstate.topology.errors import TombstonesMissedError, TopicNotFoundError
from everstate.topology.nodes import Kind, Latest, Source

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from everstate.generations.generation import Generation
    from everstate.log.protocol import Commit, Log
    from everstate.topology.unit import Unit


@dataclass(frozen=True, eq=False)
class PreparedOutput:
    """A generation of an output that may be started.

    Attributes:
        unit: What it computes.
        folder: Where its state is.
        generation: Which generation.
        level: Outputs that it reads from have a lower one.
    """

    unit: Unit
    folder: OutputFolder
    generation: Generation
    level: int

    @property
    def name(self) -> str:
        """The output's topic."""
        return self.unit.output.topic


def levels(units: Sequence[Unit]) -> dict[str, int]:
    """The level of every output: those that it reads from have a lower one. Lower ones come first."""
    by_topic = {unit.output.topic: unit for unit in units}
    known: dict[str, int] = {}

    def level(unit: Unit) -> int:
        name = unit.output.topic
        if name not in known:
            feeders = [by_topic[topic] for topic in unit.topics if topic in by_topic]
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
    order = levels(units)
    for unit in sorted(units, key=lambda unit: order[unit.output.topic]):
        for source in unit.sources:
            if not log.has_topic(source.topic):
                raise TopicNotFoundError(source.topic, location=source.location)
        output = unit.output
        partitions = output.partitions or max(log.describe(topic).config.partitions for topic in unit.topics)
        config = TopicConfig(partitions=partitions, compact=output.kind is Kind.TABLE)
        log.create_topic(output.topic, config, exist_ok=True)
        if policy == "dead-letter":
            log.create_topic(f"{output.topic}.dlq", TopicConfig(partitions=1, compact=True), exist_ok=True)


def create_own_topics(unit: Unit, generation: Generation, log: Log) -> None:
    """Create the topics that hold a generation's results while it is built."""
    output = unit.output.topic
    partitions = log.describe(output).config.partitions
    if unit.output.kind is Kind.TABLE:
        config = TopicConfig(partitions=partitions, compact=True)
        log.create_topic(own_topic(unit.service, output, generation), config, exist_ok=True)
    config = TopicConfig(partitions=1, compact=True)
    log.create_topic(own_dead_letters(unit.service, output, generation), config, exist_ok=True)


def generation_folder(home: Path, output: str, generation: Generation) -> OutputFolder:
    """Where the state of a generation is."""
    return OutputFolder(home / output / generation.name)


def prepared(unit: Unit, generation: Generation, log: Log, home: Path, level: int) -> PreparedOutput:
    """A generation whose state has been checked.

    Raises:
        StateError: If state is missing or damaged, or has missed deletions.
    """
    name = unit.output.topic
    folder = generation_folder(home, name, generation)
    last = log.last_commit(unit.service, name, generation.name)
    steps = len(stage_groups(unit.depth, generation.shards))
    # A generation may have taken over before it had a batch: then it has no checkpoint either.
    begun = last if last is not None and last.batch_id >= 0 else None
    inspect(folder, folder.read_record(), begun, output=name, operators=steps)
    if last is not None:
        require_every_deletion(unit, last, log)
    return PreparedOutput(unit, folder, generation, level)


def write_identity(folder: OutputFolder, generation: Generation) -> None:
    """Note in a generation's folder what its state belongs to."""
    folder.write_record(
        OutputRecord(
            shards=generation.shards,
            generation=generation.name,
            fingerprint=generation.fingerprint,
            initial=generation.initial,
        )
    )


def require_every_deletion(unit: Unit, last: Commit, log: Log) -> None:
    """A table that missed a tombstone would keep the row for ever.

    Raises:
        TombstonesMissedError: If compaction has dropped tombstones that the output has not read.
    """
    feeders = (feeder for node in unit.nodes if isinstance(node, Latest) for feeder in node.inputs)
    tables = {feeder.topic for feeder in feeders if isinstance(feeder, Source)}
    positions = {topic: offsets for topic, offsets in last.end.items() if topic in tables}
    missed = log.tombstones_dropped(positions, since_ms=last.committed_ms or 0)
    for topic in sorted(missed):
        raise TombstonesMissedError(
            f"output {unit.output.topic!r} was away for longer than topic {topic!r} keeps tombstones: "
            "rows were deleted there that it would keep",
            hint=f"Rebuild it from its sources: everstate run SERVICE.py --recalculate {unit.output.topic}",
        )
