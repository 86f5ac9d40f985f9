"""Stream-table and stream-global joins: rows of a stream with the row of a table that there is when they arrive.

The table's changes of a micro-batch come first, then its rows look up what they refer to. A micro-batch that repeats
several live ones runs step by step (`kernels/steps.py`), so that each row meets the table that it has met live.

A row that refers to nothing has no partner: an inner join drops and counts it, a left join passes it with an empty
right side, as Kafka Streams does. A result has the time and the position of the stream's row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import polars as pl

from everstate.kernels.changes import shaped
from everstate.kernels.keying import key_parts
from everstate.kernels.operations import table_records
from everstate.kernels.operations.kernel import StateKernel
from everstate.kernels.operations.pairs import FOREIGN, LEFT, RIGHT, columns_of, prefixed, results
from everstate.kernels.records.keys import encode_keys
from everstate.kernels.rows import CONTRIBUTION, KEY, OP, ORDER, STREAM_TIME, SYSTEM, empty
from everstate.topology.nodes.lookups import HistoryJoin, StreamGlobalJoin, StreamTableForeignJoin, StreamTableJoin

if TYPE_CHECKING:
    from everstate.kernels.ledger import Ledger
    from everstate.kernels.pages.page_store import KeyedStore
    from everstate.kernels.shard import Shard

Lookup: TypeAlias = StreamTableJoin | StreamTableForeignJoin | StreamGlobalJoin | HistoryJoin


def prepare(
    node: StreamTableForeignJoin, port: int, rows: pl.DataFrame, ledger: Ledger, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Rows on their way to the shard of the row to which they refer; those of the table are there.

    Returns:
        The rows with what they refer to in `$foreign`, their own key in `$ck`, and in `$key` where they go: without
        a reference they stay with their own key.
    """
    del emit_moves
    return rows if port else moved(node, rows, ledger)


def prepare_everywhere(
    node: StreamGlobalJoin, port: int, rows: pl.DataFrame, ledger: Ledger, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Rows of the stream as they are; records of the table in the shape of their source, also where there are none."""
    del node, ledger, emit_moves
    return table_records.as_records(rows) if port else rows


def on_key(
    node: StreamTableJoin, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Join a micro-batch's rows with the table's row of their key.

    Args:
        node: The node.
        number: Under which it keeps its state.
        inputs: The stream's rows, and the table's changes.
        shard: Holds the table's rows.
        emit_moves: Makes no difference: rows of a stream do not move.
    """
    del emit_moves
    store = shard.keyed(number)
    _follow(node, store, inputs[1])
    return _met(node, inputs[0].with_columns(pl.col(KEY).alias(FOREIGN)), store, shard.ledger)


def by_reference(
    node: StreamTableForeignJoin, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Join a micro-batch's rows with the table's row to which they refer; as `on_key`."""
    del emit_moves
    store = shard.keyed(number)
    _follow(node, store, inputs[1])
    return _met(node, inputs[0].with_columns(pl.col(CONTRIBUTION).alias(KEY)), store, shard.ledger)


def everywhere(
    node: StreamGlobalJoin, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Join a micro-batch's rows with the row of the global table to which they refer.

    Args:
        node: The node.
        number: Under which it keeps its state.
        inputs: The stream's rows, and the records of the table's topic.
        shard: Holds all rows of the table.
        emit_moves: Makes no difference: rows of a stream do not move.
    """
    del emit_moves
    store = shard.keyed(number)
    _follow(node, store, table_records.changed_in(store, node.inputs[1], inputs[1], RIGHT))
    return _met(node, referring(node, inputs[0], shard.ledger), store, shard.ledger)


def moved(node: StreamTableForeignJoin | HistoryJoin, rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """Rows that go where the row lies to which they refer; without a reference they stay with their own key."""
    rows = referring(node, rows, ledger)
    return rows.with_columns(pl.col(KEY).alias(CONTRIBUTION), pl.coalesce(FOREIGN, KEY).alias(KEY))


def referring(
    node: StreamTableForeignJoin | StreamGlobalJoin | HistoryJoin, rows: pl.DataFrame, ledger: Ledger
) -> pl.DataFrame:
    """The rows with the key to which they refer in `$foreign`; null where they refer to nothing."""
    rows, parts = key_parts(node.keying, rows, ledger, node)
    return rows.with_columns(encode_keys(parts, node.keying.key).alias(FOREIGN))


def arriving(node: Lookup, rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """The rows that can be joined: of an inner join those that refer to something."""
    if node.how != "inner":
        return rows
    there = rows[FOREIGN].is_not_null()
    ledger.drop("null_key", int((~there).sum()))
    return rows.filter(there)


def _follow(node: Lookup, store: KeyedStore, changes: pl.DataFrame) -> None:
    """Bring the table's rows up to date."""
    if changes.height:
        added = prefixed(changes.filter(pl.col(OP) > 0), node.inputs[1], RIGHT)
        store.apply(added, changes.select(KEY).unique().join(added, on=KEY, how="anti")[KEY])


def _met(node: Lookup, rows: pl.DataFrame, store: KeyedStore, ledger: Ledger) -> pl.DataFrame:
    """What the join makes of the rows, which name in `$foreign` what they refer to."""
    rows = arriving(node, rows, ledger)
    if rows.is_empty():
        return empty(node.schema.polars)
    wanted = rows.select(pl.col(FOREIGN).alias(KEY)).drop_nulls().unique()
    right = {KEY: SYSTEM[KEY], **columns_of(node.inputs[1], RIGHT)}
    held = shaped(store.lookup(wanted), right).rename({KEY: FOREIGN})
    return put_together(node, left_side(node, rows).join(held, on=FOREIGN, how="left", maintain_order="left"), ledger)


def left_side(node: Lookup, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows as one side of pairs, with the key columns of the result."""
    left = node.inputs[0]
    sided = (pl.col(name).alias(LEFT + name) for name in (*ORDER, *left.values.names))
    keys = (pl.col(one).alias(new) for one, new in zip(left.key.names, node.key.names, strict=True))
    return rows.select(KEY, FOREIGN, STREAM_TIME, *sided, *keys)


def put_together(node: Lookup, pairs: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """The rows of a stream that the join makes of pairs: at the time and the position of the stream's row."""
    met = results(node, pairs, ledger, op=1, times=(LEFT, LEFT)).with_columns(pl.lit(1, pl.Int8).alias(OP))
    return met.select(*SYSTEM, *node.schema.names)


KERNELS: Final = {
    StreamTableJoin: StateKernel(on_key),
    StreamTableForeignJoin: StateKernel(by_reference, prepare=prepare),
    StreamGlobalJoin: StateKernel(everywhere, prepare=prepare_everywhere),
}
