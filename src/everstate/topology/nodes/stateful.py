"""Functions that keep state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from everstate.topology.nodes.node import Node
from everstate.topology.traits import Traits

if TYPE_CHECKING:
    from everstate.topology.functions import Function


@dataclass(frozen=True, eq=False, kw_only=True)
class Stateful(Node):
    """A Python function on each row of a stream, with the state of the row's key.

    Attributes:
        mode: "apply" (the result is the row), "filter" (the result says whether it stays), "update" (the row is changed
            in place and the result is ignored).
        migrate: state of a key in the version before -> state; changes no result, so it is no part of the fingerprint.
    """

    operation: ClassVar[str] = "stateful"
    methods: ClassVar[tuple[str, ...]] = ("apply", "filter", "update")
    traits: ClassVar[Traits] = Traits(
        on_shard=True,
        keeps_state=True,
        order_sensitive=True,
        own_state=True,
        fills_defaults=True,
        declares_columns=True,
        converts=True,
    )
    mode: str
    fn: Function
    migrate: Function | None = None

    @property
    def converter(self) -> Function | None:
        """The user's `migrate`."""
        return self.migrate
