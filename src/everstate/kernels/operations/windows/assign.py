"""To which windows a row belongs, and which of them are closed to it.

A row is judged by its own time and stream time alone, never by what has been read elsewhere or by what state happens to
hold: it counts in a window if the stream time of its partition, at the row, has not reached the window's close. The
sending side knows stream time only from the beginning of its split on, and drops what is late by that; the shard knows
the rest. A row's stream time is the higher of both, so neither has to know what the other has dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.kernels.operations.windows.late import late_records
from everstate.kernels.records.keys import encode_keys
from everstate.kernels.rows import CONTRIBUTION, KEY, ORDER, STREAM_TIME, TS
from everstate.kernels.stream_time import timely
from everstate.topology.nodes.windows import END, START

if TYPE_CHECKING:
    from everstate.kernels.ledger import Ledger
    from everstate.topology.nodes import Spanned, Windowed

#: When a window begins, in milliseconds.
BEGIN: Final = "$begin"
#: When the first window begins that is open to a row, where `$begin` is that of its last.
FIRST: Final = "$first"
#: How many rows have no later window: a row that is too late for its last one is too late for all of them.
LAST: Final = "$last"
#: Prefix of the columns of a row that may turn out to be late.
_ROW: Final = "$late:"
_TIME: Final = pl.Datetime("us", "UTC")


def dated(node: Windowed, rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """Rows that have a time, which those of a record without a timestamp do not."""
    rows = timely(node, rows, ledger)
    if node.late_to is not None:
        rows = rows.with_columns(pl.col(name).alias(_ROW + name) for name in node.inputs[0].schema.names)
    return rows


def assigned(node: Windowed, rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """The rows of groups, one for each window that may still be open to them.

    Args:
        node: The node.
        rows: Rows with the columns of their group.
        ledger: Counts rows that are too late for all windows.

    Returns:
        Rows under the key of group and window, with `$begin` and `$last`.
    """
    rows = placed(node, rows, pl.col(TS))
    if node.late_to is None:
        rows = on_time(node, rows, ledger)
    return bounded(node, rows, pl.col(BEGIN), pl.col(BEGIN) + node.size_ms)


def panes_of(node: Windowed, rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """Rows with the first and the last window that are open to them, without those that are too late for all."""
    first, last = _reach(node, pl.col(TS))
    open_ = ((pl.col(STREAM_TIME) - node.close_ms) // node.advance_ms + 1) * node.advance_ms
    rows = rows.with_columns(pl.max_horizontal(first, open_).alias(FIRST), last.alias(BEGIN))
    late = rows[FIRST] > rows[BEGIN]
    if not late.any():
        return rows
    ledger.drop("late", int(late.sum()))
    return rows.filter(~late)


def windows_of(node: Windowed, panes: pl.DataFrame, count: str) -> pl.DataFrame:
    """What rows of one pane came to, once for each of its windows, under the key of group and window.

    Args:
        node: The node.
        panes: Has the columns of a group, `$first` and `$begin`.
        count: The column that says how many rows a pane has.
    """
    if node.size_ms == node.advance_ms:
        found = panes.with_columns(pl.col(count).alias(LAST)).drop(FIRST)
    else:
        begins = pl.int_ranges(FIRST, pl.col(BEGIN) + 1, node.advance_ms)
        found = panes.with_columns(pl.col(BEGIN).alias(LAST), begins.alias(BEGIN)).drop(FIRST).explode(BEGIN)
        is_last = pl.col(BEGIN) == pl.col(LAST)
        found = found.with_columns(pl.when(is_last).then(pl.col(count)).otherwise(0).alias(LAST))
    return bounded(node, found, pl.col(BEGIN), pl.col(BEGIN) + node.size_ms)


def _reach(node: Spanned, time: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """When the first and the last window of a time begin."""
    size, advance = node.size_ms, node.advance_ms
    first = pl.max_horizontal((time - size) // advance * advance + advance, pl.lit(0, pl.Int64))
    return first, time // advance * advance


def placed(node: Spanned, rows: pl.DataFrame, time: pl.Expr) -> pl.DataFrame:
    """Rows once for each window of fixed bounds that they lie in, with `$begin` and `$last`; their time is given."""
    size, advance = node.size_ms, node.advance_ms
    first, last = _reach(node, time)
    if size == advance:
        return rows.with_columns(last.alias(BEGIN), pl.lit(1, pl.Int64).alias(LAST))
    rows = rows.with_columns(pl.int_ranges(first, last + 1, advance).alias(BEGIN), last.alias(LAST))
    return rows.explode(BEGIN).with_columns((pl.col(BEGIN) == pl.col(LAST)).cast(pl.Int64).alias(LAST))


def bounded(node: Spanned, rows: pl.DataFrame, begin: pl.Expr, end: pl.Expr) -> pl.DataFrame:
    """Rows of groups under the key of group and window; its bounds are milliseconds."""
    rows = rows.with_columns((begin * 1000).cast(_TIME).alias(START), (end * 1000).cast(_TIME).alias(END))
    return rows.with_columns(encode_keys(rows.select(node.key.names), node.key).alias(KEY))


def on_time(node: Windowed, rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """The rows that count in their window; the others are counted, or put on a topic of their own.

    Args:
        node: The node.
        rows: Rows, or what several of them were combined to, with `$begin`, `$last` and stream time.
        ledger: Takes those that are too late for all windows.
    """
    late = rows[STREAM_TIME] >= rows[BEGIN] + node.close_ms
    if not late.any():
        return rows
    missed = rows.filter(late & (rows[LAST] > 0))
    ledger.drop("late", int(missed[LAST].sum()))
    if node.late_to is not None and missed.height:
        names = node.inputs[0].schema.names
        seen = missed.select(
            pl.col(CONTRIBUTION).alias(KEY), *ORDER, *(pl.col(_ROW + name).alias(name) for name in names)
        )
        ledger.aside(node.late_to, late_records(node, seen, _reasons(node, missed), ledger))
    return rows.filter(~late)


def carried(rows: pl.DataFrame) -> list[str]:
    """The columns of rows that nobody but this module needs, and that travel with them."""
    return [STREAM_TIME, BEGIN, LAST, *(name for name in rows.columns if name.startswith(_ROW))]


def _reasons(node: Windowed, missed: pl.DataFrame) -> list[str]:
    """By row, which window it came too late for."""
    ends = (missed[BEGIN] + node.size_ms).cast(pl.Datetime("ms")).dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
    after = f" and its grace of {node.grace} was over" if node.close_ms > node.size_ms else ""
    return [f"late: the window that ended at {end} had closed{after}" for end in ends]
