"""Joins with tables that only one side drives, or that every shard has whole."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from everstate.schema.durations import milliseconds
from everstate.topology.nodes.node import Keying, Node
from everstate.topology.traits import Need, Traits

if TYPE_CHECKING:
    from everstate.topology.functions import Function


@dataclass(frozen=True, eq=False, kw_only=True)
class _Lookup(Node):
    """Rows of a stream with the row of a table that there is when they arrive; changes of the table drive nothing.

    Attributes:
        how: "inner" or "left".
        joiner: Makes the value from both sides' values; without it the columns of both are put side by side.
        renamed: (right column, name in the result), for the joins without a joiner.
    """

    labelled: ClassVar[frozenset[str]] = frozenset({"how"})
    how: str
    joiner: Function | None
    renamed: tuple[tuple[str, str], ...]

    @property
    def need(self) -> Need:
        """Of the table it needs what it has last; what rows have met before, they have met."""
        return self.traits.need


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamTableJoin(_Lookup):
    """Stream-table join on the key."""

    operation: ClassVar[str] = "stream-table join"
    methods: ClassVar[tuple[str, ...]] = ("join",)
    traits: ClassVar[Traits] = Traits(
        on_shard=True, keeps_state=True, looked_up=(1,), order_sensitive=True, need=Need.LATEST
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamTableForeignJoin(_Lookup):
    """Stream-table join of what a row refers to with the table's key; the row keeps its own key.

    Attributes:
        keying: How the table's key is made from a row.
    """

    operation: ClassVar[str] = "stream-table foreign-key join"
    methods: ClassVar[tuple[str, ...]] = ("join",)
    traits: ClassVar[Traits] = Traits(
        on_shard=True,
        keeps_state=True,
        scatters=True,
        regroups=True,
        rekeys_input=(0,),
        looked_up=(1,),
        refers=True,
        order_sensitive=True,
        need=Need.LATEST,
    )
    keying: Keying

    @property
    def regrouping(self) -> Keying | None:
        """The stream's, on its way to the shard of the table's row."""
        return self.keying


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamGlobalJoin(_Lookup):
    """Stream-table join with a table that every shard has whole, so that rows stay where they are.

    Attributes:
        keying: How the table's key is made from a row.
    """

    operation: ClassVar[str] = "stream-global join"
    methods: ClassVar[tuple[str, ...]] = ("join",)
    traits: ClassVar[Traits] = Traits(
        on_shard=True,
        keeps_state=True,
        regroups=True,
        looked_up=(1,),
        everywhere=(1,),
        refers=True,
        order_sensitive=True,
        need=Need.LATEST,
    )
    keying: Keying

    @property
    def regrouping(self) -> Keying | None:
        """By what rows refer to the table; they keep their key and their place."""
        return self.keying


@dataclass(frozen=True, eq=False, kw_only=True)
class HistoryJoin(_Lookup):
    """Stream-table join of what a row refers to with the value that its key had at the time of the row.

    The right input are the records of the table's topic.

    Attributes:
        keying: How the table's key is made from a row.
        history: For how long earlier values are known.
        grace: How long a row waits for values that come late.
    """

    operation: ClassVar[str] = "stream-history join"
    methods: ClassVar[tuple[str, ...]] = ("join",)
    traits: ClassVar[Traits] = Traits(
        on_shard=True,
        keeps_state=True,
        scatters=True,
        regroups=True,
        rekeys_input=(0,),
        looked_up=(1,),
        refers=True,
        order_sensitive=True,
        timed=True,
    )
    labelled: ClassVar[frozenset[str]] = frozenset({"how", "history", "grace"})
    keying: Keying
    history: str
    grace: str

    @property
    def regrouping(self) -> Keying | None:
        """The stream's, on its way to the shard of the table's records."""
        return self.keying

    @property
    def gives_later(self) -> bool:
        """Rows that wait come out when they have waited."""
        return self.grace_ms > 0

    @cached_property
    def history_ms(self) -> int:
        """For how long earlier values are known, in milliseconds."""
        return milliseconds(self.history)

    @cached_property
    def grace_ms(self) -> int:
        """How long a row waits, in milliseconds."""
        return milliseconds(self.grace)


@dataclass(frozen=True, eq=False, kw_only=True)
class TableGlobalJoin(Node):
    """Table-table join of what a left row refers to with the key of a table that every shard has whole.

    Attributes:
        how: "inner" or "left".
        keying: How the right table's key is made from a left row.
        joiner: Makes the value from both sides' values; without it the columns of both are put side by side.
        renamed: (right column, name in the result), for the joins without a joiner.
    """

    operation: ClassVar[str] = "table-global join"
    methods: ClassVar[tuple[str, ...]] = ("join",)
    traits: ClassVar[Traits] = Traits(
        on_shard=True,
        keeps_state=True,
        regroups=True,
        everywhere=(1,),
        refers=True,
        need=Need.LATEST,
    )
    how: str
    keying: Keying
    joiner: Function | None
    renamed: tuple[tuple[str, str], ...]

    @property
    def regrouping(self) -> Keying | None:
        """By what rows refer to the table; they keep their key and their place."""
        return self.keying
