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
        if need is Need.NOTHING:
            continue
        archive, info = load(log, service, home, topic), log.describe(topic)
        every = need is Need.ALL and info.config.compact
        found = covered(log, info, archive) if every else coverage(info, archive, lambda *_: 0)
        if archive.files:
            initial[topic] = found.start
        if found.gaps or (every and found.superseded != 0):
            missing[topic] = found.gaps
    return initial, missing


def beyond(archive: Archive, offsets: dict[int, int]) -> bool:
    """Whether an archive goes further than these offsets, in any partition."""
    return any((part.end or 0) > offsets.get(number, 0) for number, part in archive.partitions.items())


def unread(
    log: Log, service: str, home: Path, topics: Sequence[str], stands: Vector, generation: Generation
) -> Iterator[str]:
    """Topics of which a generation has not read all, and neither topic nor archive has the rest."""
    missing, every = generation.missing, set(_every(generation, log, topics))
    for topic, begins in log.begin_offsets(topics).items():
        archive = load(log, service, home, topic)
        if topic in every and _compacted(log, log.describe(topic), archive, stands.get(topic, {})):
            yield topic
            continue
        for number, begin in begins.items():
            position = stands.get(topic, {}).get(number, 0)
            known = missing.get(topic, {}).get(number, ())
            gone = archive.partition(number).gaps(position, begin)
            if any(not any(low <= first and last <= high for low, high in known) for first, last in gone):
                yield topic
                break


def _every(generation: Generation, log: Log, topics: Sequence[str]) -> Iterator[str]:
    """Compacted topics of which a generation has to read every record, since nothing was missing when it was planned.

    Not on a log that does not count records: there a gap between offsets says nothing.
    """
    compacted = [info for topic in topics if (info := log.describe(topic)).config.compact and info.records is not None]
    wanted = needs(UnitPrint.from_json(generation.description)) if compacted else {}
    for info in compacted:
        if wanted.get(info.name) is Need.ALL and info.name not in generation.missing:
            yield info.name


def _compacted(log: Log, info: TopicInfo, archive: Archive, stands: dict[int, int]) -> bool:
    """Whether compaction has taken records after these offsets that the archive does not have."""
    if info.records == sum(info.end.values()) - sum(info.start.values()):
        return False
    for number, end in info.end.items():
        first = max(stands.get(number, 0), archive.partition(number).end or 0, info.start[number])
        if first < end and _count(log, info.name, number, first) < end - first:
            return True
    return False


def past_of(output: PreparedOutput, log: Log, position: Vector, *, closed: bool = True) -> Past:
    """Where a generation finds what its sources no longer have.

    As long as it has not caught up, a compacted topic is read from its archive as far as that goes, if a step needs
    every record or the topic has lost its beginning: only the archive knows of all deletions then.

    Args:
        output: The generation.
        log: The log.
        position: Where it is in its sources.
        closed: It is being built: then it must not miss what the active generation has read.
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
    every = tuple(_every(generation, log, unit.topics)) if closed else ()
    return Past(service=unit.service, folder=str(home), whole=tuple(whole), missing=generation.missing, every=every)


def _expired(generation: Generation, info: TopicInfo) -> bool:
    """Whether the topic has lost records since the place where a generation begins."""
    first = generation.initial.get(info.name, {})
    return any(first.get(partition, begin) < begin for partition, begin in info.start.items())
