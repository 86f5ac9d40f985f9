"""Aggregations of a table by group and window of time, by a column.

Rows of a table may be corrected whenever they like, so none is late and no window is ever final: a change takes the old
row out of its windows and adds the new one to its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final

from everstate.topology.nodes.grouping import Aggregate, Fold
from everstate.topology.nodes.windows import Spanned
from everstate.topology.traits import Need, Traits

if TYPE_CHECKING:
    import polars as pl

_FIXED: Final = Traits(
    on_shard=True,
    keeps_state=True,
    regroups=True,
    rekeys_input=(0,),
    need=Need.LATEST,
    holds_results=True,
    accumulates=True,
)
#: Rows of a group make its windows, so they are brought to the shard of the group; what is kept is rows, not results.
_OF_ROWS: Final = replace(_FIXED, scatters=True, holds_results=False)


@dataclass(frozen=True, eq=False, kw_only=True)
class TableWindowed(Spanned):
    """Windows of a table.

    Attributes:
        time: When a row happened. A change has the time of its cause, by which it would leave the wrong window.
    """

    time: pl.Expr


@dataclass(frozen=True, eq=False, kw_only=True)
class TableWindowAggregate(TableWindowed, Aggregate):
    """`group_by().window(..., time=...).agg()` on a table."""

    operation: ClassVar[str] = "windowed aggregate"
    methods: ClassVar[tuple[str, ...]] = ("window",)
    traits: ClassVar[Traits] = _FIXED


@dataclass(frozen=True, eq=False, kw_only=True)
class TableWindowFold(TableWindowed, Fold):
    """`group_by().window(..., time=...).reduce()` and `.aggregate()` on a table: rows are kept and folded again."""

    operation: ClassVar[str] = "windowed aggregate"
    methods: ClassVar[tuple[str, ...]] = ("window",)
    traits: ClassVar[Traits] = _FIXED


@dataclass(frozen=True, eq=False, kw_only=True)
class TableRowWindowAggregate(TableWindowed, Aggregate):
    """`group_by().window(es.session(...), time=...).agg()` on a table, and with `es.sliding`."""

    operation: ClassVar[str] = "windowed aggregate"
    methods: ClassVar[tuple[str, ...]] = ("window",)
    traits: ClassVar[Traits] = _OF_ROWS


@dataclass(frozen=True, eq=False, kw_only=True)
class TableRowWindowFold(TableWindowed, Fold):
    """`group_by().window(es.session(...), time=...).reduce()` and `.aggregate()` on a table."""

    operation: ClassVar[str] = "windowed aggregate"
    methods: ClassVar[tuple[str, ...]] = ("window",)
    traits: ClassVar[Traits] = _OF_ROWS
