"""Sessions and sliding windows over a table: contributions are kept by group, and touched groups rebuilt.

A row that changes may part a session, join two of them or move windows, so what a group gives is derived from its rows
as they were and as they are. What differs comes out. Nothing depends on time that passes: no row is ever given up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.kernels.changes import differences, shaped
from everstate.kernels.keying import rekeyed, with_key
from everstate.kernels.operations.aggregate import aggregate, contributions
from everstate.kernels.operations.aggregate.accumulators import AggregatePlan
from everstate.kernels.operations.aggregate.groups import combined
from everstate.kernels.operations.fold import fold, refolding
from everstate.kernels.operations.kernel import StateKernel
from everstate.kernels.operations.windows.assign import BEGIN, bounded
from everstate.kernels.operations.windows.bounds import sessions, sliding
from everstate.kernels.operations.windows.table_windowed import AT, dated
from everstate.kernels.rows import CONTRIBUTION, KEY, OFF, OP, ORDER, PART, STREAM_TIME, SYSTEM, TOPIC, TS, empty
from everstate.topology.nodes import TableRowWindowAggregate, TableRowWindowFold

if TYPE_CHECKING:
    from collections.abc import Callable

    from everstate.kernels.ledger import Ledger
    from everstate.kernels.shard import Shard
    from everstate.topology.nodes import TableWindowed

_ROWS: Final = 0
_PAIR: Final = [KEY, CONTRIBUTION]
_GROUP: Final = "$group"
_END: Final = "$end"


def prepare_aggregate(
    node: TableRowWindowAggregate, port: int, rows: pl.DataFrame, ledger: Ledger, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Give rows their group and the leaves' inputs."""
    del port
    plan = AggregatePlan.of(node, ordered=emit_moves)
    rows = aggregate.with_inputs(node, plan, dated(node, rows, ledger), ledger)
    return _prepared(node, rows, ledger, list(_leaf_inputs(plan)))


