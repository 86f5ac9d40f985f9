"""Steps that put the rows of two streams together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from everstate.schema.durations import milliseconds
from everstate.topology.nodes.node import Node
from everstate.topology.traits import Traits

if TYPE_CHECKING:
    from everstate.topology.functions import Function


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamJoin(Node):
    """Stream-stream join on the key, of rows that lie near each other in time.

    A right row belongs to a left one if its time is at most `before` earlier and at most `after` later.

    Attributes:
        how: "inner", "left" or "outer".
        before: How much earlier the right row may be.
        after: How much later.
        grace: How long after that a row is waited for.
        joiner: Makes the value from both sides' values; without it the columns of both are put side by side.
        renamed: (right column, name in the result), for the joins without a joiner.
    """

    operation: ClassVar[str] = "stream join"
    methods: ClassVar[tuple[str, ...]] = ("join",)
    traits: ClassVar[Traits] = Traits(on_shard=True, keeps_state=True, timed=True, semantics=2)
    labelled: ClassVar[frozenset[str]] = frozenset({"how", "before", "after", "grace"})
    how: str
    before: str
    after: str
    grace: str
    joiner: Function | None
    renamed: tuple[tuple[str, str], ...]

    @property
    def gives_later(self) -> bool:
        """A pair comes with its second row and has the position of the later one; others come out when given up."""
        return True

    @property
    def shares_positions(self) -> bool:
        """A row's pairs have its position, and its partners may come one after the other."""
        return True

    @cached_property
    def before_ms(self) -> int:
        """How much earlier the right row may be."""
        return milliseconds(self.before)

    @cached_property
    def after_ms(self) -> int:
        """How much later."""
        return milliseconds(self.after)

    @cached_property
    def closes_ms(self) -> tuple[int, int]:
        """From a left and from a right row to the stream time at which no partner can come any longer."""
        grace = milliseconds(self.grace) + 1
        return self.after_ms + grace, self.before_ms + grace
