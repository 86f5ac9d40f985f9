"""Steps of Spark's own at the two ends of a service: what feeds a source's topic, and what an output is delivered to.

They are no nodes: records are on a topic before the service reads them, and on a topic before they are delivered, so no
result, no state and no version of an output depends on what Spark does there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from everstate.formats.descriptions import Format
    from everstate.location import Location
    from everstate.schema.keys import KeySpec
    from everstate.schema.schema import Schema
    from everstate.topology.functions import Function
    from everstate.topology.nodes import Kind, OnChange


@dataclass(frozen=True, eq=False, kw_only=True)
class SparkStep:
    """A function of the user's that works on Spark's data frames, and the topic at its end.

    Attributes:
        topic: The topic.
        function: The function.
        kind: Whether the topic is a stream or a table.
        key: The key's columns.
        schema: The value's columns, as they are on the topic.
        format: The value's format.
        on_change: What follows where the function has changed.
        location: Where it was declared.
    """

    #: The method that declares it; also the beginning of its names.
    word: ClassVar[str]
    topic: str
    function: Function
    kind: Kind
    key: KeySpec
    schema: Schema
    format: Format
    on_change: OnChange
    location: Location | None

    @property
    def name(self) -> str:
        """Unique in a service."""
        return f"{self.word}:{self.topic}"

    @property
    def call(self) -> str:
        """What errors and plans call it."""
        return f"{self.word}({self.function.name})"


@dataclass(frozen=True, eq=False, kw_only=True)
class Feed(SparkStep):
    """`.from_spark()`: a streaming data frame whose rows become records of a source's topic.

    Attributes:
        partitions: Of the topic, if it has to be created.
    """

    word: ClassVar[str] = "from_spark"
    partitions: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Delivery(SparkStep):
    """`.to_spark()`: a function that is given what an output has published, batch by batch."""

    word: ClassVar[str] = "to_spark"
