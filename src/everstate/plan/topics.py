"""Topics that are not those which a generation has read and written: deleted, created again, or emptied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everstate.plan.categories import Category, Difference
from everstate.plan.matching import source_topics
from everstate.plan.words import counted
from everstate.schema.topic_names import dead_letter_topic

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from everstate.fingerprints.prints import UnitPrint
    from everstate.plan.facts import Deployed, OutputFacts, SourceFacts


def topic_differences(
    active: Deployed, new: UnitPrint, facts: OutputFacts, sources: Mapping[str, SourceFacts]
) -> Iterator[Difference]:
    """What has happened to the topics of the active generation since it was made."""
    for topic in recreated(active, new, sources):
        cause = f"The topic {topic} was deleted and created again, so its records are not the ones that were read."
        yield Difference(Category.RECREATED_SOURCE, topic, cause)
    output = new.nodes[-1]
    for topic in (new.output, dead_letter_topic(new.output), *new.sides):
        if topic in active.topics and facts.topics.get(topic) != active.topics[topic]:
            again = " and created again" if topic in facts.topics else ""
            cause = f"The topic {topic} was deleted{again}, along with everything the output had published there."
            yield Difference(Category.OUTPUT_TOPIC, output.name, cause, output.location)
        elif topic == new.output and new.kind == "table" and (gone := _moved(active, facts)):
            cause = (
                f"The topic {topic} has lost {counted(gone, 'record')} from its beginning; the latest values of some "
                "keys may be gone."
            )
            yield Difference(Category.OUTPUT_TOPIC, output.name, cause, output.location)


def recreated(deployed: Deployed, new: UnitPrint, sources: Mapping[str, SourceFacts]) -> list[str]:
    """Sources that are not the topics that a generation has read."""
    return [
        topic
        for topic in source_topics(new)
        if topic in sources and sources[topic].id and deployed.topics.get(topic, sources[topic].id) != sources[topic].id
    ]


def _moved(active: Deployed, facts: OutputFacts) -> int:
    """How far the beginning of the output's topic has moved on."""
    return sum(max(begin - active.begins.get(number, begin), 0) for number, begin in facts.begins.items())
