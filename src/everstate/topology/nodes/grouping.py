"""Steps that bring rows together under another key."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final

from everstate.topology.nodes.node import Keying, Node
from everstate.topology.traits import Need, Traits

if TYPE_CHECKING:
    import polars as pl

    from everstate.topology.aggregates import Leaf
    from everstate.topology.functions import Function


#: What they have in common.
_GROUPING: Final = Traits(
    on_shard=True, keeps_state=True, regroups=True, rekeys_input=(0,), need=Need.LATEST, holds_results=True
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Grouping(Node):
    """A step whose rows get another key on their way in.

    Attributes:
        keying: How that key is made from a row.
    """

    keying: Keying

    @property
    def regrouping(self) -> Keying | None:
        """On the way in."""
        return self.keying


@dataclass(frozen=True, eq=False, kw_only=True)
class RekeyTable(Grouping):
    """Gives the rows of a table another key; of several old keys the highest (timestamp, old key) wins."""

    operation: ClassVar[str] = "rekey"
    methods: ClassVar[tuple[str, ...]] = ("rekey",)
    traits: ClassVar[Traits] = replace(_GROUPING, orders_rows=True)


@dataclass(frozen=True, eq=False, kw_only=True)
class Aggregate(Grouping):
    """`group_by().agg()`.

    Attributes:
        leaves: The aggregate calls inside the user's expressions, each with its input.
        results: The user's named expressions, over the columns of the leaves.
    """

    operation: ClassVar[str] = "aggregate"
    methods: ClassVar[tuple[str, ...]] = ("agg",)
    traits: ClassVar[Traits] = replace(_GROUPING, accumulates=True)
    leaves: tuple[Leaf, ...]
    results: tuple[tuple[str, pl.Expr], ...]

    @property
    def orders_rows(self) -> bool:
        """Where one of its calls does."""
        return any(leaf.orders_rows for leaf in self.leaves)


@dataclass(frozen=True, eq=False, kw_only=True)
class Fold(Grouping):
    """`group_by().reduce()` and `group_by().aggregate()`: the user's own add and, optionally, remove.

    Attributes:
        init: Makes the first aggregate; None for a reduce, which starts with the first value.
        add: (aggregate, row) -> aggregate.
        remove: (aggregate, row) -> aggregate; without it a table's contributions are folded again in key order.
        migrate: aggregate of the version before -> aggregate; changes no result, so it is no part of the fingerprint.
    """

    operation: ClassVar[str] = "aggregate"
    methods: ClassVar[tuple[str, ...]] = ("reduce", "aggregate")
    traits: ClassVar[Traits] = replace(_GROUPING, accumulates=True, order_sensitive=True, converts=True)
    init: Function | None
    add: Function
    remove: Function | None
    migrate: Function | None = None

    @property
    def converter(self) -> Function | None:
        """The user's `migrate`."""
        return self.migrate
