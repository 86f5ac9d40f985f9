"""Which topics a generation has to do with: by their ids, since a name may come to mean another topic."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from everstate.errors import LogError, TopicNotFoundError, TopicRecreatedError
from everstate.topology.nodes import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from everstate.generations.generation import Generation
    from everstate.log.protocol import Log
    from everstate.topology.unit import Unit


_GONE: Final = (
    "It was deleted while an output used it. If that was a mistake, restore the log from a copy; otherwise create it "
    "again and start the service: everstate plan SERVICE.py says what would happen."
)


def topic_marks(unit: Unit, log: Log) -> dict[str, Any]:
    """What a generation of an output that is made now remembers of its topics."""
    output = unit.output.topic
    names = [topic for topic in (*unit.topics, *unit.written) if log.has_topic(topic)]
    begins = log.begin_offsets([output])[output] if output in names else {}
    return {"topics": log.topic_ids(names), "begins": begins}


def output_marks(generation: Generation, unit: Unit, log: Log) -> dict[str, Any]:
    """The same for a generation that was made before: it is compared with the output's topics as they are now."""
    marks = topic_marks(unit, log)
    sources = {topic: known for topic, known in generation.topics.items() if topic in unit.topics}
    return {"topics": {**marks["topics"], **sources}, "begins": marks["begins"]}


def adopted(generation: Generation, unit: Unit, log: Log) -> Generation:
    """A generation that knows all its topics: those of which it had not taken notice are taken for the right ones."""
    marks = topic_marks(unit, log)
    if marks["topics"].keys() <= generation.topics.keys():
        return generation
    topics = {**marks["topics"], **generation.topics}
    return replace(generation, topics=topics, begins=generation.begins or marks["begins"])


def require_same_topics(generation: Generation, topics: Iterable[str], log: Log) -> None:
    """Stop before offsets of one topic are taken for those of another.

    Raises:
        TopicRecreatedError: If a topic is not the one that the generation has read.
        TopicNotFoundError: If it is gone.
    """
    require_ids({topic: generation.topics[topic] for topic in topics if topic in generation.topics}, log)


def require_same_partitions(generation: Generation, unit: Unit, log: Log) -> None:
    """Stop before keys of a table go to other partitions than those that hold their rows.

    Raises:
        LogError: If the table's topic has got partitions since the generation began.
    """
    topic = unit.output.topic
    if unit.output.kind is not Kind.TABLE or not generation.begins or not log.has_topic(topic):
        return
    there = log.begin_offsets([topic])[topic]
    if len(there) > len(generation.begins) and log.topic_ids([topic])[topic] == generation.topics.get(topic):
        raise LogError(
            f"topic {topic!r} has {len(there)} partitions now, and had {len(generation.begins)} when its table was "
            "begun: most keys would go to partitions other than those that hold their rows",
            hint="Delete the topic and create it again with the number of partitions that you want; the next run "
            "publishes the whole table there. Its readers have to read it from the beginning.",
        )


def require_ids(ids: Mapping[str, str], log: Log) -> None:
    """Stop if one of these topics is gone, or is not the one it was.

    Raises:
        TopicRecreatedError: If it was deleted and created again.
        TopicNotFoundError: If it was deleted.
    """
    try:
        now = log.topic_ids(list(ids))
    except TopicNotFoundError as error:
        raise TopicNotFoundError(error.topic, hint=_GONE) from error
    for topic, known in ids.items():
        if now[topic] != known:
            raise TopicRecreatedError(topic)
