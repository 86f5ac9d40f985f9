"""Windows that rows make, sessions and sliding ones: the rows of open windows are kept, and touched groups rebuilt.

Whether a row counts, and when a window is final, follows the same rule as for windows of fixed bounds (`windowed.py`).
A row that comes late may join two sessions, or make windows before others, so what a group gives is derived again from
its rows: those that are kept, and those with the new ones. What differs comes out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.kernels.changes import differences, shaped, then_removed
from everstate.kernels.keying import rekeyed
from everstate.kernels.operations.aggregate import aggregate
from everstate.kernels.operations.aggregate.accumulators import AggregatePlan
from everstate.kernels.operations.aggregate.groups import combined
from everstate.kernels.operations.fold import fold, refolding
from everstate.kernels.operations.kernel import StateKernel
from everstate.kernels.operations.windows import merged_sessions
from everstate.kernels.operations.windows.assign import BEGIN, LAST, bounded, carried, dated, on_time
from everstate.kernels.operations.windows.bounds import Windows, sliding
from everstate.kernels.pages.due_index import DUE, DueIndex
from everstate.kernels.positions import position_names
from everstate.kernels.rows import CONTRIBUTION, KEY, OFF, ORDER, PART, STREAM_TIME, SYSTEM, TOPIC, TS, empty
from everstate.kernels.stream_time import require_open
from everstate.topology.nodes import RowWindowAggregate, RowWindowFold
from everstate.topology.nodes.node import feeders_first
from everstate.topology.nodes.windows import END

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from everstate.kernels.ledger import Ledger
    from everstate.kernels.shard import Shard
    from everstate.topology.nodes import RowWindowed

#: The store of rows by group; entries of what is due lie in slices.
_ROWS: Final = 0
#: The key with which a row came: in the store `$ck` tells rows apart.
_FROM: Final = "$from"
_LAST_MS: Final = "$end"


def prepare_aggregate(
    node: RowWindowAggregate, port: int, rows: pl.DataFrame, ledger: Ledger, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Give rows their group and the leaves' inputs."""
    del port
    plan = AggregatePlan.of(node, ordered=emit_moves)
    rows = aggregate.with_inputs(node, plan, dated(node, rows, ledger), ledger)
    return _prepared(node, rows, ledger, _inputs(plan))


