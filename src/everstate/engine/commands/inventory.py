"""What a service's generations are and occupy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

from everstate.engine.spark_run import SparkRun
from everstate.generations.generation import Status, own_dead_letters, own_topic
from everstate.schema.topic_names import dead_letter_topic

if TYPE_CHECKING:
    from everstate.dsl.service import Service
    from everstate.generations.deploy.options import RunOptions
    from everstate.generations.deploy.site import Site
    from everstate.generations.generation import Event, Generation


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One generation of an output.

    Attributes:
        output: The output's topic.
        number: Of the generation.
        status: Where it is in its life.
        since_ms: Since when.
        fingerprint: Of the version.
        shards: How many it has.
        state_bytes: Size of its folder.
        topic_bytes: Size of the topics with its results: the output's own for the active one, hidden ones for others.
            None where the log does not say.
        records: How many records its table or stream has there; None where nobody counts them.
        most_records: How many there are at the most.
    """

    output: str
    number: int
    status: str
    since_ms: int
    fingerprint: str
    shards: int
    state_bytes: int
    topic_bytes: int | None
    records: int | None
    most_records: int


@dataclass(frozen=True)
class Inventory:
    """All that the registry knows of a service.

    Attributes:
        entries: Its generations, by output, the oldest first.
        audit: What has happened to each output, the oldest first.
    """

    entries: tuple[Entry, ...]
    audit: dict[str, tuple[Event, ...]]


def inventory(service: Service, **given: Unpack[RunOptions]) -> Inventory:
    """The generations of a service.

    Args:
        service: The service.
        given: As for `SparkRun`.
    """
    with SparkRun(service, **given) as run:
        site = run.site
        generations = dict(sorted(site.registry.generations().items()))
        entries = [_entry(name, generation, site) for name, h in generations.items() for generation in h.generations]
        return Inventory(tuple(entries), {name: site.registry.audit(name) for name in generations})


def _entry(output: str, generation: Generation, site: Site) -> Entry:
    active = generation.status is Status.ACTIVE
    service = site.registry.service
    table = output if active else own_topic(service, output, generation)
    letters = dead_letter_topic(output) if active else own_dead_letters(service, output, generation)
    sizes = {topic: site.log.describe(topic) for topic in (table, letters) if site.log.has_topic(topic)}
    there = sizes.get(table)
    known = [info.size_bytes for info in sizes.values() if info.size_bytes is not None]
    return Entry(
        output=output,
        number=generation.number,
        status=str(generation.status),
        since_ms=generation.changed_ms,
        fingerprint=generation.fingerprint,
        shards=generation.shards,
        state_bytes=site.folder(output, generation).size(),
        topic_bytes=sum(known) if len(known) == len(sizes) else None,
        records=0 if there is None else there.records,
        most_records=0 if there is None else there.most_records,
    )
