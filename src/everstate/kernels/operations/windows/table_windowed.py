"""Windows of fixed bounds over a table: rows get their windows, and the aggregation does the rest.

A window is one more part of the group, so a change retracts the old row from its windows and adds the new one to its
own, as `group_by().agg()` does with groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.kernels.expressions import evaluate
from everstate.kernels.keying import rekeyed
from everstate.kernels.operations.aggregate import aggregate
from everstate.kernels.operations.aggregate.accumulators import AggregatePlan
from everstate.kernels.operations.aggregate.groups import combined
from everstate.kernels.operations.fold import fold
from everstate.kernels.operations.kernel import StateKernel
from everstate.kernels.operations.windows.assign import BEGIN, bounded, placed
from everstate.kernels.reasons import BEFORE_1970
from everstate.kernels.rows import OP
from everstate.kernels.stream_time import timely
from everstate.topology.nodes import TableWindowAggregate, TableWindowFold

if TYPE_CHECKING:
    from everstate.kernels.ledger import Ledger
    from everstate.topology.nodes import TableWindowed

#: When a row happened, in milliseconds.
AT: Final = "$at"


def dated(node: TableWindowed, rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """Rows with their time. One that has none is dropped and counted, as one without a group is."""
    rows, found = evaluate(rows, [node.time.alias(AT)], ledger, node)
    times = found[AT] if found[AT].dtype.is_integer() else found[AT].dt.timestamp("ms")
    if times.dtype in (pl.UInt64, pl.Int128, pl.UInt128):  # of which not all would fit
        times = times.clip(upper_bound=pl.Series([2**63 - 1], dtype=times.dtype))
    rows = rows.with_columns(times.cast(pl.Int64))
    absent = rows[AT].is_null()
    if absent.any():
        ledger.drop("null_time", int((absent & (rows[OP] > 0)).sum()))
        rows = rows.filter(~absent)
    return timely(node, rows, ledger, time=AT, early=BEFORE_1970)


def prepare_aggregate(
    node: TableWindowAggregate, port: int, rows: pl.DataFrame, ledger: Ledger, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Give rows their windows and the leaves' inputs; combine them where that is all there is to send."""
    del port
    plan = AggregatePlan.of(node, ordered=emit_moves)
    rows = aggregate.with_inputs(node, plan, dated(node, rows, ledger), ledger)
    rows = _assigned(node, rekeyed(node.keying, rows, ledger, node))
    return aggregate.sendable(node, plan, rows) if plan.kept else combined(plan, rows, node.key.names)


def prepare_fold(
    node: TableWindowFold, port: int, rows: pl.DataFrame, ledger: Ledger, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Give rows their windows."""
    del port, emit_moves
    rows = rekeyed(node.keying, fold.with_inputs(node, dated(node, rows, ledger)), ledger, node)
    return fold.sendable(node, _assigned(node, rows))


def _assigned(node: TableWindowed, rows: pl.DataFrame) -> pl.DataFrame:
    return bounded(node, placed(node, rows, pl.col(AT)), pl.col(BEGIN), pl.col(BEGIN) + node.size_ms)


KERNELS: Final = {
    TableWindowAggregate: StateKernel(aggregate.update, prepare=prepare_aggregate, table=aggregate.table, settled=True),
    TableWindowFold: StateKernel(fold.update, prepare=prepare_fold, table=fold.table),
}
