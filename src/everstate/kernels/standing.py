"""What a step's state says as it stands: the rows of its table, as if all of them were new.

A migrated generation has state before it has published anything. Its table is this, taken through the steps behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from everstate.kernels import aggregate, contributions, fold, rekey
from everstate.kernels.accumulators import Plan
from everstate.kernels.changes import shaped
from everstate.kernels.keys import decode_keys
from everstate.kernels.latest import uses_order
from everstate.kernels.pairs import LEFT, RIGHT, columns_of
from everstate.kernels.pairs import results as joined
from everstate.kernels.results import results as aggregated
from everstate.kernels.rows import KEY, OP, ORDER, STREAM_TIME, SYSTEM, TS, empty
from everstate.topology.nodes import Aggregate, Fold, Join, Latest, RekeyTable

if TYPE_CHECKING:
    from everstate.kernels.shard import Shard
    from everstate.topology.nodes import Node
    from everstate.topology.unit import Unit

_PLACE = {KEY: SYSTEM[KEY], **{name: SYSTEM[name] for name in ORDER}}


def standing(unit: Unit, number: int, shard: Shard) -> pl.DataFrame:
    """The table of a step on one shard, a rows frame of additions.

    Args:
        unit: The unit.
        number: Of the node; one that gives a table, and no foreign-key join.
        shard: The shard's state; reads all pages of the node's store.
    """
    node, store = unit.nodes[number], unit.stores[number]
    found: pl.DataFrame
    match node:
        case Latest():
            found = _with_key(node, shaped(shard.keyed(store).scan(), _PLACE | node.values.polars))
        case Fold():
            groups = shaped(shard.keyed(store, fold.GROUPS).scan(), fold.STORED | node.values.polars)
            found = _with_key(node, groups.filter(pl.col(fold.LIVE)))
        case Aggregate():
            found = _groups(node, store, shard, ordered=uses_order(unit, number))
        case RekeyTable():
            found = _with_key(node, shaped(shard.keyed(store, rekey.WINNERS).scan(), _PLACE | node.values.polars))
        case Join():
            left, right = node.inputs
            sides = {KEY: SYSTEM[KEY], **columns_of(left, LEFT), **columns_of(right, RIGHT)}
            pairs = _with_key(node, shaped(shard.keyed(store).scan(), sides))
            found = joined(node, pairs, shard.ledger, op=-1)
        case _:
            return empty(dict(node.schema.polars))
    return _rows(found, node)


def _groups(node: Aggregate, store: int, shard: Shard, *, ordered: bool) -> pl.DataFrame:
    plan = Plan.of(node, ordered=ordered)
    groups = shard.keyed(store, aggregate.GROUPS).scan()
    whole = None
    if plan.holistic and groups.height:
        held = contributions.lookup(plan, groups, shard.multi(store, aggregate.CONTRIBUTIONS))
        whole = contributions.whole(plan, held)
    return aggregated(node, plan, groups, _with_key(node, groups.select(KEY)), whole).rows


def _with_key(node: Node, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with the columns of their key, which is all that stores keep of it."""
    columns, _ = decode_keys(rows[KEY], node.key)
    return rows.with_columns(series.alias(name) for name, series in columns.items())


def _rows(found: pl.DataFrame, node: Node) -> pl.DataFrame:
    system: dict[str, Any] = {OP: pl.lit(1, pl.Int8).alias(OP), STREAM_TIME: pl.col(TS).alias(STREAM_TIME)}
    return found.select(*(system.get(name, pl.col(name)) for name in SYSTEM), *node.schema.names)
