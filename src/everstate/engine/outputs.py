"""Preparing the outputs of a service: their order, topics, folders, and the checks before anything starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from everstate.engine.folder import OutputFolder, OutputRecord, read_document
from everstate.engine.identity import fingerprint, require_unchanged
from everstate.engine.inspection import inspect
from everstate.engine.spread import stage_groups
from everstate.log import vectors
from everstate.log.protocol import TopicConfig
from everstate.topology.errors import DefinitionError, TombstonesMissedError, TopicNotFoundError
from everstate.topology.nodes import Kind, Latest, Source

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from everstate.engine.settings import Settings
    from everstate.log.protocol import Commit, Log, Vector
    from everstate.topology.unit import Unit

#: Where a service remembers how far its outputs had got when their state was cleared.
REBUILD: Final = "rebuild.json"
_GENERATION: Final = "1"


@dataclass(frozen=True, eq=False)
class PreparedOutput:
    """An output that may be started.

    Attributes:
        unit: What it computes.
        folder: Where its state is.
        record: What that state belongs to.
        level: Outputs that it reads from have a lower one.
    """

    unit: Unit
    folder: OutputFolder
    record: OutputRecord
    level: int

    @property
    def name(self) -> str:
        """The output's topic."""
        return self.unit.output.topic


def levels(units: Sequence[Unit]) -> list[tuple[int, Unit]]:
    """Units with their level, those that feed others first."""
    by_topic = {unit.output.topic: unit for unit in units}
    known: dict[str, int] = {}

    def level(unit: Unit) -> int:
        name = unit.output.topic
        if name not in known:
            feeders = [by_topic[topic] for topic in unit.topics if topic in by_topic]
            known[name] = 1 + max((level(feeder) for feeder in feeders), default=-1)
        return known[name]

    return sorted(((level(unit), unit) for unit in units), key=lambda item: item[0])


def prepare_outputs(
    units: Sequence[Unit], log: Log, home: Path, settings: Settings, *, policy: str
) -> list[PreparedOutput]:
    """Create missing output topics, and check or begin the state of every output.

    Raises:
        TopicNotFoundError: If a source topic is missing.
        StateError: If state is missing or damaged, was built by another version of the service, or has missed
            deletions.
    """
    if not units:
        raise DefinitionError("the service has no output", hint="Declare one with .to(TOPIC).")
    ordered = levels(units)
    for _, unit in ordered:
        _create_topics(unit, log, policy)
    return [_prepare(unit, level, log, home, settings, policy) for level, unit in ordered]


def _create_topics(unit: Unit, log: Log, policy: str) -> None:
    present = set(log.topics())
    for source in unit.sources:
        if source.topic not in present:
            raise TopicNotFoundError(source.topic, location=source.location)
    output = unit.output
    partitions = output.partitions or max(log.describe(topic).config.partitions for topic in unit.topics)
    config = TopicConfig(partitions=partitions, compact=output.kind is Kind.TABLE)
    log.create_topic(output.topic, config, exist_ok=True)
    if policy == "dead-letter":
        log.create_topic(f"{output.topic}.dlq", TopicConfig(partitions=1, compact=True), exist_ok=True)


def _prepare(unit: Unit, level: int, log: Log, home: Path, settings: Settings, policy: str) -> PreparedOutput:
    name = unit.output.topic
    folder = OutputFolder(home / name)
    record = folder.read_record()
    last = log.last_commit(unit.service, name)
    steps = len(stage_groups(unit.depth, record.shards if record else settings.first_shards))
    now = fingerprint(unit, policy)
    if record is not None:
        require_unchanged(unit, record.fingerprint, now)
    inspect(folder, record, last, output=name, operators=steps)
    if last is not None:
        require_every_deletion(unit, last, log)
    if record is None:
        record = OutputRecord(
            shards=settings.first_shards,
            generation=_GENERATION,
            fingerprint=now,
            initial=log.begin_offsets(unit.topics),
            boundary=_boundary(unit, home, now),
        )
        folder.write_record(record)
    return PreparedOutput(unit, folder, record, level)


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
            hint="Rebuild the state from the topics: everstate clear SERVICE.py, then run it again.",
        )


def _boundary(unit: Unit, home: Path, now: str) -> Vector:
    """Up to where a rebuilt output publishes nothing, since its topic has these results already.

    A stream's records stand whatever made them. A table that another version made has to be written again.
    """
    entry = (read_document(home / REBUILD) or {}).get(unit.output.topic)
    if entry is None or (unit.output.kind is Kind.TABLE and entry["fingerprint"] != now):
        return {}
    end = vectors.from_offsets(entry["end"])
    return end if sorted(end) == list(unit.topics) else {}
