"""Steps on the rows of one stream that go by time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from everstate.schema.durations import milliseconds
from everstate.topology.nodes.node import Keying, Node
from everstate.topology.traits import Traits


@dataclass(frozen=True, eq=False, kw_only=True)
class Dedup(Node):
    """Lets the first row of an id pass, and none that lies near it in time.

    Attributes:
        keying: How the id of a row is made.
        within: Rows of one id that are less than this apart are one row.
    """

    operation: ClassVar[str] = "dedup"
    methods: ClassVar[tuple[str, ...]] = ("dedup",)
    traits: ClassVar[Traits] = Traits(
        on_shard=True,
        keeps_state=True,
        scatters=True,
        regroups=True,
        rekeys_input=(0,),
        order_sensitive=True,
        timed=True,
    )
    labelled: ClassVar[frozenset[str]] = frozenset({"within"})
    keying: Keying
    within: str

    @property
    def regrouping(self) -> Keying | None:
        """On the way to the shard of their id."""
        return self.keying

    @cached_property
    def within_ms(self) -> int:
        """In milliseconds."""
        return milliseconds(self.within)
