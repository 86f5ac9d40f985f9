"""What a step's state says as it stands: the rows of its table, as if all of them were new.

A migrated generation has state before it has published anything. Its table is this, taken through the steps downstream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from everstate.kernels.operations.kernels import state_kernel
from everstate.kernels.rows import OP, STREAM_TIME, SYSTEM, TS, empty

if TYPE_CHECKING:
    from everstate.kernels.shard import Shard
    from everstate.topology.unit import Unit


def table_of(unit: Unit, number: int, shard: Shard) -> pl.DataFrame:
    """The table of a step on one shard, a rows frame of additions; empty where state does not have it.

    Args:
        unit: The unit.
        number: Of the node.
        shard: The shard's state; reads all pages of the node's store.
    """
    node = unit.nodes[number]
    kernel = state_kernel(node)
    if kernel is None or kernel.table is None:
        return empty(dict(node.schema.polars))
    found = kernel.table(node, unit.stores[number], shard, emit_moves=unit.followed_by_order[number])
    system: dict[str, Any] = {OP: pl.lit(1, pl.Int8).alias(OP), STREAM_TIME: pl.col(TS).alias(STREAM_TIME)}
    return found.select(*(system.get(name, pl.col(name)) for name in SYSTEM), *node.schema.names)
