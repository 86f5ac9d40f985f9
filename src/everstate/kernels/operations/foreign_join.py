"""Table-table join of a left row's foreign key with the right table's key: inner, left.

Left rows come to the shard of their foreign key and are kept there by (foreign key, left key), so that a change on the
right finds all rows that refer to it, however many they are. Results have the left key again. A left row that changes
its foreign key is taken back on the one shard and added on the other, so its two rows may come from different shards.

A left row without a foreign key has no partner: an inner join leaves it out, a left join passes it with an empty right
side, as Kafka Streams does. It needs no state for that, and goes to the shard of its own key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import polars as pl

from everstate.kernels.changes import consolidate, differences, shaped
from everstate.kernels.keying import key_parts
from everstate.kernels.operations import table_records
from everstate.kernels.operations.kernel import StateKernel
from everstate.kernels.operations.pairs import CAUSES, FOREIGN, LEFT, RIGHT, ROWS, columns_of, later, prefixed, results
from everstate.kernels.records.keys import encode_keys
from everstate.kernels.rows import CONTRIBUTION, KEY, OP, ORDER, SYSTEM, empty
from everstate.topology.nodes import ForeignJoin, TableGlobalJoin

if TYPE_CHECKING:
    from everstate.kernels.ledger import Ledger
    from everstate.kernels.shard import Shard

AnyForeignJoin: TypeAlias = ForeignJoin | TableGlobalJoin

#: Marks left rows that have no foreign key.
ALONE: Final = "$alone"

#: Slots of the node's stores.
_RIGHT_ROWS = 0
_LEFT_ROWS = 1

_PAIR = [KEY, CONTRIBUTION]


def prepare(
    node: ForeignJoin, port: int, rows: pl.DataFrame, ledger: Ledger, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Left rows on their way to the shard of their foreign key; right rows are there.

    Returns:
        The rows with the foreign key in `$key`, their own in `$ck`, and `$alone` where they have no foreign key.
    """
    del emit_moves
    return rows if port else referring(node, rows, ledger)


