"""Windowed aggregation: the state of windows in slices of time, and what comes out when one closes.

A window is final when *all* that feeds it has passed its close, after the rows of the micro-batch were applied. Since
each later row has a stream time at or above that, none of them counts in a window that is final: results depend on the
partitions' records alone, not on cuts, tasks or shards. A window that opens and closes within one micro-batch, as in a
recalculation that races through a year, never touches state.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import polars as pl

from everstate.kernels.changes import then_removed
from everstate.kernels.keying import rekeyed
from everstate.kernels.operations.aggregate import aggregate
from everstate.kernels.operations.aggregate.accumulators import AggregatePlan
from everstate.kernels.operations.aggregate.groups import combined, merged
from everstate.kernels.operations.fold import fold
from everstate.kernels.operations.kernel import StateKernel
from everstate.kernels.operations.windows.assign import (
    BEGIN,
    FIRST,
    LAST,
    assigned,
    carried,
    dated,
    on_time,
    panes_of,
    windows_of,
)
from everstate.kernels.rows import COUNT, KEY, OP, STREAM_TIME, SYSTEM, TS, empty
from everstate.kernels.stream_time import require_open
from everstate.topology.nodes import WindowAggregate, WindowFold
from everstate.topology.nodes.windows import START

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from everstate.kernels.ledger import Ledger
    from everstate.kernels.order import Order
    from everstate.kernels.pages.grouped_store import GroupedStore
    from everstate.kernels.pages.page_store import KeyedStore
    from everstate.kernels.pages.slices import Slice
    from everstate.kernels.shard import Shard
    from everstate.topology.nodes import Windowed

_SLICE: Final = "$slice"


def prepare_aggregate(
    node: WindowAggregate, port: int, rows: pl.DataFrame, ledger: Ledger, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Give rows their windows and the leaves' inputs; combine them where that is all there is to send.

    All rows of a frame come from one split, or know their stream time already. So what was combined has one, too: the
    highest of the rows that were in time by their split alone. Raised to that of the partition before the split, it
    tells whether all of them were in time, or none.

    Where windows overlap, rows are combined by *pane* first, which is all that are open to a row: a record is not
    repeated for each of its windows, only what many of them come to.
    """
    del port
    plan = AggregatePlan.of(node, ordered=emit_moves)
    rows = aggregate.with_inputs(node, plan, dated(node, rows, ledger), ledger)
    rows = rekeyed(node.keying, rows, ledger, node)
    if plan.kept or node.late_to is not None:
        rows = assigned(node, rows, ledger)
        return aggregate.sendable(node, plan, rows).hstack(rows[carried(rows)])
    panes = combined(
        plan, panes_of(node, rows, ledger), node.keying.key.names, apart=[FIRST, BEGIN], highest=[STREAM_TIME]
    )
    found = windows_of(node, panes, COUNT)
    if node.size_ms == node.advance_ms:
        return found
    return _merged(plan, found, node.key.names)


