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

import polars as pl

from everstate.kernels.changes import CAUSE, differences, shaped
from everstate.kernels.keying import with_key
from everstate.kernels.operations.kernel import StateKernel
from everstate.kernels.records.python_rows import default_column
from everstate.kernels.rows import KEY, OFF, ORDER, PART, PLACE, TOMBSTONE, TS, empty
from everstate.topology.nodes import Latest

if TYPE_CHECKING:
    from everstate.kernels.ledger import Ledger
    from everstate.kernels.pages.page_store import KeyedStore
    from everstate.kernels.shard import Shard
    from everstate.topology.nodes import Node


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
    records = _not_older(records, held)
    old = _with_keys(node, held, records)
    tombstone = records[TOMBSTONE]
    new = records.filter(~tombstone) if tombstone.any() else records
    store.apply(new[[KEY, *ORDER, *node.values.names]], records[KEY].filter(tombstone))
    return differences(old, new, node.schema.names, causes=records[[KEY, *CAUSE]], moves=emit_moves)


def changed_in(store: KeyedStore, node: Node, records: pl.DataFrame, prefix: str) -> pl.DataFrame:
    """What records change, for who keeps the rows of a table source in a store of its own.

    Args:
        store: Holds the rows as they were.
        node: The source.
        records: Its records, with `$tombstone`.
        prefix: Stands there before the names of time, position and columns.

    Returns:
        Changes, also for records that repeat the value: they are newer.
    """
    records = newest(records)
    columns = PLACE | node.values.polars
    stored = {KEY: KEY} | {prefix + name: name for name in columns if name != KEY}
    kept = shaped(store.lookup(records[[KEY]]), {old: columns[new] for old, new in stored.items()})
    held = kept.rename(stored)
    records = _not_older(records, held)
    new = records.filter(~pl.col(TOMBSTONE))
    causes = records[[KEY, *CAUSE]]
    return differences(_with_keys(node, held, records), new, node.schema.names, causes=causes, moves=True)


def _with_keys(node: Node, held: pl.DataFrame, records: pl.DataFrame) -> pl.DataFrame:
    """Stored rows of these records' keys, with the columns of the key."""
    return held.join(records[[KEY, *node.key.names]], on=KEY, how="inner", maintain_order="left")


def newest(records: pl.DataFrame) -> pl.DataFrame:
    """The last record of each key."""
    if records[KEY].n_unique() == records.height:
        return records
    places = records.select(KEY, *ORDER).with_row_index("$row")
    last = places.sort(OFF).unique([KEY, PART], keep="last")
    if places[PART].n_unique() > 1:
        last = last.sort(TS, PART).unique([KEY], keep="last")
    return records[last["$row"].sort()]


def prepare(node: Latest, port: int, rows: pl.DataFrame, ledger: Ledger, *, emit_moves: bool = False) -> pl.DataFrame:
    """Records as they are; where there are none, in the same shape."""
    del node, port, ledger, emit_moves
    return as_records(rows)


def as_records(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows as the source of a table gives them, also where there are none."""
    return rows if TOMBSTONE in rows.columns else rows.with_columns(pl.lit(value=False).alias(TOMBSTONE))


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


def _not_older(records: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """Leaves out records that another partition's stored record is newer than."""
    if held.is_empty() or (held[PART].n_unique() == 1 and (records[PART] == held[PART][0]).all()):
        return records
    stored = held.select(KEY, pl.col(TS).alias("$held_ts"), pl.col(PART).alias("$held_part"))
    ts, part = pl.col(TS), pl.col(PART)
    earlier = (ts < pl.col("$held_ts")) | ((ts == pl.col("$held_ts")) & (part < pl.col("$held_part")))
    older = records.join(stored, on=KEY, how="inner").filter((part != pl.col("$held_part")) & earlier)
    return records if older.is_empty() else records.join(older, on=KEY, how="anti", maintain_order="left")


KERNELS: Final = {Latest: StateKernel(update, prepare=prepare, table=table, fill=fill, settled=True)}
