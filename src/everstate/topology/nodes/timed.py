"""Steps on the rows of one stream or table that go by time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from everstate.schema.durations import milliseconds
from everstate.topology.nodes.node import Keying, Node
from everstate.topology.traits import Need, Traits


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


@dataclass(frozen=True, eq=False, kw_only=True)
class Expire(Node):
    """Deletes the rows of keys that have been quiet for a time.

    Attributes:
        after: How long a key is quiet before its row goes.
        clock: Which clock says so: "event" is the stream time of what feeds it, "wall" the recorded clock.
    """

    operation: ClassVar[str] = "expire"
    methods: ClassVar[tuple[str, ...]] = ("expire",)
    traits: ClassVar[Traits] = Traits(
        on_shard=True,
        keeps_state=True,
        orders_rows=True,  # a record that repeats its value is a sign of life
        timed=True,
        clocked=True,
        clocked_by_tables=True,
        need=Need.LATEST,
    )
    labelled: ClassVar[frozenset[str]] = frozenset({"after"})
    after: str
    clock: str

    @property
    def timed(self) -> bool:
        """By the clock that was chosen."""
        return self.clock == "event"

    @property
    def clocked(self) -> bool:
        """By the other one."""
        return self.clock == "wall"

    @cached_property
    def after_ms(self) -> int:
        """In milliseconds."""
        return milliseconds(self.after)


@dataclass(frozen=True, eq=False, kw_only=True)
class Suppress(Node):
    """Holds the changes of a table back.

    Attributes:
        until: For how long, by the stream time of what feeds it; None for as long as there is room.
        max_keys: Of how many keys at the most; None for all.
        when_full: What happens if there are more: "emit" lets the oldest out, "fail" stops the output.
    """

    operation: ClassVar[str] = "suppress"
    methods: ClassVar[tuple[str, ...]] = ("suppress",)
    traits: ClassVar[Traits] = Traits(
        on_shard=True,
        keeps_state=True,
        timed=True,
        clocked_by_tables=True,
        holds_back=True,
        need=Need.LATEST,
    )
    labelled: ClassVar[frozenset[str]] = frozenset({"until", "max_keys", "when_full"})
    until: str | None
    max_keys: int | None
    when_full: str

    @cached_property
    def until_ms(self) -> int | None:
        """In milliseconds."""
        return None if self.until is None else milliseconds(self.until)
