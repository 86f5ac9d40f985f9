"""How much of its sources' past an output can read: for plans, for new generations, and for queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from everstate.fingerprints.prints import UnitPrint
from everstate.log.archive.coverage import coverage
from everstate.log.archive.reading import Past, load
from everstate.plan.needs import needs
from everstate.topology.traits import Need

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from everstate.generations.deploy.outputs import PreparedOutput
    from everstate.generations.generation import Generation
    from everstate.log.archive.archive import Archive, Gaps
    from everstate.log.archive.coverage import Coverage
    from everstate.log.descriptions import TopicInfo, Vector
    from everstate.log.protocol import Log

_AT_ONCE: Final = 500_000


def covered(log: Log, info: TopicInfo, archive: Archive) -> Coverage:
    """What a topic and its archive have together."""
    return coverage(info, archive, lambda partition, start: _count(log, info.name, partition, start))


def _count(log: Log, topic: str, partition: int, start: int) -> int:
    """Records from an offset on; only what compaction has left can tell."""
    found = 0
    while len(frame := log.read(topic, partition, start, limit=_AT_ONCE)):
        found += len(frame)
        start = int(frame["offset"][-1]) + 1
    return found


def beginning(log: Log, service: str, home: Path, described: UnitPrint, topics: Sequence[str]) -> tuple[Vector, Gaps]:
    """Where a new generation begins, and what it does without: the plan has said so, and it was accepted."""
    initial: Vector = log.begin_offsets(topics)
    missing: Gaps = {}
    for topic, need in needs(described).items():
        archive = load(log, service, home, topic)
        if need is Need.NOTHING or not archive.files:
            continue
        found = coverage(log.describe(topic), archive, lambda *_: 0)
        initial[topic] = found.start
        if found.gaps:
            missing[topic] = found.gaps
    return initial, missing


def beyond(archive: Archive, offsets: dict[int, int]) -> bool:
    """Whether an archive goes further than these offsets, in any partition."""
    return any((part.end or 0) > offsets.get(number, 0) for number, part in archive.partitions.items())


def unread(log: Log, service: str, home: Path, topics: Sequence[str], stands: Vector, missing: Gaps) -> Iterator[str]:
    """Topics of which a generation has not read all, and neither topic nor archive has the rest."""
    for topic, begins in log.begin_offsets(topics).items():
        archive = load(log, service, home, topic)
        for number, begin in begins.items():
            position = stands.get(topic, {}).get(number, 0)
            known = missing.get(topic, {}).get(number, ())
            gone = archive.partition(number).gaps(position, begin)
            if any(not any(low <= first and last <= high for low, high in known) for first, last in gone):
                yield topic
                break


def past_of(output: PreparedOutput, log: Log, position: Vector) -> Past:
    """Where a generation finds what its sources no longer have.

    As long as it has not caught up, a compacted topic is read from its archive as far as that goes, if a step needs
    every record or the topic has lost its beginning: only the archive knows of all deletions then.

    Args:
        output: The generation.
        log: The log.
        position: Where it is in its sources.
    """
    unit, generation, home = output.unit, output.generation, output.folder.home
    archived = [t for t in unit.topics if beyond(load(log, unit.service, home, t), position.get(t, {}))]
    wanted = needs(UnitPrint.from_json(generation.description)) if archived else {}
    whole = [
        topic
        for topic in archived
        if (info := log.describe(topic)).config.compact
        and (wanted.get(topic) is Need.ALL or _expired(generation, info))
    ]
    return Past(service=unit.service, folder=str(home), whole=tuple(whole), missing=generation.missing)


def _expired(generation: Generation, info: TopicInfo) -> bool:
    """Whether the topic has lost records since the place where a generation begins."""
    first = generation.initial.get(info.name, {})
    return any(first.get(partition, begin) < begin for partition, begin in info.start.items())
