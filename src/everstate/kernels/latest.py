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
from everstate.kernels.rows import KEY, OFF, ORDER, PART, SYSTEM, TS, empty
from everstate.topology.nodes import Aggregate, RekeyTable

if TYPE_CHECKING:
    from everstate.kernels.shard import Shard
    from everstate.topology.nodes import Latest, Node
    from everstate.topology.unit import Unit

#: Marks the records that delete their key.
TOMBSTONE: Final = "$tombstone"

_ORDERING_LEAVES = frozenset({"first", "last", "collect", "top_k"})
_PLACE = {name: SYSTEM[name] for name in ORDER}


def update(
    node: Latest, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Apply the records of a micro-batch.

    Args:
        node: The node.
        number: Under which it keeps its state.
        inputs: Decoded records with `$tombstone`; a tombstone has its key columns.
        shard: Holds the latest rows, without their key columns: a change needs no key that is not in the batch.
        emit_moves: Pass on records that repeat the value (see `uses_order`).
    """
    if inputs[0].is_empty():
        return empty(node.schema.polars)
    records = newest(inputs[0])
    store = shard.keyed(number)
    held = shaped(store.lookup(records[[KEY]]), {KEY: SYSTEM[KEY], **_PLACE, **node.values.polars})
    records = _not_older(records, held)
    old = held.join(records[[KEY, *node.key.names]], on=KEY, how="inner", maintain_order="left")
    tombstone = records[TOMBSTONE]
    new = records.filter(~tombstone) if tombstone.any() else records
    store.apply(new[[KEY, *ORDER, *node.values.names]], records[KEY].filter(tombstone))
    return differences(old, new, node.schema.names, causes=records[[KEY, *CAUSE]], moves=emit_moves)


def newest(records: pl.DataFrame) -> pl.DataFrame:
    """The last record of each key."""
    if records[KEY].n_unique() == records.height:
        return records
    places = records.select(KEY, *ORDER).with_row_index("$row")
    last = places.sort(OFF).unique([KEY, PART], keep="last")
    if places[PART].n_unique() > 1:
        last = last.sort(TS, PART).unique([KEY], keep="last")
    return records[last["$row"].sort()]


def uses_order(unit: Unit, number: int) -> bool:
    """Whether an operation behind a node orders rows by time and position, so that moves matter to its result."""
    seen: set[int] = set()
    waiting = [number]
    while waiting:
        for edge in unit.out_of(waiting.pop()):
            if _orders(unit.nodes[edge.target]):
                return True
            if edge.target not in seen:
                seen.add(edge.target)
                waiting.append(edge.target)
    return False


def _orders(node: Node) -> bool:
    if isinstance(node, Aggregate):
        return any(leaf.kind in _ORDERING_LEAVES for leaf in node.leaves)
    return isinstance(node, RekeyTable)


def _not_older(records: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """Leaves out records that another partition's stored record is newer than."""
    if held.is_empty() or (held[PART].n_unique() == 1 and (records[PART] == held[PART][0]).all()):
        return records
    stored = held.select(KEY, pl.col(TS).alias("$held_ts"), pl.col(PART).alias("$held_part"))
    ts, part = pl.col(TS), pl.col(PART)
    earlier = (ts < pl.col("$held_ts")) | ((ts == pl.col("$held_ts")) & (part < pl.col("$held_part")))
    older = records.join(stored, on=KEY, how="inner").filter((part != pl.col("$held_part")) & earlier)
    return records if older.is_empty() else records.join(older, on=KEY, how="anti", maintain_order="left")
