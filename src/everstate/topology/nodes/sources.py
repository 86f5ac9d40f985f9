"""Where rows come from: the records of a topic, and the table that they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from everstate.topology.nodes.node import Node
from everstate.topology.traits import Need, Traits

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from everstate.formats.descriptions import Format
    from everstate.schema.keys import KeySpec
    from everstate.schema.schema import Schema
    from everstate.schema.windowed_keys import WindowedKeys


@dataclass(frozen=True, eq=False, kw_only=True)
class Source(Node):
    """Records of a topic, decoded. `Latest` turns them into a table.

    Attributes:
        topic: The topic.
        format: "json", "string" or "bytes".
        declared: The schema as the user gave it; it may name the key column, and then the value may repeat the key.
        time: When a row happened, as an expression; None takes the record's timestamp.
        on_missing_time: What becomes of a row for which it gives none: "record" takes the record's timestamp all the
            same; None makes it a dead letter.
        idle_after: After how long a partition without new records is passed over; None for never.
        windows: The keys on the topic are those of windows as Kafka Streams writes them; None for Everstate's own.
    """

    operation: ClassVar[str] = "source"
    methods: ClassVar[tuple[str, ...]] = ("stream", "table", "global_table")
    traits: ClassVar[Traits] = Traits(scatters=True)
    labelled: ClassVar[frozenset[str]] = frozenset({"on_missing_time", "idle_after"})
    topic: str
    format: Format
    declared: Schema
    time: pl.Expr | None = None
    on_missing_time: str | None = None
    idle_after: str | None = None
    windows: WindowedKeys | None = None

    @property
    def topic_key(self) -> KeySpec:
        """The key as it is written on its topic."""
        return replace(self.key, windows=self.windows)

    @property
    def window_keys(self) -> WindowedKeys | None:
        """Those of its topic."""
        return self.windows

    @property
    def endpoint(self) -> str:
        """The topic."""
        return self.topic

    @property
    def record(self) -> Schema:
        """The columns as the user declared them."""
        return self.declared

    def when_final(self, produced: Mapping[str, Node]) -> Node | None:
        """What the service publishes there, with final results alone."""
        maker = produced.get(self.topic)
        return None if maker is None else maker.when_final(produced)


@dataclass(frozen=True, eq=False, kw_only=True)
class LatestByTime(Node):
    """A table source that goes by time: keeps of each key the value with the highest time, whatever arrived last.

    Attributes:
        history: For how long earlier values are known to joins that ask for them; None for not at all.
    """

    operation: ClassVar[str] = "versioned table"
    methods: ClassVar[tuple[str, ...]] = ("table",)
    traits: ClassVar[Traits] = Traits(on_shard=True, keeps_state=True, holds_source=True, holds_results=True)
    labelled: ClassVar[frozenset[str]] = frozenset({"history"})
    history: str | None = None

    @property
    def versions(self) -> tuple[Node, str] | None:
        """The records of the topic."""
        return None if self.history is None else (self.inputs[0], self.history)

    def when_final(self, produced: Mapping[str, Node]) -> Node | None:
        """As its source."""
        return self.inputs[0].when_final(produced)


@dataclass(frozen=True, eq=False, kw_only=True)
class Latest(Node):
    """A table source: keeps the latest value of each key; an unchanged value yields nothing."""

    operation: ClassVar[str] = "table"
    methods: ClassVar[tuple[str, ...]] = ("table",)
    traits: ClassVar[Traits] = Traits(
        on_shard=True,
        keeps_state=True,
        need=Need.LATEST,
        holds_source=True,
        holds_results=True,
        fills_defaults=True,
    )

    def when_final(self, produced: Mapping[str, Node]) -> Node | None:
        """As its source."""
        return self.inputs[0].when_final(produced)
