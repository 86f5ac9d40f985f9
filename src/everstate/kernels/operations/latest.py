"""Table source: keeps the latest value of each key and yields old and new.

Which record of a key is the latest must not depend on where micro-batches were cut, nor on whether the topic was
compacted in between. Within a partition the highest offset is; a key that is in several partitions (after the topic
got more of them) has its latest record where the timestamp is highest, then the partition number. A deleted key leaves
no trace to compare with, so records of another partition count as newer than a deletion in an earlier micro-batch.

Time and position of a stored row are those of the key's last record, also where that record repeated the value: a run
over the compacted topic sees only that one. Where an operation downstream orders rows by them, such a repetition is
passed on as a change of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from everstate.kernels.changes import CAUSE, differences, shaped
from everstate.kernels.keying import with_key
from everstate.kernels.operations.kernel import StateKernel
from everstate.kernels.operations.table_records import as_records, newest, not_older, with_keys
from everstate.kernels.records.python_rows import default_column
from everstate.kernels.rows import KEY, ORDER, PLACE, TOMBSTONE, empty
from everstate.topology.nodes import Latest

if TYPE_CHECKING:
    import polars as pl

    from everstate.kernels.ledger import Ledger
    from everstate.kernels.shard import Shard


def update(
    node: Latest, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Apply the records of a micro-batch.

    Args:
        node: The node.
        number: Under which it keeps its state.
        inputs: Decoded records with `$tombstone`; a tombstone has its key columns.
        shard: Holds the latest rows, without their key columns: a change needs no key that is not in the batch.
        emit_moves: Pass on records that repeat the value.
    """
    if inputs[0].is_empty():
        return empty(node.schema.polars)
    records = newest(inputs[0])
    store = shard.keyed(number)
    held = shaped(store.lookup(records[[KEY]]), PLACE | node.values.polars)
    records = not_older(records, held)
    old = with_keys(node, held, records)
    tombstone = records[TOMBSTONE]
    new = records.filter(~tombstone) if tombstone.any() else records
    store.apply(new[[KEY, *ORDER, *node.values.names]], records[KEY].filter(tombstone))
    return differences(old, new, node.schema.names, causes=records[[KEY, *CAUSE]], moves=emit_moves)


def prepare(node: Latest, port: int, rows: pl.DataFrame, ledger: Ledger, *, emit_moves: bool = False) -> pl.DataFrame:
    """Records as they are; where there are none, in the same shape."""
    del node, port, ledger, emit_moves
    return as_records(rows)


def table(node: Latest, number: int, shard: Shard, *, emit_moves: bool = False) -> pl.DataFrame:
    """The rows that are stored."""
    del emit_moves
    return with_key(shaped(shard.keyed(number).scan(), PLACE | node.values.polars), node.key)


def fill(node: Latest, number: int, shard: Shard) -> None:
    """Give stored rows the defaults of columns that they never had."""
    declared = [field for field in node.values.fields if field.default is not None]
    if not declared:
        return
    rows = shard.keyed(number).scan()
    new = [field for field in declared if field.name not in rows.columns]
    if new and rows.height:
        shard.replace(number, 0, rows.with_columns(default_column(field).alias(field.name) for field in new))


KERNELS: Final = {Latest: StateKernel(update, prepare=prepare, table=table, fill=fill, settled=True)}
