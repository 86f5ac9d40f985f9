"""Table-table join on the key: inner, left, outer.

Both sides of a key lie in one row of one store, so a change of either side reads and writes one page. A change
re-evaluates the key's pair before and after the micro-batch, and what differs is passed on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.kernels.changes import differences, shaped
from everstate.kernels.keying import with_key
from everstate.kernels.operations.kernel import StateKernel
from everstate.kernels.operations.pairs import CAUSES, LEFT, RIGHT, ROWS, columns_of, later, prefixed, present, results
from everstate.kernels.rows import KEY, OP, ORDER, SYSTEM, empty
from everstate.topology.nodes import Join

if TYPE_CHECKING:
    from everstate.kernels.shard import Shard
    from everstate.topology.nodes import Node


def update(
    node: Join, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Apply a micro-batch's changes of both tables.

    Args:
        node: The node.
        number: Under which it keeps its state.
        inputs: The changes of the left and the right table.
        shard: Holds both sides' rows.
        emit_moves: Pass on results of which only time or position changed.
    """
    if not any(rows.height for rows in inputs):
        return empty(node.schema.polars)
    left, right = node.inputs
    sides = {LEFT: columns_of(left, LEFT), RIGHT: columns_of(right, RIGHT)}
    keys = _touched(node, inputs)
    store = shard.keyed(number)
    held = shaped(store.lookup(keys.select(KEY)), {KEY: SYSTEM[KEY], **sides[LEFT], **sides[RIGHT]})
    before = keys.join(held, on=KEY, how="left", maintain_order="left")
    after = _changed(_changed(before, inputs[0], left, LEFT), inputs[1], right, RIGHT)
    for rows, side, cause in zip(inputs, (LEFT, RIGHT), CAUSES, strict=True):
        after = _caused(after, rows, side, cause)
    kept = present(LEFT) | present(RIGHT)
    store.apply(after.filter(kept).select(KEY, *sides[LEFT], *sides[RIGHT]), after.filter(~kept)[KEY])
    return differences(
        results(node, before, shard.ledger, op=-1),
        results(node, after, shard.ledger, op=1, times=ROWS if emit_moves else CAUSES),
        node.schema.names,
        causes=after.select(KEY, *later(*CAUSES)),
        moves=emit_moves,
    )


def table(node: Join, number: int, shard: Shard, *, emit_moves: bool = False) -> pl.DataFrame:
    """The results of all pairs."""
    del emit_moves
    left, right = node.inputs
    sides = {KEY: SYSTEM[KEY], **columns_of(left, LEFT), **columns_of(right, RIGHT)}
    pairs = with_key(shaped(shard.keyed(number).scan(), sides), node.key)
    return results(node, pairs, shard.ledger, op=-1)


def _touched(node: Join, inputs: list[pl.DataFrame]) -> pl.DataFrame:
    """The keys of a micro-batch, with the result's key columns: both tables' keys have the same bytes."""
    found = [
        rows.select(KEY, *(pl.col(own).alias(name) for own, name in zip(feeder.key.names, node.key.names, strict=True)))
        for rows, feeder in zip(inputs, node.inputs, strict=True)
    ]
    return pl.concat(found).unique(KEY, maintain_order=True)


def _changed(pairs: pl.DataFrame, rows: pl.DataFrame, feeder: Node, prefix: str) -> pl.DataFrame:
    """The pairs with one side brought up to date: retractions first, then additions."""
    if rows.is_empty():
        return pairs
    added = prefixed(rows.filter(pl.col(OP) > 0), feeder, prefix)
    side = added.columns[1:]
    untouched = pairs.join(rows.select(KEY).unique(), on=KEY, how="anti").select(KEY, *side)
    return pairs.drop(side).join(pl.concat([untouched, added]), on=KEY, how="left", maintain_order="left")


def _caused(pairs: pl.DataFrame, rows: pl.DataFrame, side: str, prefix: str) -> pl.DataFrame:
    """Adds what happened last to a side: its row in this micro-batch, be it a retraction, else its row as it is."""
    if rows.is_empty():
        return pairs.with_columns(pl.col(side + name).alias(prefix + name) for name in ORDER)
    last = rows.sort(OP).unique(KEY, keep="last").select(KEY, *(pl.col(name).alias(prefix + name) for name in ORDER))
    return pairs.join(last, on=KEY, how="left", maintain_order="left").with_columns(
        pl.coalesce(prefix + name, side + name).alias(prefix + name) for name in ORDER
    )


KERNELS: Final = {Join: StateKernel(update, table=table)}
