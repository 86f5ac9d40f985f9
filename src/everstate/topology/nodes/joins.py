"""Steps that put the rows of two tables together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from everstate.topology.nodes.node import Keying, Node
from everstate.topology.traits import Need, Traits

if TYPE_CHECKING:
    from everstate.topology.functions import Function


@dataclass(frozen=True, eq=False, kw_only=True)
class Join(Node):
    """Table-table join on the key: inner, left or outer.

    Attributes:
        how: "inner", "left" or "outer".
        joiner: Makes the value from both sides' values; without it the columns of both are put side by side.
        renamed: (right column, name in the result), for the joins without a joiner.
    """

    operation: ClassVar[str] = "join"
    methods: ClassVar[tuple[str, ...]] = ("join",)
    traits: ClassVar[Traits] = Traits(on_shard=True, keeps_state=True, need=Need.LATEST, holds_results=True)
    how: str
    joiner: Function | None
    renamed: tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class ForeignJoin(Node):
    """Table-table join of a left column with the right table's key; the result has the left table's key."""

    operation: ClassVar[str] = "foreign-key join"
    methods: ClassVar[tuple[str, ...]] = ("join",)
    traits: ClassVar[Traits] = Traits(
        on_shard=True,
        keeps_state=True,
        scatters=True,
        regroups=True,
        rekeys_input=(0,),
        refers=True,
        need=Need.LATEST,
    )
    how: str
    keying: Keying
    joiner: Function | None
    renamed: tuple[tuple[str, str], ...]

    @property
    def regrouping(self) -> Keying | None:
        """The left side's, on its way to the shard of its foreign key."""
        return self.keying