def _merged(plan: AggregatePlan, partials: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """What several panes add to a window, as one row."""
    times = partials.group_by(KEY).agg(pl.col(STREAM_TIME).max(), pl.col(BEGIN).first(), pl.col(LAST).sum())
    together = merged(plan, partials, keys)
    return together.drop(STREAM_TIME, BEGIN, LAST, strict=False).join(times, on=KEY, how="left", maintain_order="left")


def prepare_fold(
    node: WindowFold, port: int, rows: pl.DataFrame, ledger: Ledger, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Give rows their windows."""
    del port, emit_moves
    rows = rekeyed(node.keying, fold.with_inputs(node, dated(node, rows, ledger)), ledger, node)
    rows = assigned(node, rows, ledger)
    return fold.sendable(node, rows).hstack(rows[[name for name in carried(rows) if name != STREAM_TIME]])


def update_aggregate(
    node: WindowAggregate, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Bring the windows up to date with a micro-batch; see `_updated`."""
    plan = AggregatePlan.of(node, ordered=emit_moves)
    rows = on_time(node, inputs[0], shard.ledger)
    if node.late_to is not None and not plan.kept:  # rows were sent one by one, to be seen if they are late
        rows = combined(plan, rows, node.key.names).join(
            rows.group_by(KEY).agg(pl.col(BEGIN).first()), on=KEY, how="left", maintain_order="left"
        )
    return _updated(node, number, rows, shard, _Inner(aggregate.update, aggregate.table, emit_moves))


def update_fold(
    node: WindowFold, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Bring the windows up to date with a micro-batch; see `_updated`."""
    rows = on_time(node, inputs[0], shard.ledger)
    return _updated(node, number, rows, shard, _Inner(fold.update, fold.table, emit_moves))


class _Stores(Protocol):
    """What an aggregation asks of a shard."""

    ledger: Ledger
    order: Order | None

    def keyed(self, node: int, slot: int = 0) -> KeyedStore: ...
    def multi(self, node: int, slot: int = 0) -> GroupedStore: ...


@dataclass(frozen=True)
class _Inner:
    """The aggregation inside the windows."""

    update: Callable[..., pl.DataFrame]
    table: Callable[..., pl.DataFrame]
    emit_moves: bool

    def changes(self, node: Windowed, number: int, rows: pl.DataFrame, stores: _Stores) -> pl.DataFrame:
        """What rows change."""
        return self.update(node, number, [rows], stores, emit_moves=self.emit_moves)

    def results(self, node: Windowed, number: int, stores: _Stores) -> pl.DataFrame:
        """The results of all windows of a slice."""
        return self.table(node, number, stores, emit_moves=self.emit_moves)


class _OneSlice:
    """One slice of time as an aggregation sees it: as a shard that has nothing else."""

    def __init__(self, shard: Shard, slice_: Slice) -> None:
        self.ledger = shard.ledger
        self.order = shard.order
        self._slice = slice_

    def keyed(self, node: int, slot: int = 0) -> KeyedStore:
        """A store of one row a key."""
        del node
        return self._slice.keyed(slot)

    def multi(self, node: int, slot: int = 0) -> GroupedStore:
        """A store of many rows a key."""
        del node
        return self._slice.multi(slot)


def _updated(node: Windowed, number: int, rows: pl.DataFrame, shard: Shard, inner: _Inner) -> pl.DataFrame:
    """Apply rows to their windows, then close, publish and delete what is due.

    Args:
        node: The node.
        number: Under which it keeps its state.
        rows: What counts, with `$begin`.
        shard: Holds the slices, and knows how far time has come.
        inner: What is done in each window.
    """
    slices = shard.sliced(number)
    before = slices.reached
    now = before if shard.frontier is None else max(before, shard.frontier)
    require_open(node, rows[BEGIN] + node.close_ms, before)
    over = max(node.close_ms, node.keep_ms or 0)
    nothing = empty(dict(node.schema.polars))
    given, removed = [nothing], [nothing]
    rows = rows.with_columns((pl.col(BEGIN) // node.size_ms).alias(_SLICE))
    # Windows that are over before they were ever stored.
    passing = (rows[BEGIN] + over <= now) & ~rows[_SLICE].is_in(slices.numbers)
    if passing.any():
        changed = inner.changes(node, number, rows.filter(passing).drop(BEGIN, _SLICE), shard.passing())
        given += [changed] if node.keep_ms is None else []
        rows = rows.filter(~passing)
    for (place,), part in sorted(rows.partition_by(_SLICE, as_dict=True).items()):
        changed = inner.changes(node, number, part.drop(BEGIN, _SLICE), _OneSlice(shard, slices[int(place)]))
        given += [] if node.final else [changed]
    for place in slices.numbers:
        due = partial(_due, node, number, place, stores=_OneSlice(shard, slices[place]), inner=inner)
        given += due((before - node.close_ms, now - node.close_ms)) if node.final else []
        removed += due((before - node.keep_ms, now - node.keep_ms)) if node.keep_ms is not None else []
        if _last_begin(node, place) + over <= now:
            slices.drop(place)
    slices.reached = now
    return then_removed(*(pl.concat([frame.select(nothing.columns) for frame in found]) for found in (given, removed)))


def _last_begin(node: Windowed, place: int) -> int:
    """When the last window of a slice begins."""
    return ((place + 1) * node.size_ms - 1) // node.advance_ms * node.advance_ms


def _due(
    node: Windowed, number: int, place: int, span: tuple[int, int], stores: _Stores, inner: _Inner
) -> Iterator[pl.DataFrame]:
    """The results of a slice's windows that begin after the one time, up to the other."""
    first, last = span
    nearest = max(-(-place * node.size_ms // node.advance_ms), first // node.advance_ms + 1) * node.advance_ms
    if nearest > min(last, _last_begin(node, place)):
        return
    found = inner.results(node, number, stores)
    begin = found[START].dt.timestamp("ms")
    found = found.filter((begin > first) & (begin <= last))
    system = {OP: pl.lit(1, pl.Int8).alias(OP), STREAM_TIME: pl.col(TS).alias(STREAM_TIME)}
    yield found.select(*(system.get(name, pl.col(name)) for name in SYSTEM), *node.schema.names)


KERNELS: Final = {
    WindowAggregate: StateKernel(update_aggregate, prepare=prepare_aggregate),
    WindowFold: StateKernel(update_fold, prepare=prepare_fold),
}
