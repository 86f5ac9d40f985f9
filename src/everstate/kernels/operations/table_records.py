"""The records of a table's topic, for whoever keeps the latest row of each key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.kernels.changes import CAUSE, differences, shaped
from everstate.kernels.rows import KEY, OFF, ORDER, PART, PLACE, TOMBSTONE, TS

if TYPE_CHECKING:
    from everstate.kernels.pages.page_store import KeyedStore
    from everstate.topology.nodes import Node

#: From the oldest to the newest record of a key, in a table that goes by time.
BY_TIME: Final = (TS, PART, OFF)


def newest(records: pl.DataFrame) -> pl.DataFrame:
    """The last record of each key."""
    if records[KEY].n_unique() == records.height:
        return records
    places = records.select(KEY, *ORDER).with_row_index("$row")
    last = places.sort(OFF).unique([KEY, PART], keep="last")
    if places[PART].n_unique() > 1:
        last = last.sort(TS, PART).unique([KEY], keep="last")
    return records[last["$row"].sort()]


def as_records(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows as the source of a table gives them, also where there are none."""
    return rows if TOMBSTONE in rows.columns else rows.with_columns(pl.lit(value=False).alias(TOMBSTONE))


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
    records = not_older(records, held)
    new = records.filter(~pl.col(TOMBSTONE))
    causes = records[[KEY, *CAUSE]]
    return differences(with_keys(node, held, records), new, node.schema.names, causes=causes, moves=True)


def not_older(records: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """Leaves out records that another partition's stored record is newer than."""
    if held.is_empty() or (held[PART].n_unique() == 1 and (records[PART] == held[PART][0]).all()):
        return records
    stored = held.select(KEY, pl.col(TS).alias("$held_ts"), pl.col(PART).alias("$held_part"))
    ts, part = pl.col(TS), pl.col(PART)
    earlier = (ts < pl.col("$held_ts")) | ((ts == pl.col("$held_ts")) & (part < pl.col("$held_part")))
    older = records.join(stored, on=KEY, how="inner").filter((part != pl.col("$held_part")) & earlier)
    return records if older.is_empty() else records.join(older, on=KEY, how="anti", maintain_order="left")


def with_keys(node: Node, held: pl.DataFrame, records: pl.DataFrame) -> pl.DataFrame:
    """Stored rows of these records' keys, with the columns of the key."""
    return held.join(records[[KEY, *node.key.names]], on=KEY, how="inner", maintain_order="left")
