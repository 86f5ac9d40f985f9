"""The end of a unit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from everstate.topology.nodes.node import Kind, Node, Side
from everstate.topology.traits import Need, Traits

if TYPE_CHECKING:
    from everstate.formats.descriptions import Format
    from everstate.schema.keys import KeySpec
    from everstate.schema.schema import Schema
    from everstate.schema.windowed_keys import WindowedKeys


@dataclass(frozen=True, eq=False, kw_only=True)
class Output(Node):
    """What `.to()` declares: the unit of versioning.

    Attributes:
        topic: Where it goes; also the output's name.
        format: How its values are written.
        partitions: Partitions of the topic if it must be created; None takes the most of the sources.
        windows: Its keys are those of windows, and are written as Kafka Streams does; None for Everstate's own.
        routes: By the name of a processor's side, the topic that its rows go to.
    """

    operation: ClassVar[str] = "output"
    methods: ClassVar[tuple[str, ...]] = ("to",)
    traits: ClassVar[Traits] = Traits(on_shard=True, need=Need.LATEST)
    topic: str
    format: Format
    partitions: int | None
    routes: tuple[tuple[str, str], ...] = ()
    windows: WindowedKeys | None = None

    @property
    def topic_key(self) -> KeySpec:
        """The key as it is written on its topic."""
        return replace(self.key, windows=self.windows)

    @property
    def sides(self) -> tuple[Side, ...]:
        """The topics of sides: streams, so what they have published stands."""
        return tuple(Side(topic, Kind.STREAM) for _, topic in self.routes)

    @property
    def endpoint(self) -> str:
        """The topic."""
        return self.topic

    @property
    def record(self) -> Schema:
        """The columns of the record's value: without the key, unless it was selected."""
        return self.schema if self.key_in_value else self.values
