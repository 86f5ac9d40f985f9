"""What every node has: it points at its inputs, and its class says what the operation is.

A node says what it takes, what it gives (kind, key, columns) and where the user wrote it. It does nothing: the kernels
say what happens to rows, and `unit.py` says where.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Literal, Self, TypeAlias

from everstate.topology.traits import Need, Traits

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from everstate.location import Location
    from everstate.schema.keys import KeySpec
    from everstate.schema.schema import Schema
    from everstate.schema.windowed_keys import WindowedKeys
    from everstate.topology.functions import Function
    from everstate.topology.nodes.processor import Exit


#: What a new version of an output does about the results so far.
OnChange: TypeAlias = Literal["recalculate", "continue", "migrate"]


class Kind(StrEnum):
    """What flows out of a node."""

    STREAM = "stream"
    TABLE = "table"


@dataclass(frozen=True)
class Side:
    """A further topic of an output: what goes there is committed together with the output's own records.

    Attributes:
        topic: The topic.
        kind: A table is compared and corrected when a new version takes over; what a stream has published stands.
    """

    topic: str
    kind: Kind


@dataclass(frozen=True, eq=False)
class Keying:
    """How a new key is made: expressions by name, or one function.

    Attributes:
        key: Names and types of the new key.
        by: One expression for each part of the key; empty where a function makes it.
        fn: The function, if there is one.
    """

    key: KeySpec
    by: tuple[pl.Expr, ...] = ()
    fn: Function | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Node:
    """One step. Nodes are compared by identity: a chain that is used twice is one node with two users.

    Attributes:
        inputs: The nodes that feed this one, by port; a source has none.
        kind: Whether rows or changes of a table come out.
        key: Names and types of the key.
        schema: The user's columns; the key columns are always among them, whatever was selected.
        key_in_value: The user selected a key column, so output values repeat it.
        location: Where the user wrote it.
    """

    #: The word for it; part of fingerprints, as is the name that is made of it.
    operation: ClassVar[str] = ""
    #: What users type to get it; the reference has an entry for each.
    methods: ClassVar[tuple[str, ...]] = ()
    #: The command that makes it, where no method does.
    command: ClassVar[str] = ""
    #: Fields that mean nothing without their name, so plans show `size=5m` and not `5m`.
    labelled: ClassVar[frozenset[str]] = frozenset()
    #: What the operation is; what depends on how it is used here, the properties tell.
    traits: ClassVar[Traits] = Traits()
    inputs: tuple[Node, ...]
    kind: Kind
    key: KeySpec
    schema: Schema
    key_in_value: bool = False
    location: Location | None = None

    @property
    def verb(self) -> str:
        """What the user wrote."""
        return self.operation

    @property
    def endpoint(self) -> str:
        """The topic that it reads or writes; empty for a step in between."""
        return ""

    @property
    def sides(self) -> tuple[Side, ...]:
        """The further topics that it writes to."""
        return ()

    @property
    def topic_key(self) -> KeySpec:
        """The key as it is written on its topic."""
        return self.key

    @property
    def window_keys(self) -> WindowedKeys | None:
        """How Kafka Streams would write its keys; None if they are not those of windows."""
        kept = len(self.inputs) > 0 and not self.traits.regroups and self.inputs[0].key == self.key
        return self.inputs[0].window_keys if kept else None

    @property
    def values(self) -> Schema:
        """The columns that are not the key."""
        return self.schema.without(self.key.names)

    @property
    def record(self) -> Schema:
        """The columns that a record of it has; of a step that neither reads nor writes any, those of its rows."""
        return self.schema

    @property
    def converter(self) -> Function | None:
        """The user's function that converts what an earlier version has stored."""
        return None

    @property
    def need(self) -> Need:
        """What it needs of the past of what feeds it."""
        return self.traits.need if all(feeder.kind is Kind.TABLE for feeder in self.inputs) else Need.ALL

    @property
    def orders_rows(self) -> bool:
        """Whether it orders rows by time and position."""
        return self.traits.orders_rows

    @property
    def order_sensitive(self) -> bool:
        """Whether results depend on the order in which rows arrive: changes of a table undo what they replace."""
        return self.traits.order_sensitive and any(feeder.kind is Kind.STREAM for feeder in self.inputs)

    @property
    def timed(self) -> bool:
        """Whether stream time alone can change its results."""
        return self.traits.timed

    @property
    def clocked(self) -> bool:
        """Whether the wall clock alone can change its results."""
        return self.traits.clocked

    @property
    def gives_later(self) -> bool:
        """Whether it may give a row in a later micro-batch than that of the row's position."""
        return False

    @property
    def shares_positions(self) -> bool:
        """Whether rows of one position and time may come in different micro-batches, so that neither orders them."""
        return False

    @property
    def versions(self) -> tuple[Node, str] | None:
        """The records that a table's values come from and for how long they count, if it knows what it was before."""
        return None

    @property
    def tick_ms(self) -> int:
        """How often it has to look at the wall clock, if it goes by that and there are no records."""
        return 1000

    @property
    def exits(self) -> tuple[Exit, ...]:
        """The ways out beside its own rows."""
        return ()

    @property
    def regrouping(self) -> Keying | None:
        """How its rows get another key; None if they keep theirs."""
        return None

    def rekeys_input(self, port: int) -> bool:
        """Whether rows on this port get another key on their way in."""
        return port in self.traits.rekeys_input

    def when_final(self, produced: Mapping[str, Node]) -> Node | None:
        """The same with each result of a window once, when it is final; None if no window is behind it.

        Args:
            produced: What the service publishes, by topic: a table that is read back from there comes from it.
        """
        if self.traits.on_shard or len(self.inputs) != 1:
            return None
        feeder = self.inputs[0].when_final(produced)
        return None if feeder is None else replace(self, inputs=(feeder,))

    def silenced(self) -> Self:
        """The same step without its side effect."""
        return self

    def traits_here(self) -> Traits:
        """What the operation is where it stands."""
        return replace(
            self.traits,
            need=self.need,
            orders_rows=self.orders_rows,
            order_sensitive=self.order_sensitive,
            timed=self.timed,
            clocked=self.clocked,
        )


def feeders_first(output: Node) -> list[Node]:
    """The nodes that lead to an output, feeders first, each once.

    Iterative, since a chain may be longer than Python's recursion limit.
    """
    found: dict[int, Node] = {}
    stack: list[tuple[Node, bool]] = [(output, False)]
    while stack:
        node, entered = stack.pop()
        if id(node) in found:
            continue
        if entered:
            found[id(node)] = node
        else:
            stack.append((node, True))
            stack.extend((feeder, False) for feeder in reversed(node.inputs))
    return list(found.values())