def referring(node: AnyForeignJoin, rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """Left rows with the foreign key in `$key`, their own in `$ck`, and `$alone` where they have no foreign key."""
    rows, parts = key_parts(node.keying, rows, ledger, node)
    foreign = encode_keys(parts, node.keying.key).alias(KEY)
    alone = foreign.is_null()
    rows = rows.select(*SYSTEM, pl.col(KEY).alias(CONTRIBUTION), alone.alias(ALONE), *node.inputs[0].schema.names)
    if not alone.any():
        return rows.with_columns(foreign)
    if node.how == "inner":
        ledger.drop("null_key", rows.filter(alone & (rows[OP] > 0)).height)
        return rows.with_columns(foreign).filter(~alone)
    return rows.with_columns(foreign.zip_with(~alone, rows[KEY]))


def update(
    node: AnyForeignJoin, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Apply a micro-batch's changes of both tables.

    Args:
        node: The node.
        number: Under which it keeps its state.
        inputs: The left table's changes as `prepare` gives them, and the right table's.
        shard: Holds the rows of both tables by foreign key.
        emit_moves: Pass on results of which only time or position changed.
    """
    if not any(rows.height for rows in inputs):
        return empty(node.schema.polars)
    alone = inputs[0].filter(pl.col(ALONE))
    linked = _linked(node, number, [inputs[0].filter(~pl.col(ALONE)), inputs[1]], shard, emit_moves=emit_moves)
    if alone.is_empty():
        return linked
    return consolidate(pl.concat([linked, _unlinked(node, alone, shard)]), node.schema.names, moves=emit_moves)


def _linked(
    node: AnyForeignJoin, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool
) -> pl.DataFrame:
    """The changes of rows that have a foreign key."""
    rights, rights_now = _right_rows(node, number, inputs, shard)
    lefts, lefts_now = _left_rows(node, number, inputs, shard)
    last = _last(inputs[0], _PAIR, CAUSES[0]), _last(inputs[1], [KEY], CAUSES[1])
    before, after = _pairs(lefts, rights, last), _pairs(lefts_now, rights_now, last)
    return differences(
        results(node, before, shard.ledger, op=-1),
        results(node, after, shard.ledger, op=1, times=ROWS if emit_moves else CAUSES),
        node.schema.names,
        causes=before.select(KEY, *later(*CAUSES)),
        moves=emit_moves,
    )


def _right_rows(
    node: AnyForeignJoin, number: int, inputs: list[pl.DataFrame], shard: Shard
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The right rows that the micro-batch needs, before and after it."""
    right = node.inputs[1]
    store = shard.keyed(number, _RIGHT_ROWS)
    needed = pl.concat([rows.select(KEY) for rows in inputs]).unique()
    held = shaped(store.lookup(needed), {KEY: SYSTEM[KEY], **columns_of(right, RIGHT)})
    added = prefixed(inputs[1].filter(pl.col(OP) > 0), right, RIGHT)
    touched = inputs[1].select(KEY).unique()
    gone = touched.join(added, on=KEY, how="anti")
    store.apply(added, gone[KEY])
    return held, pl.concat([held.join(touched, on=KEY, how="anti"), added])


def _left_rows(
    node: AnyForeignJoin, number: int, inputs: list[pl.DataFrame], shard: Shard
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The left rows whose result the micro-batch may change, before and after it.

    They are those that changed themselves, and all that refer to a right row that changed.
    """
    left = node.inputs[0]
    columns = {KEY: SYSTEM[KEY], CONTRIBUTION: SYSTEM[KEY], **columns_of(left, LEFT)}
    columns |= {name: left.schema.polars[name] for name in left.key.names}
    store = shard.multi(number, _LEFT_ROWS)
    touched = inputs[0].select(_PAIR).unique()
    referred = inputs[1].select(KEY).unique()
    held = pl.concat(
        [
            shaped(store.lookup(referred), columns),
            shaped(store.lookup_rows(touched.join(referred, on=KEY, how="anti")), columns),
        ]
    )
    added = _left_side(node, inputs[0].filter(pl.col(OP) > 0)).select(list(columns))
    store.apply(added, touched.join(added, on=_PAIR, how="anti"))
    return held, pl.concat([held.join(touched, on=_PAIR, how="anti"), added])


def _left_side(node: AnyForeignJoin, rows: pl.DataFrame) -> pl.DataFrame:
    """Left rows as one side of pairs, with the key columns of the result."""
    left = node.inputs[0]
    sided = (pl.col(name).alias(LEFT + name) for name in (*ORDER, *left.values.names))
    return rows.select(*_PAIR, *sided, *left.key.names)


def _pairs(lefts: pl.DataFrame, rights: pl.DataFrame, last: tuple[pl.DataFrame, pl.DataFrame]) -> pl.DataFrame:
    """Left rows with their right row, where there is one, under the left key, and with what happened last to both."""
    pairs = lefts.join(rights, on=KEY, how="left", maintain_order="left")
    for events, keys in zip(last, (_PAIR, [KEY]), strict=True):
        pairs = pairs.join(events, on=keys, how="left", maintain_order="left")
    return pairs.with_columns(
        pl.coalesce(cause + name, side + name).alias(cause + name)
        for side, cause in zip(ROWS, CAUSES, strict=True)
        for name in ORDER
    ).rename({KEY: FOREIGN, CONTRIBUTION: KEY})


def _last(rows: pl.DataFrame, keys: list[str], prefix: str) -> pl.DataFrame:
    """What happened last by these keys: an addition, else a retraction."""
    if rows[keys].n_unique() < rows.height:
        rows = rows.sort(OP).unique(keys, keep="last")
    return rows.select(*keys, *(pl.col(name).alias(prefix + name) for name in ORDER))


def _unlinked(node: AnyForeignJoin, rows: pl.DataFrame, shard: Shard) -> pl.DataFrame:
    """The results of rows without a foreign key: their right side is empty."""
    nothing = [pl.lit(None, dtype).alias(name) for name, dtype in columns_of(node.inputs[1], RIGHT).items()]
    pairs = _left_side(node, rows).rename({KEY: FOREIGN, CONTRIBUTION: KEY}).with_columns(nothing)
    is_new = rows[OP] > 0
    old = results(node, pairs.filter(~is_new), shard.ledger, op=-1)
    new = results(node, pairs.filter(is_new), shard.ledger, op=1)
    return differences(old, new, node.schema.names, moves=True)


def at_home(
    node: TableGlobalJoin, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Apply a micro-batch's changes of the left table and the records of the global one, which every shard has whole.

    Left rows stay on the shard of their own key, and are kept there by foreign key like those of others.
    """
    store = shard.keyed(number, _RIGHT_ROWS)
    changes = table_records.changed_in(store, node.inputs[1], inputs[1], RIGHT)
    lefts = referring(node, inputs[0], shard.ledger)
    return update(node, number, [lefts, changes], shard, emit_moves=emit_moves)


def records_everywhere(
    node: TableGlobalJoin, port: int, rows: pl.DataFrame, ledger: Ledger, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Left rows as they are; records of the global table in the shape of their source, also where there are none."""
    del node, ledger, emit_moves
    return table_records.as_records(rows) if port else rows


KERNELS: Final = {
    ForeignJoin: StateKernel(update, prepare=prepare),
    TableGlobalJoin: StateKernel(at_home, prepare=records_everywhere),
}