def prepare_fold(
    node: RowWindowFold, port: int, rows: pl.DataFrame, ledger: Ledger, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Give rows their group."""
    del port, emit_moves
    return _prepared(node, fold.with_inputs(node, dated(node, rows, ledger)), ledger, _seen(node))


def update_aggregate(
    node: RowWindowAggregate, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Bring the groups up to date with a micro-batch; see `_updated`."""
    plan = AggregatePlan.of(node, ordered=emit_moves)
    if node.session and not plan.kept:
        return merged_sessions.update(node, plan, number, inputs[0], shard, moves=emit_moves)

    def results(rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
        sent = aggregate.sendable(node, plan, rows) if plan.kept else combined(plan, rows, node.key.names)
        return aggregate.update(node, number, [sent], shard.passing(ledger), emit_moves=emit_moves)

    columns = {a.leaf.input_column: a.dtype for a in plan.accumulators if a.leaf.input is not None}
    columns |= {a.leaf.by_column: a.by_dtype for a in plan.accumulators if a.by_dtype is not None}
    return _updated(number, inputs[0], shard, _Inside(node, results, columns, emit_moves=emit_moves))


def update_fold(
    node: RowWindowFold, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Bring the groups up to date with a micro-batch; see `_updated`."""

    def results(rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
        stores = shard.passing(ledger)
        stores.order = None  # all rows are at hand, so stream time alone decides, whenever they were read
        return fold.update(node, number, [fold.sendable(node, rows)], stores, emit_moves=emit_moves)

    feeder = node.inputs[0].schema.polars
    columns = {refolding.INPUT + name: dtype for name, dtype in feeder.items()}
    return _updated(number, inputs[0], shard, _Inside(node, results, columns, emit_moves=emit_moves))


@dataclass(frozen=True)
class _Inside:
    """The aggregation inside the windows.

    Attributes:
        node: The node.
        results: What rows give that have the key of their window.
        inputs: The columns that it needs of a row.
        emit_moves: What has only moved in time is a change as well.
    """

    node: RowWindowed
    results: Callable[[pl.DataFrame, Ledger], pl.DataFrame]
    inputs: dict[str, Any]
    emit_moves: bool

    @property
    def stored(self) -> dict[str, pl.DataType]:
        """What is kept of a row."""
        group = zip(self.node.keying.key.names, self.node.keying.key.dtypes, strict=True)
        return {
            **SYSTEM,
            CONTRIBUTION: pl.Binary(),
            _FROM: pl.Binary(),
            **dict(group),
            **self.inputs,
        }

    @property
    def tied(self) -> list[str]:
        """Columns that order rows of one position, where they may come in different micro-batches."""
        shared = any(before.shares_positions for before in feeders_first(self.node))
        return list(self.inputs) if shared else []


def _inputs(plan: AggregatePlan) -> list[str]:
    return [expression.meta.output_name() for a in plan.accumulators for expression in a.inputs]


def _seen(node: RowWindowFold) -> list[str]:
    return [refolding.INPUT + name for name in node.inputs[0].schema.names]


def _prepared(node: RowWindowed, rows: pl.DataFrame, ledger: Ledger, inputs: list[str]) -> pl.DataFrame:
    """Rows under the key of their group, without those that are too late by their split alone."""
    rows = rekeyed(node.keying, rows, ledger, node)
    rows = rows.with_columns(pl.col(TS).alias(BEGIN), pl.lit(1, pl.Int64).alias(LAST))
    if node.late_to is None:
        rows = on_time(node, rows, ledger)
    more = [name for name in carried(rows) if name != STREAM_TIME]
    return rows.select(*SYSTEM, CONTRIBUTION, *node.keying.key.names, *inputs, *more)


def _updated(number: int, rows: pl.DataFrame, shard: Shard, inside: _Inside) -> pl.DataFrame:
    """Add rows to their groups, then publish, close and delete what is due."""
    node = inside.node
    slices = shard.sliced(number)
    before = slices.reached
    now = before if shard.frontier is None else max(before, shard.frontier)
    index = DueIndex(slices, max(1, node.gone_ms // 4))
    rows = on_time(node, rows, shard.ledger)
    require_open(node, rows[TS] + node.close_ms, before)
    groups = pl.concat([rows[KEY], index.pop(now)]).unique(maintain_order=True).alias(KEY).to_frame()
    slices.reached = now
    if groups.is_empty():
        return empty(dict(node.schema.polars))
    store = shard.multi(number, _ROWS)
    held = shaped(store.lookup(groups), inside.stored)
    new = _stored(inside, rows, held)
    was, _ = _windows(inside, held, before)
    both = pl.concat([held, new])
    is_, both = _windows(inside, both, before)
    live = both.filter(pl.col(_LAST_MS) + node.gone_ms > now)
    gone = held.join(live, on=[KEY, CONTRIBUTION], how="anti").select(KEY, CONTRIBUTION)
    store.apply(live.select(list(inside.stored)), gone)
    index.add(_due(node, live, is_, now))
    return _given(inside, was, is_, (before, now), shard.ledger)


def _stored(inside: _Inside, rows: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """Rows as they are kept; a position is a name that no other row has."""
    named = rows.with_columns(
        pl.col(CONTRIBUTION).alias(_FROM),
        position_names(rows, held).alias(CONTRIBUTION),
    )
    return shaped(named, inside.stored)


def _windows(inside: _Inside, rows: pl.DataFrame, before: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows of windows that are not gone, once for each of their windows; and all rows with what is known of them.

    Returns:
        Rows with `$begin` and `$end` of a window; rows with `$end`, the last that a window of theirs can have.
    """
    node = inside.node
    rows = rows.sort(KEY, *ORDER, *inside.tied, CONTRIBUTION)
    if node.session:
        known = _in_sessions(node, rows)
        return known.filter(pl.col(_LAST_MS) + node.gone_ms > before), known.drop(BEGIN)
    places: list[int] = []
    begins: list[int] = []
    ends: list[int] = []
    last: list[int] = []
    for start, found, times in _by_group(node, rows):
        for (begin, end), members in found.members.items():
            if end + node.gone_ms > before:
                places += [start + member for member in members]
                begins += [begin] * len(members)
                ends += [end] * len(members)
        last += [time + node.size_ms + 1 for time in times]
    windowed = rows[pl.Series(places, dtype=pl.UInt32)].with_columns(
        pl.Series(BEGIN, begins, dtype=pl.Int64), pl.Series(_LAST_MS, ends, dtype=pl.Int64)
    )
    return windowed, rows.with_columns(pl.Series(_LAST_MS, last, dtype=pl.Int64))


def _in_sessions(node: RowWindowed, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows in order of group and time, each with `$begin` and `$end` of the session that it is in."""
    first = ((pl.col(KEY) != pl.col(KEY).shift()) | (pl.col(TS).diff() > node.size_ms)).fill_null(value=True)
    last = first.shift(-1, fill_value=True)
    return rows.with_columns(
        pl.when(first).then(TS).forward_fill().alias(BEGIN),
        pl.when(last).then(TS).backward_fill().alias(_LAST_MS),
    )


def _by_group(node: RowWindowed, rows: pl.DataFrame) -> Iterator[tuple[int, Windows, list[int]]]:
    """The sliding windows of each group, with the place of its first row and the times of all."""
    grace = node.close_ms - node.size_ms - 1
    start = 0
    for part in rows.partition_by(KEY, maintain_order=True):
        times, at = (part[name].to_list() for name in (TS, STREAM_TIME))
        yield start, sliding(times, at, node.size_ms, grace), times
        start += part.height


def _due(node: RowWindowed, live: pl.DataFrame, windows: pl.DataFrame, now: int) -> pl.DataFrame:
    """When something happens next to each group that has rows."""
    steps = sorted({node.closes_ms, node.gone_ms})
    times = [windows.select(KEY, (pl.col(_LAST_MS) + step).alias(DUE)) for step in steps]
    times.append(live.select(KEY, (pl.col(_LAST_MS) + node.gone_ms).alias(DUE)))
    ahead = pl.concat(times).filter(pl.col(DUE) > now).join(live.select(KEY), on=KEY, how="semi")
    return ahead.group_by(KEY).agg(pl.col(DUE).min())


def _given(
    inside: _Inside, was: pl.DataFrame, is_: pl.DataFrame, span: tuple[int, int], ledger: Ledger
) -> pl.DataFrame:
    """What comes out: what differs, or what is final; and the end of what was kept for a time."""
    node, (before, now) = inside.node, span
    nothing = empty(dict(node.schema.polars))
    letters = ledger.apart()
    after = _results(inside, is_, letters)
    failed = letters.letters().unique([TOPIC, PART, OFF], keep="first", maintain_order=True)
    known = was.select(TOPIC, PART, OFF).unique()
    ledger.take(failed.join(known, on=[TOPIC, PART, OFF], how="anti", maintain_order="left"), node)
    end = after[END].dt.timestamp("ms")
    if node.final:
        closes = end + node.closes_ms
        given = after.filter((closes > before) & (closes <= now))
    else:
        earlier = _results(inside, was, ledger.apart())
        given = differences(earlier, after, node.schema.names, moves=inside.emit_moves)
    given = given.select(nothing.columns)
    return given if node.keep is None else then_removed(given, after.filter(end + node.gone_ms <= now))


def _results(inside: _Inside, rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """The results of windows, one row each."""
    node = inside.node
    if rows.is_empty():
        return empty(dict(node.schema.polars))
    keyed = bounded(node, rows, pl.col(BEGIN), pl.col(_LAST_MS)).with_columns(pl.col(_FROM).alias(CONTRIBUTION))
    return inside.results(keyed, ledger)


KERNELS: Final = {
    RowWindowAggregate: StateKernel(update_aggregate, prepare=prepare_aggregate),
    RowWindowFold: StateKernel(update_fold, prepare=prepare_fold),
}
