"""Table source that goes by time: keeps of each key the value with the highest time, and yields old and new.

A record counts if none of its key that has come before is newer by time, partition and offset. That holds for
deletions, too, so they are stored like values: an older value that comes late must not bring a row back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.kernels.changes import CAUSE, differences, shaped
from everstate.kernels.keying import with_key
from everstate.kernels.operations.kernel import StateKernel
from everstate.kernels.operations.latest import prepare
from everstate.kernels.operations.table_records import BY_TIME
from everstate.kernels.rows import KEY, ORDER, PLACE, TOMBSTONE, TS, empty
from everstate.topology.nodes import LatestByTime

if TYPE_CHECKING:
    from everstate.kernels.shard import Shard

_NONE: Final = pl.Series(KEY, [], dtype=pl.Binary)


def update(
    node: LatestByTime, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Apply the records of a micro-batch.

    Args:
        node: The node.
        number: Under which it keeps its state.
        inputs: Decoded records with `$tombstone`; a tombstone has its key columns.
        shard: Holds the newest record of each key, deletions among them.
        emit_moves: Pass on records that repeat the value.
    """
    if inputs[0].is_empty():
        return empty(node.schema.polars)
    records = inputs[0].sort(*BY_TIME).unique(KEY, keep="last", maintain_order=True)
    store = shard.keyed(number)
    held = shaped(store.lookup(records[[KEY]]), _stored(node))
    records = newer(records, held)
    old = held.filter(~pl.col(TOMBSTONE)).join(
        records[[KEY, *node.key.names]], on=KEY, how="inner", maintain_order="left"
    )
    store.apply(records.select(*_stored(node)), _NONE)
    new = records.filter(~pl.col(TOMBSTONE))
    return differences(old, new, node.schema.names, causes=records[[KEY, *CAUSE]], moves=emit_moves)


def newer(records: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """The records that are newer than what is stored for their key."""
    if held.is_empty():
        return records
    stored = held.select(KEY, *(pl.col(name).alias(f"$held:{name}") for name in BY_TIME))
    both = records.join(stored, on=KEY, how="left", maintain_order="left")
    comes_after = pl.lit(value=False)
    for name in reversed(BY_TIME):
        mine, theirs = pl.col(name), pl.col(f"$held:{name}")
        comes_after = (mine > theirs) | ((mine == theirs) & comes_after)
    return both.filter(pl.col(f"$held:{TS}").is_null() | comes_after).select(records.columns)


def table(node: LatestByTime, number: int, shard: Shard, *, emit_moves: bool = False) -> pl.DataFrame:
    """The rows that are stored and not deleted."""
    del emit_moves
    rows = shaped(shard.keyed(number).scan(), _stored(node)).filter(~pl.col(TOMBSTONE)).drop(TOMBSTONE)
    return with_key(rows, node.key)


def _stored(node: LatestByTime) -> dict[str, pl.DataType]:
    """What is kept of a key."""
    columns = {name: PLACE[name] for name in (KEY, *ORDER)}
    return {**columns, TOMBSTONE: pl.Boolean(), **node.values.polars}


KERNELS: Final = {LatestByTime: StateKernel(update, prepare=prepare, table=table, settled=True)}
