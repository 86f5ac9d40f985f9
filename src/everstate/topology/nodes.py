"""The description of a service: frozen nodes, each pointing at its inputs.

A node says what it takes, what it gives (kind, key, columns) and where the user wrote it. It does nothing: the kernels
say what happens to rows, and `unit.py` says where.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

if TYPE_CHECKING:
    import polars as pl

    from everstate.topology.aggregates import Leaf
    from everstate.topology.functions import Function
    from everstate.topology.keys import KeySpec
    from everstate.topology.location import Location
    from everstate.topology.schema import Schema


#: What a new version of an output does about the results so far.
OnChange: TypeAlias = Literal["recalculate", "continue", "migrate"]


class Kind(StrEnum):
    """What flows out of a node."""

    STREAM = "stream"
    TABLE = "table"


@dataclass(frozen=True, eq=False, kw_only=True)
class Node:
    """One step. Nodes are compared by identity: a chain that is used twice is one node with two users.

    Attributes:
        inputs: The nodes that feed this one, by port.
        kind: Whether rows or changes of a table come out.
        key: Names and types of the key.
        schema: The user's columns; the key columns are always among them, whatever was selected.
        key_in_value: The user selected a key column, so output values repeat it.
        location: Where the user wrote it.
    """

    #: The word that `describe()` and plans use.
    operation: ClassVar[str] = ""
    #: It keeps state, or must see all rows of a key, so its rows are brought to the shard of their key.
    placed: ClassVar[bool] = False
    inputs: tuple[Node, ...]
    kind: Kind
    key: KeySpec
    schema: Schema
    key_in_value: bool = False
    location: Location | None = None

    @property
    def order_sensitive(self) -> bool:
        """Whether results depend on the order in which rows of several partitions arrive."""
        return False

    @property
    def values(self) -> Schema:
        """The columns that are not the key."""
        return self.schema.without(self.key.names)

    def rekeys(self, port: int) -> bool:
        """Whether rows on this port get another key on their way in."""
        del port
        return False


@dataclass(frozen=True, eq=False, kw_only=True)
class Source(Node):
    """Records of a topic, decoded. `Latest` turns them into a table.

    Attributes:
        topic: The topic.
        format: "json", "string" or "bytes".
        declared: The schema as the user gave it; it may name the key column, and then the value may repeat the key.
    """

    operation: ClassVar[str] = "source"
    topic: str
    format: str
    declared: Schema


@dataclass(frozen=True, eq=False, kw_only=True)
class Latest(Node):
    """A table source: keeps the latest value of each key; an unchanged value yields nothing."""

    operation: ClassVar[str] = "table"
    placed: ClassVar[bool] = True


@dataclass(frozen=True, eq=False, kw_only=True)
class Filter(Node):
    """Keeps the rows for which the predicate is true, and none of `unless` (the earlier ones of a `branch`)."""

    operation: ClassVar[str] = "filter"
    predicate: pl.Expr | Function
    unless: tuple[pl.Expr | Function, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Project(Node):
    """Replaces the columns: `select`, `with_columns`, `rename` and `drop` are all this. The key columns stay.

    Attributes:
        word: Which of these the user wrote.
        columns: Expressions that give all columns but the key's.
        renamed: (old name, new name) of key columns.
    """

    operation: ClassVar[str] = "select"
    word: str
    columns: tuple[pl.Expr, ...]
    renamed: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Map(Node):
    """A Python function on each row.

    Attributes:
        fn: The function.
        in_place: It changes the row it is given, and its result is ignored (`update`).
    """

    operation: ClassVar[str] = "map"
    fn: Function
    in_place: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class FlatMap(Node):
    """A Python function that gives any number of rows for one; streams only."""

    operation: ClassVar[str] = "flat_map"
    fn: Function


@dataclass(frozen=True, eq=False, kw_only=True)
class Peek(Node):
    """A Python function for its side effect; rows pass unchanged."""

    operation: ClassVar[str] = "peek"
    fn: Function


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
class RekeyStream(Node):
    """Gives the rows of a stream another key."""

    operation: ClassVar[str] = "rekey"
    keying: Keying


@dataclass(frozen=True, eq=False, kw_only=True)
class RekeyTable(Node):
    """Gives the rows of a table another key; of several old keys the highest (timestamp, old key) wins."""

    operation: ClassVar[str] = "rekey"
    placed: ClassVar[bool] = True
    keying: Keying

    def rekeys(self, port: int) -> bool:
        """Its one input."""
        del port
        return True


@dataclass(frozen=True, eq=False, kw_only=True)
class Merge(Node):
    """The rows of several streams of one schema."""

    operation: ClassVar[str] = "merge"


@dataclass(frozen=True, eq=False, kw_only=True)
class Aggregate(Node):
    """`group_by().agg()`.

    Attributes:
        keying: How the group is made from a row.
        leaves: The aggregate calls inside the user's expressions, each with its input.
        results: The user's named expressions, over the columns of the leaves.
    """

    operation: ClassVar[str] = "aggregate"
    placed: ClassVar[bool] = True
    keying: Keying
    leaves: tuple[Leaf, ...]
    results: tuple[tuple[str, pl.Expr], ...]

    def rekeys(self, port: int) -> bool:
        """Its one input."""
        del port
        return True


@dataclass(frozen=True, eq=False, kw_only=True)
class Fold(Node):
    """`group_by().reduce()` and `group_by().aggregate()`: the user's own add and, optionally, remove.

    Attributes:
        keying: How the group is made from a row.
        init: Makes the first aggregate; None for a reduce, which starts with the first value.
        add: (aggregate, row) -> aggregate.
        remove: (aggregate, row) -> aggregate; without it a table's contributions are folded again in key order.
        migrate: aggregate of the version before -> aggregate; changes no result, so it is no part of the fingerprint.
    """

    operation: ClassVar[str] = "aggregate"
    placed: ClassVar[bool] = True
    keying: Keying
    init: Function | None
    add: Function
    remove: Function | None
    migrate: Function | None = None

    @property
    def order_sensitive(self) -> bool:
        """On a stream; a table's contributions are folded in key order, or undo each other."""
        return self.inputs[0].kind is Kind.STREAM

    def rekeys(self, port: int) -> bool:
        """Its one input."""
        del port
        return True


