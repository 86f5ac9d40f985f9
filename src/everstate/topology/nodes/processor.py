"""A function with named states and timers, and where it sends what does not go to the output's own topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias

from everstate.schema.durations import milliseconds
from everstate.topology.nodes.node import Node
from everstate.topology.traits import Traits

if TYPE_CHECKING:
    from everstate.formats.descriptions import Format
    from everstate.schema.keys import KeySpec
    from everstate.schema.schema import Schema
    from everstate.topology.functions import Function

#: What the context of a processor has itself, so that no state can be called like it.
TAKEN: Final = frozenset({"cancel", "close", "due", "forward", "key", "now", "stream_time", "time", "timer"})
#: What a processor can keep of a key under one name.
Shape: TypeAlias = Literal["value", "list", "map"]


@dataclass(frozen=True)
class KeptState:
    """A named state of a processor, as `es.value`, `es.list_` and `es.map_` declare it.

    Attributes:
        shape: One value, a list of them, or values by text.
        name: What the processor calls it.
        schema: What a value, an item or an entry is.
        ttl: How long after it was written it is seen; None for ever.
    """

    shape: Shape
    name: str
    schema: Schema
    ttl: str | None = None

    @property
    def stored_as(self) -> str:
        """What it is called in what is stored: a list is never read as the value that had its name before."""
        return f"{self.shape}:{self.name}"

    @property
    def ttl_ms(self) -> int | None:
        """In milliseconds."""
        return None if self.ttl is None else milliseconds(self.ttl)

    @property
    def meaning(self) -> list[object]:
        """What can change results."""
        return [self.shape, self.schema.to_json(), self.ttl]

    def __str__(self) -> str:
        ttl = "" if self.ttl is None else f", ttl={self.ttl}"
        held = self.schema.fields[0].type if self.schema.scalar else self.schema
        return f"{self.name}: {self.shape} of {held}{ttl}"


@dataclass(frozen=True)
class Exit:
    """A named way out of a processor beside its own rows.

    Attributes:
        name: What the processor calls it.
        schema: The columns of its rows, those of the key among them.
    """

    name: str
    schema: Schema


@dataclass(frozen=True, eq=False)
class Routed:
    """A side as it is on its topic.

    Attributes:
        key: Names and types of the key.
        record: The columns of a record's value.
        format: How values are written.
    """

    key: KeySpec
    record: Schema
    format: Format = "json"

    @property
    def topic_key(self) -> KeySpec:
        """The key as it is written."""
        return self.key


@dataclass(frozen=True, eq=False, kw_only=True)
class Process(Node):
    """A Python function on each row of a stream, with named states of the row's key, timers and several ways out.

    Attributes:
        fn: (row, context) -> a row, or None for none.
        on_timer: (context) -> the same, when a timer is due; None if there are no timers.
        states: What it keeps of a key.
        exits: The ways out beside its own rows.
        wall_clock: Its timers may go by the wall clock.
    """

    operation: ClassVar[str] = "process"
    methods: ClassVar[tuple[str, ...]] = ("process",)
    traits: ClassVar[Traits] = Traits(
        on_shard=True,
        keeps_state=True,
        order_sensitive=True,
        timed=True,
        clocked=True,
        own_state=True,
        declares_columns=True,
    )
    labelled: ClassVar[frozenset[str]] = frozenset({"wall_clock"})
    fn: Function
    on_timer: Function | None = None
    states: tuple[KeptState, ...] = ()
    exits: tuple[Exit, ...] = ()
    wall_clock: bool = False

    @property
    def timed(self) -> bool:
        """Timers and lifetimes go by stream time; a function that has neither does not."""
        return self.on_timer is not None or any(state.ttl for state in self.states)

    @property
    def clocked(self) -> bool:
        """Timers may."""
        return self.wall_clock

    @property
    def gives_later(self) -> bool:
        """What a timer sends has the position of the row that set it."""
        return self.on_timer is not None
