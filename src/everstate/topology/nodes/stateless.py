"""Steps that see each row alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from everstate.topology.functions import Function
from everstate.topology.nodes.node import Keying, Node
from everstate.topology.traits import Need, Traits

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False, kw_only=True)
class Filter(Node):
    """Keeps the rows for which the predicate is true, and none of `unless` (the earlier ones of a `branch`)."""

    operation: ClassVar[str] = "filter"
    methods: ClassVar[tuple[str, ...]] = ("filter", "branch")
    traits: ClassVar[Traits] = Traits(need=Need.LATEST)
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
    methods: ClassVar[tuple[str, ...]] = ("select", "with_columns", "rename", "drop")
    traits: ClassVar[Traits] = Traits(need=Need.LATEST)
    word: str
    columns: tuple[pl.Expr, ...]
    renamed: tuple[tuple[str, str], ...] = ()

    @property
    def verb(self) -> str:
        """Which of these the user wrote."""
        return self.word


@dataclass(frozen=True, eq=False, kw_only=True)
class Map(Node):
    """A Python function on each row.

    Attributes:
        fn: The function.
        in_place: It changes the row it is given, and its result is ignored (`update`).
    """

    operation: ClassVar[str] = "map"
    methods: ClassVar[tuple[str, ...]] = ("map", "update")
    traits: ClassVar[Traits] = Traits(need=Need.LATEST, declares_columns=True)
    fn: Function
    in_place: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class FlatMap(Node):
    """A Python function that gives any number of rows for one; streams only."""

    operation: ClassVar[str] = "flat_map"
    methods: ClassVar[tuple[str, ...]] = ("flat_map",)
    traits: ClassVar[Traits] = Traits(declares_columns=True)
    fn: Function


@dataclass(frozen=True, eq=False, kw_only=True)
class Peek(Node):
    """A Python function for its side effect; rows pass unchanged."""

    operation: ClassVar[str] = "peek"
    methods: ClassVar[tuple[str, ...]] = ("peek",)
    traits: ClassVar[Traits] = Traits(need=Need.LATEST, passes=True)
    fn: Function

    def silenced(self) -> Self:
        """Rows pass, and nothing else happens."""
        return replace(self, fn=_SILENT)


def _nothing(_row: object) -> None:
    """Takes the place of a side effect."""


_SILENT = Function(_nothing, "nothing", None)


@dataclass(frozen=True, eq=False, kw_only=True)
class RekeyStream(Node):
    """Gives the rows of a stream another key."""

    operation: ClassVar[str] = "rekey"
    methods: ClassVar[tuple[str, ...]] = ("rekey",)
    traits: ClassVar[Traits] = Traits(scatters=True, regroups=True)
    keying: Keying

    @property
    def regrouping(self) -> Keying | None:
        """On the way out."""
        return self.keying


@dataclass(frozen=True, eq=False, kw_only=True)
class Merge(Node):
    """The rows of several streams of one schema."""

    operation: ClassVar[str] = "merge"
    methods: ClassVar[tuple[str, ...]] = ("merge",)
    traits: ClassVar[Traits] = Traits(scatters=True)
