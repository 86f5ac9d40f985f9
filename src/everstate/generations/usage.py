"""Which deployed services have to do with a topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from everstate.fingerprints.prints import UnitPrint
from everstate.generations.registry import Registry
from everstate.schema.topic_names import dead_letter_topic

if TYPE_CHECKING:
    from everstate.generations.generation import OutputGenerations
    from everstate.log.protocol import Log


@dataclass(frozen=True)
class Use:
    """An output that has to do with a topic.

    Attributes:
        service: The output's service.
        output: The output.
        writes: It writes the topic, rather than reads it.
    """

    service: str
    output: str
    writes: bool

    def __str__(self) -> str:
        return f"output {self.output} of service {self.service} {'writes' if self.writes else 'reads'} it"


def uses(log: Log, topic: str) -> list[Use]:
    """The outputs of deployed services that read or write a topic, those that write it first."""
    found = []
    for service in log.services():
        for output, versions in Registry(log, service).generations().items():
            deployed = versions.active is not None or versions.building is not None
            if deployed and topic in _written(versions):
                found.append(Use(service, output, writes=True))
            elif topic in source_topics(versions):
                found.append(Use(service, output, writes=False))
    return sorted(found, key=lambda use: (not use.writes, use.service, use.output))


def source_topics(versions: OutputGenerations) -> frozenset[str]:
    """The topics that the versions of an output read that are active or being built."""
    deployed = [generation for generation in (versions.active, versions.building) if generation is not None]
    named = {topic for generation in deployed for topic in (*generation.initial, *generation.topics)}
    return frozenset(named - _written(versions))


def _written(versions: OutputGenerations) -> set[str]:
    """The topics that those versions write."""
    deployed = [generation for generation in (versions.active, versions.building) if generation is not None]
    sides = {topic for generation in deployed for topic in UnitPrint.from_json(generation.description).sides}
    return {versions.output, dead_letter_topic(versions.output), *sides}
