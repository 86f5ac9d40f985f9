"""Sessions whose aggregates can be merged: a row per open session is kept, however many records it has.

Rows and sessions of a group, in order of their beginning, are one session as long as none of them begins more than a
gap after all before it have ended. What a late row joins is merged. Which rows count, and when a session is final, is
as for all windows that rows make (`row_windowed.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.kernels.changes import differences, then_removed
from everstate.kernels.operations.aggregate.groups import combined, merged, sum_columns
from everstate.kernels.operations.aggregate.results import results
from everstate.kernels.operations.windows.assign import BEGIN, bounded, on_time
from everstate.kernels.pages.due_index import DUE, DueIndex
from everstate.kernels.rows import CONTRIBUTION, KEY, OP, STREAM_TIME, SYSTEM, TS, empty
from everstate.kernels.stream_time import require_open

if TYPE_CHECKING:
    from collections.abc import Callable

    from everstate.kernels.operations.aggregate.accumulators import AggregatePlan
    from everstate.kernels.shard import Shard
    from everstate.topology.nodes import RowWindowAggregate, RowWindowed

#: When a session ends, in milliseconds.
LAST_MS: Final = "$end"
_RUN: Final = "$run"
_GROUP: Final = "$group"
#: The store of open sessions by group; entries of what is due lie in slices.
SESSIONS: Final = 0


def update(
    node: RowWindowAggregate, plan: AggregatePlan, number: int, rows: pl.DataFrame, shard: Shard, *, moves: bool
) -> pl.DataFrame:
    """Add rows to the sessions of their groups, then publish and delete what is due.

    Args:
        node: The node.
        plan: How its leaves are kept; none of them needs all rows.
        number: Under which it keeps its state.
        rows: Rows under the key of their group.
        shard: Holds the sessions, and knows how far time has come.
        moves: What has only moved in time is a change as well.
    """
    slices = shard.sliced(number)
    before = slices.reached
    now = before if shard.frontier is None else max(before, shard.frontier)
    index = DueIndex(slices, max(1, node.gone_ms // 4))
    rows = on_time(node, rows, shard.ledger)
    require_open(node, rows[TS] + node.close_ms, before)
    touched = pl.concat([rows[KEY], index.pop(now)]).unique(maintain_order=True).alias(KEY).to_frame()
    slices.reached = now
    if touched.is_empty():
        return empty(dict(node.schema.polars))
    store = shard.multi(number, SESSIONS)
    held = store.lookup(touched)
    sessions = _together(node, plan, rows, held)
    live = sessions.filter(pl.col(LAST_MS) + node.gone_ms > now)
    stays = live.select(KEY, CONTRIBUTION)
    gone = (
        held.join(stays, on=[KEY, CONTRIBUTION], how="anti").select(KEY, CONTRIBUTION) if held.height else stays.clear()
    )
    store.apply(live, gone)
    index.add(due(node, live, now))

    def shown(sessions: pl.DataFrame) -> pl.DataFrame:
        return _results(node, plan, sessions)

    return given(node, shown, (held, sessions), (before, now), moves=moves)


def _together(node: RowWindowAggregate, plan: AggregatePlan, rows: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """The sessions that these rows and sessions make."""
    parts = [rows.select(KEY, BEGIN, pl.col(TS).alias(LAST_MS))]
    if held.height:
        parts.append(held.select(KEY, BEGIN, LAST_MS))
    runs = _runs(pl.concat(parts), node.size_ms)
    bounds = runs.group_by(_RUN).agg(pl.col(KEY).first().alias(_GROUP), pl.col(BEGIN).min(), pl.col(LAST_MS).max())
    of_row = runs.sort("$row")[_RUN].alias(KEY)
    names = node.keying.key.names
    partials = [combined(plan, rows.with_columns(of_row[: rows.height]), names)]
    if held.height:
        partials.append(held.drop(BEGIN, LAST_MS, CONTRIBUTION).with_columns(of_row[rows.height :]))
    found = merged(plan, pl.concat(partials, how="diagonal"), names)
    # A sum that only some of them have a part of is not unknown.
    found = found.with_columns(pl.col(sum_columns(found)).fill_null(0)).join(
        bounds, left_on=KEY, right_on=_RUN, how="left"
    )
    begins = pl.col(BEGIN).cast(pl.String).cast(pl.Binary).alias(CONTRIBUTION)
    return found.with_columns(pl.col(_GROUP).alias(KEY), begins).drop(_GROUP)


def _runs(spans: pl.DataFrame, gap: int) -> pl.DataFrame:
    """Spans of time, each with the number of the session that it is in, and its place."""
    spans = spans.with_row_index("$row").sort(KEY, BEGIN)
    other = (pl.col(KEY) != pl.col(KEY).shift()).fill_null(value=True)
    spans = spans.with_columns(other.alias("$other"), other.cum_sum().alias("$number"))
    ended = pl.col(LAST_MS).cum_max().over("$number").shift()
    first = pl.col("$other") | (pl.col(BEGIN) - ended > gap)
    return spans.with_columns(first.cum_sum().alias(_RUN))


def due(node: RowWindowed, live: pl.DataFrame, now: int) -> pl.DataFrame:
    """When something happens next to each group that has sessions, each with `LAST_MS`."""
    times = pl.concat(
        [live.select(KEY, (pl.col(LAST_MS) + step).alias(DUE)) for step in {node.closes_ms, node.gone_ms}]
    )
    return times.filter(pl.col(DUE) > now).group_by(KEY).agg(pl.col(DUE).min())


def given(
    node: RowWindowed,
    results: Callable[[pl.DataFrame], pl.DataFrame],
    both: tuple[pl.DataFrame, pl.DataFrame],
    span: tuple[int, int],
    *,
    moves: bool,
) -> pl.DataFrame:
    """What comes out: what differs, or what is final; and the end of what was kept for a time.

    Args:
        node: The node.
        results: The rows that sessions give.
        both: The sessions of the groups before and after, each with `LAST_MS`.
        span: How far time had come, and has come now.
        moves: What has only moved in time is a change as well.
    """
    held, sessions = both
    before, now = span
    end = pl.col(LAST_MS)
    if node.final:
        closes = end + node.closes_ms
        found = results(sessions.filter((closes > before) & (closes <= now)))
    else:
        found = differences(results(held), results(sessions), node.schema.names, moves=moves)
    found = found.select(*SYSTEM, *node.schema.names)
    if node.keep is None:
        return found
    return then_removed(found, results(sessions.filter(end + node.gone_ms <= now)))


def _results(node: RowWindowAggregate, plan: AggregatePlan, sessions: pl.DataFrame) -> pl.DataFrame:
    """The results of sessions, one row each."""
    if sessions.is_empty():
        return empty(dict(node.schema.polars))
    groups = bounded(node, sessions, pl.col(BEGIN), pl.col(LAST_MS))
    found = results(node, plan, groups, groups.select(KEY, *node.key.names), None).rows
    return found.with_columns(pl.lit(1, pl.Int8).alias(OP), pl.col(TS).alias(STREAM_TIME))