def prepare_fold(
    node: TableRowWindowFold, port: int, rows: pl.DataFrame, ledger: Ledger, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Give rows their group."""
    del port, emit_moves
    return _prepared(node, fold.with_inputs(node, dated(node, rows, ledger)), ledger, list(_fold_inputs(node)))


def update_aggregate(
    node: TableRowWindowAggregate, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Bring the groups up to date with a micro-batch; see `_updated`."""
    plan = AggregatePlan.of(node, ordered=emit_moves)

    def results(rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
        sent = aggregate.sendable(node, plan, rows) if plan.kept else combined(plan, rows, node.key.names)
        return aggregate.update(node, number, [sent], shard.passing(ledger), emit_moves=emit_moves)

    return _updated(number, inputs[0], shard, _Inside(node, results, _leaf_inputs(plan), emit_moves=emit_moves))


def update_fold(
    node: TableRowWindowFold, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Bring the groups up to date with a micro-batch; see `_updated`."""

    def results(rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
        return fold.update(node, number, [fold.sendable(node, rows)], shard.passing(ledger), emit_moves=emit_moves)

    return _updated(number, inputs[0], shard, _Inside(node, results, _fold_inputs(node), emit_moves=emit_moves))


@dataclass(frozen=True)
class _Inside:
    """The aggregation inside the windows.

    Attributes:
        node: The node.
        results: What rows give that have the key of their window.
        inputs: The columns that it needs of a row.
        emit_moves: What has only moved in time is a change as well.
    """

    node: TableWindowed
    results: Callable[[pl.DataFrame, Ledger], pl.DataFrame]
    inputs: dict[str, Any]
    emit_moves: bool

    @property
    def stored(self) -> dict[str, pl.DataType]:
        """What is kept of a row."""
        place = {name: SYSTEM[name] for name in ORDER}
        return {KEY: pl.Binary(), CONTRIBUTION: pl.Binary(), AT: pl.Int64(), **place, **self.inputs}


def _leaf_inputs(plan: AggregatePlan) -> dict[str, Any]:
    columns: dict[str, Any] = {a.leaf.input_column: a.dtype for a in plan.accumulators if a.leaf.input is not None}
    return columns | {a.leaf.by_column: a.by_dtype for a in plan.accumulators if a.by_dtype is not None}


def _fold_inputs(node: TableRowWindowFold) -> dict[str, Any]:
    return {refolding.INPUT + name: dtype for name, dtype in node.inputs[0].schema.polars.items()}


def _prepared(node: TableWindowed, rows: pl.DataFrame, ledger: Ledger, inputs: list[str]) -> pl.DataFrame:
    return rekeyed(node.keying, rows, ledger, node).select(*SYSTEM, CONTRIBUTION, AT, *inputs)


def _updated(number: int, rows: pl.DataFrame, shard: Shard, inside: _Inside) -> pl.DataFrame:
    """Change the contributions of groups, and give what that changes about their windows."""
    node = inside.node
    if rows.is_empty():
        return empty(dict(node.schema.polars))
    store = shard.multi(number, _ROWS)
    held = shaped(store.lookup(rows.select(KEY).unique(maintain_order=True)), inside.stored)
    added = shaped(rows.filter(pl.col(OP) > 0), inside.stored)
    gone = rows.filter(pl.col(OP) < 0).select(_PAIR)
    live = contributions.changed(held, added, gone)
    store.apply(added, gone.join(added, on=_PAIR, how="anti"))
    was, is_ = _windows(node, held), _windows(node, live)
    earlier, later = shard.ledger.apart(), shard.ledger.apart()
    before, after = _results(inside, was, earlier), _results(inside, is_, later)
    place = [TOPIC, PART, OFF]
    newly = later.letters().unique(place, keep="first", maintain_order=True)
    shard.ledger.take(newly.join(earlier.letters(), on=place, how="anti", maintain_order="left"), node)
    latest = rows.select(pl.col(KEY).alias(_GROUP), *ORDER).sort(*ORDER).unique(_GROUP, keep="last")
    causes = was.select(KEY, _GROUP).unique(KEY).join(latest, on=_GROUP).drop(_GROUP)
    return differences(before, after, node.schema.names, causes=causes, moves=inside.emit_moves)


def _windows(node: TableWindowed, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of groups once for each of their windows, under its key; `$group` is the key that they had."""
    rows = rows.sort(KEY, AT, *ORDER, CONTRIBUTION)
    places: list[int] = []
    begins: list[int] = []
    ends: list[int] = []
    start = 0
    for part in rows.partition_by(KEY, maintain_order=True):
        times = part[AT].to_list()
        # A row of a table is never late: as if its own time were all that is known of time.
        found = sessions(times, node.size_ms) if node.session else sliding(times, times, node.size_ms, 0)
        for (begin, end), members in found.members.items():
            places += [start + member for member in members]
            begins += [begin] * len(members)
            ends += [end] * len(members)
        start += part.height
    windowed = with_key(rows[pl.Series(places, dtype=pl.UInt32)], node.keying.key).with_columns(
        pl.col(KEY).alias(_GROUP),
        pl.Series(BEGIN, begins, dtype=pl.Int64),
        pl.Series(_END, ends, dtype=pl.Int64),
    )
    return bounded(node, windowed, pl.col(BEGIN), pl.col(_END))


def _results(inside: _Inside, rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """The results of windows, one row each."""
    if rows.is_empty():
        return empty(dict(inside.node.schema.polars))
    whole = rows.with_columns(pl.lit(1, pl.Int8).alias(OP), pl.col(TS).alias(STREAM_TIME))
    return inside.results(whole, ledger)


KERNELS: Final = {
    TableRowWindowAggregate: StateKernel(update_aggregate, prepare=prepare_aggregate),
    TableRowWindowFold: StateKernel(update_fold, prepare=prepare_fold),
}