@dataclass(frozen=True, eq=False, kw_only=True)
class Join(Node):
    """Table-table join on the key: inner, left or outer.

    Attributes:
        how: "inner", "left" or "outer".
        joiner: Makes the value from both sides' values; without it the columns of both are put side by side.
        renamed: (right column, name in the result), for the joins without a joiner.
    """

    operation: ClassVar[str] = "join"
    placed: ClassVar[bool] = True
    how: str
    joiner: Function | None
    renamed: tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class ForeignJoin(Node):
    """Table-table join of a left column with the right table's key; the result has the left table's key."""

    operation: ClassVar[str] = "foreign-key join"
    placed: ClassVar[bool] = True
    how: str
    keying: Keying
    joiner: Function | None
    renamed: tuple[tuple[str, str], ...]

    def rekeys(self, port: int) -> bool:
        """The left side moves to the shard of its foreign key."""
        return port == 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Stateful(Node):
    """A Python function on each row of a stream, with the state of the row's key.

    Attributes:
        mode: "apply" (the result is the row), "filter" (the result says whether it stays), "update" (the row is changed
            in place and the result is ignored).
        migrate: state of a key in the version before -> state; changes no result, so it is no part of the fingerprint.
    """

    operation: ClassVar[str] = "stateful"
    placed: ClassVar[bool] = True
    mode: str
    fn: Function
    migrate: Function | None = None

    @property
    def order_sensitive(self) -> bool:
        """Always."""
        return True


@dataclass(frozen=True, eq=False, kw_only=True)
class Output(Node):
    """What `.to()` declares: the unit of versioning.

    Attributes:
        topic: Where it goes; also the output's name.
        format: "json", "string" or "bytes".
        partitions: Partitions of the topic if it must be created; None takes the most of the sources.
    """

    operation: ClassVar[str] = "output"
    placed: ClassVar[bool] = True
    topic: str
    format: str
    partitions: int | None

    @property
    def record(self) -> Schema:
        """The columns of the record's value: without the key, unless it was selected."""
        return self.schema if self.key_in_value else self.values
