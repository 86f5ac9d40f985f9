"""The topics that outputs write to: each has one writer, and one form of keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from everstate.dsl.arguments import one_of, shown
from everstate.errors import DefinitionError, NameClashError, UnsupportedError
from everstate.errors.calls import suggestion
from everstate.schema.topic_names import check_topic_name
from everstate.topology.nodes import Kind
from everstate.topology.unit import Unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.location import Location
    from everstate.schema.windowed_keys import WindowedKeys
    from everstate.topology.nodes import Node, Output

#: How the keys of windows are written.
KeyFormat: TypeAlias = Literal["text", "kafka-windowed"]


def routes(unit: Unit, given: object | None) -> tuple[tuple[str, str], ...]:
    """Which topic each side of the processors before an output goes to.

    Args:
        unit: The output.
        given: What the user passed as `sides=`: a topic by name, None for a side that goes nowhere.

    Raises:
        DefinitionError: If a side is left out or unknown, or the output is a table, which may be corrected.
    """
    location = unit.output.location
    declared = [side.name for node in unit.nodes for side in node.exits]
    if given is not None and not isinstance(given, Mapping):
        raise DefinitionError(
            f"sides={shown(given)} is not a dict of topics", location=location, hint="sides={'audit': 'alarm-audit'}"
        )
    named: Mapping[Any, Any] = given or {}
    _require_all(declared, named, location)
    found = tuple((side, topic) for side, topic in sorted(named.items()) if topic is not None)
    for _, topic in found:
        check_topic_name(topic, location=location)
    if found and unit.output.kind is Kind.TABLE:
        raise UnsupportedError(
            "a table is corrected when a new version takes over, and what a side has published stands: they cannot be "
            "one output",
            location=location,
            hint="Publish the processor's rows first, .to('topic', sides=...), and build on what that returns.",
        )
    return found


def _require_all(declared: list[str], named: Mapping[Any, Any], location: Location | None) -> None:
    """Each side has its place, and each place its side."""
    for name, times in Counter(declared).items():
        if times > 1:
            raise NameClashError(
                f"two processors have a side named {name!r}", location=location, hint="Give one of them another name."
            )
        if name not in named:
            raise DefinitionError(
                f"the side {name!r} of the processor goes nowhere",
                location=location,
                hint=f"Give it a topic: .to('topic', sides={{{name!r}: 'topic-{name}'}}); None leaves it out.",
            )
    for side in named:
        if side not in declared:
            there = f"Processors before this output have: {', '.join(declared) or 'none'}."
            raise DefinitionError(
                f"there is no side {shown(side)}", location=location, hint=f"{suggestion(side, declared)}{there}"
            )


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


def written_windows(node: Node, key_format: object, location: Location | None) -> WindowedKeys | None:
    """How an output writes the keys of windows; None as all other keys.

    Raises:
        DefinitionError: If Kafka Streams' form is asked for, and the keys are not those of windows.
    """
    one_of("key_format", key_format, get_args(KeyFormat), location)
    if key_format == "text":
        return None
    if node.window_keys is None:
        raise DefinitionError(
            'key_format="kafka-windowed" needs keys of windows, and these are not',
            location=location,
            hint="Write the results of .window(...) to a topic directly, without another key in between.",
        )
    return node.window_keys


def require_no_cycle(service: str, outputs: Sequence[Output]) -> None:
    """Refuse that the last of these outputs feeds itself.

    Raises:
        DefinitionError: If it does.
    """
    units = [Unit.of(service, output) for output in outputs]
    feeds = {topic: unit.topics for unit in units for topic in unit.written}
    waiting, seen = list(feeds[outputs[-1].topic]), set()
    while waiting:
        topic = waiting.pop()
        if topic in units[-1].written:
            raise DefinitionError(
                f"output {outputs[-1].topic!r} would feed itself",
                location=outputs[-1].location,
                hint="A topic cannot be both an input and an output of the same chain; write to another topic.",
            )
        if topic not in seen:
            seen.add(topic)
            waiting.extend(feeds.get(topic, ()))
