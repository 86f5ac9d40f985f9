"""`.from_spark()` and `.to_spark()`: only directly at a source, and directly at an output."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from everstate.dsl.arguments import one_of, whole_number
from everstate.dsl.functions import function
from everstate.errors import DefinitionError, NameClashError, UnsupportedError
from everstate.topology.nodes import OnChange
from everstate.topology.spark_steps import Delivery, Feed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from everstate.dsl.service import Service
    from everstate.location import Location
    from everstate.topology.nodes import Node, Output, Source

_CHANGES = tuple(word for word in get_args(OnChange) if word != "migrate")


class SparkSteps:
    """The steps of Spark's own of one service, and the nodes at which there can be one.

    Attributes:
        feeds: By topic, what feeds it.
        deliveries: By topic, what it is delivered to.
    """

    def __init__(self) -> None:
        self.feeds: dict[str, Feed] = {}
        self.deliveries: dict[str, Delivery] = {}
        self._read: dict[Node, Source] = {}
        self._written: dict[Node, Output] = {}

    def read(self, node: Node, source: Source) -> None:
        """A node that reads a topic from outside."""
        self._read[node] = source

    def written(self, node: Node, output: Output) -> None:
        """A node that reads an output back."""
        if output.topic in self.feeds:
            raise _fed_by_both(output.topic, output.location)
        self._written[node] = output

    def feed(
        self,
        service: Service,
        node: Node,
        fn: Callable[..., Any],
        options: Mapping[str, Any],
        location: Location | None,
    ) -> None:
        """Declare what feeds a source.

        Raises:
            DefinitionError: If it cannot be fed.
        """
        called = function(fn, "from_spark(spark)", location)
        source = self._read.get(node)
        if source is None:
            raise UnsupportedError(
                "from_spark() belongs directly to a source that this service reads",
                location=location,
                hint="Write it before any other step: app.stream('orders', key='id', schema={...}).from_spark(f)",
            )
        topic = source.topic
        if topic in self.feeds:
            raise _twice("from_spark", topic, self.feeds[topic].location, location)
        if any(topic in unit.written for unit in service.units()):
            raise _fed_by_both(topic, location)
        whole_number("partitions", options["partitions"], location)
        one_of("on_change", options["on_change"], _CHANGES, location)
        self.feeds[topic] = Feed(
            topic=topic,
            function=called,
            kind=node.kind,
            key=source.key,
            schema=source.declared,
            format=source.format,
            location=location,
            partitions=options["partitions"],
            on_change=options["on_change"],
        )

    def deliver(self, node: Node, fn: Callable[..., Any], on_change: OnChange, location: Location | None) -> None:
        """Declare what an output is delivered to.

        Raises:
            DefinitionError: If it is no output, or has such a step already.
        """
        called = function(fn, "to_spark(frame, batch_id)", location)
        output = self._written.get(node)
        if output is None:
            raise UnsupportedError(
                "to_spark() belongs directly to an output",
                location=location,
                hint="Publish the rows first, then hand them to Spark: .to('totals').to_spark(f)",
            )
        if output.topic in self.deliveries:
            raise _twice("to_spark", output.topic, self.deliveries[output.topic].location, location)
        one_of("on_change", on_change, _CHANGES, location)
        self.deliveries[output.topic] = Delivery(
            topic=output.topic,
            function=called,
            kind=output.kind,
            key=output.key,
            schema=output.record,
            format=output.format,
            location=location,
            on_change=on_change,
        )


def _twice(word: str, topic: str, known: Location | None, location: Location | None) -> DefinitionError:
    hint = {
        "from_spark": "Read both in one function: first.unionByName(second).",
        "to_spark": "Write to both places in one function.",
    }
    return NameClashError(f"topic {topic!r} already has {word}() at {known}", location=location, hint=hint[word])


def _fed_by_both(topic: str, location: Location | None) -> DefinitionError:
    return NameClashError(
        f"topic {topic!r} is an output of this service, so from_spark() cannot write to it, too",
        location=location,
        hint="Give one of them a topic of its own.",
    )
