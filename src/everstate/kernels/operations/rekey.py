"""Tables under another key: of several rows that come to one new key, the highest (timestamp, old key) wins.

All rows are kept, by new and old key, so that the next one comes back when the winner goes. The winner is kept apart as
well: a change that does not concern it reads nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.kernels.changes import CAUSE, differences, shaped
from everstate.kernels.keying import rekeyed, with_key
from everstate.kernels.operations.kernel import StateKernel
from everstate.kernels.rows import CONTRIBUTION, KEY, OP, ORDER, PLACE, SYSTEM, TS, empty
from everstate.topology.nodes import RekeyTable

if TYPE_CHECKING:
    from everstate.kernels.ledger import Ledger
    from everstate.kernels.shard import Shard

#: The stores: the winner of each new key, and all rows.
WINNERS: Final = 0
ROWS: Final = 1

_PAIR: Final = [KEY, CONTRIBUTION]
_OLD: Final = "$old:"


def prepare(
    node: RekeyTable, port: int, rows: pl.DataFrame, ledger: Ledger, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Give rows their new key.

    Args:
        node: The node.
        port: Its one input.
        rows: Rows as the feeder gives them.
        ledger: Takes rows for which the key cannot be made, and counts those without one.
        emit_moves: Makes no difference here.
    """
    del port, emit_moves
    return rekeyed(node.keying, rows, ledger, node).select(*SYSTEM, CONTRIBUTION, *node.schema.names)


def update(
    node: RekeyTable, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Bring the rows up to date with a micro-batch and yield the winners that changed.

    Args:
        node: The node.
        number: Under which it keeps its state.
        inputs: What `prepare` gave, from all tasks.
        shard: Holds the rows and the winners.
        emit_moves: Also yield winners of which only time or position changed.
    """
    rows = inputs[0]
    if rows.is_empty():
        return empty(dict(node.schema.polars))
    columns: dict[str, pl.DataType] = {KEY: pl.Binary(), CONTRIBUTION: pl.Binary()}
    columns |= {name: SYSTEM[name] for name in ORDER}
    columns |= node.values.polars
    winners, kept = shard.keyed(number, WINNERS), shard.multi(number, ROWS)
    causes = rows.sort(*ORDER).unique(KEY, keep="last", maintain_order=True).select(KEY, *CAUSE, *node.key.names)
    old = shaped(winners.lookup(causes.select(KEY)), columns)
    added = rows.filter(pl.col(OP) > 0).select(list(columns))
    gone = rows.filter(pl.col(OP) < 0).select(_PAIR)
    kept.apply(added, gone.join(added, on=_PAIR, how="anti"))
    lost = old.join(pl.concat([gone, added.select(_PAIR)]), on=_PAIR, how="semi").select(KEY, TS, CONTRIBUTION)
    again = _undecided(lost, added)
    candidates = [old.join(lost, on=KEY, how="anti"), added, shaped(kept.lookup(again), columns)]
    new = pl.concat(candidates).sort(TS, CONTRIBUTION).unique(KEY, keep="last", maintain_order=True)
    winners.apply(new, old.join(new, on=KEY, how="anti")[KEY])
    keys = causes.select(KEY, *node.key.names)
    old, new = (frame.join(keys, on=KEY, how="left", maintain_order="left") for frame in (old, new))
    return differences(old, new, list(node.schema.names), causes=causes, moves=emit_moves)


def table(node: RekeyTable, number: int, shard: Shard, *, emit_moves: bool = False) -> pl.DataFrame:
    """The winners."""
    del emit_moves
    return with_key(shaped(shard.keyed(number, WINNERS).scan(), PLACE | node.values.polars), node.key)


def _undecided(lost: pl.DataFrame, added: pl.DataFrame) -> pl.DataFrame:
    """The keys whose winner is gone without a new row that beats it, so that any kept row may be next."""
    stood = lost.rename({TS: _OLD + TS, CONTRIBUTION: _OLD + CONTRIBUTION})
    later = pl.col(TS) > pl.col(_OLD + TS)
    same = (pl.col(TS) == pl.col(_OLD + TS)) & (pl.col(CONTRIBUTION) >= pl.col(_OLD + CONTRIBUTION))
    decided = added.select(KEY, TS, CONTRIBUTION).join(stood, on=KEY, how="inner").filter(later | same)
    return lost.select(KEY).join(decided, on=KEY, how="anti")


KERNELS: Final = {RekeyTable: StateKernel(update, prepare=prepare, table=table)}
