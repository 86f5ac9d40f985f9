"""The topics that outputs write to: each has one writer."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from everstate.errors import DefinitionError, NameClashError
from everstate.schema.topic_names import check_topic_name
from everstate.topology.unit import Unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.topology.nodes import Output


def require_own_topics(service: str, output: Output, others: Sequence[Output]) -> None:
    """Refuse an output that writes to a topic of another one, or of its own sources.

    Args:
        service: Name of the service.
        output: The output that is declared.
        others: Those that are declared already.

    Raises:
        NameClashError: If two would write to one topic.
        DefinitionError: If it would read what it writes.
    """
    unit = Unit.of(service, output)
    for topic in unit.written:
        check_topic_name(topic, location=output.location)
    for other in others:
        if output.topic in Unit.of(service, other).written or other.topic in unit.written[:2]:
            raise NameClashError(
                f"output {output.topic!r} is declared twice",
                location=output.location,
                hint=f"It is already declared at {other.location}; give one of them a different topic.",
            )
    sides = Counter(side.topic for node in unit.nodes for side in node.sides)
    taken = {topic: other for other in others for topic in Unit.of(service, other).written}
    taken |= dict.fromkeys(unit.written[:2], output)
    for topic, times in sides.items():
        if topic in unit.topics:
            raise DefinitionError(
                f"output {output.topic!r} would feed itself: it reads {topic!r}, and writes rows there",
                location=output.location,
                hint="Give the rows another topic.",
            )
        if times > 1 or topic in taken:
            where = f"output {taken[topic].topic!r}" if topic in taken else "two steps"
            raise NameClashError(
                f"topic {topic!r} of output {output.topic!r} has another writer: {where}",
                location=output.location,
                hint="Give one of them a different topic. Where one step feeds two outputs, publish it once with "
                ".to('topic'), and build both on what that returns.",
            )
