"""Keys that have been quiet for a time are deleted.

What the table is follows from its rows and the clock alone: a row is there as long as the clock has not reached its own
time plus the time that a key may be quiet. Neither cuts nor the order of arrival matter, so a row that comes with an
old time is judged like any other.

An index by time says which keys to look at. Activity moves no entry in it: what is due is looked up, and goes in again
if its key has been active since. So a busy key costs one entry per span of time, not one per record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.kernels.changes import CAUSE, differences, shaped, sides
from everstate.kernels.keying import with_key
from everstate.kernels.operations.kernel import StateKernel
from everstate.kernels.pages.due_index import DUE, DueIndex, after
from everstate.kernels.rows import KEY, PLACE, STREAM_TIME, TS
from everstate.topology.nodes.timed import Expire

if TYPE_CHECKING:
    from everstate.kernels.shard import Shard

#: When the index will have a key looked at, at the latest.
NOTED: Final = "$noted"
#: Into so many slices the index divides the time that a key may be quiet.
_SLICES: Final = 128


def update(
    node: Expire, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Apply the changes of a micro-batch, and delete what is due.

    Args:
        node: The node.
        number: Under which it keeps its state.
        inputs: Changes of the table, those of which only the time has moved among them.
        shard: Holds the rows that are there, and knows how far time has come.
        emit_moves: Pass on rows of which only time or position changed.
    """
    slices, store = shard.sliced(number), shard.keyed(number)
    now = shard.clock if node.clocked else shard.frontier
    if now is not None:
        slices.reached = max(slices.reached, now)
    now = slices.reached
    index = DueIndex(slices, max(1, node.after_ms // _SLICES))
    gone, added = sides(inputs[0], node.schema.names, moves=True)
    keys = pl.concat([gone[KEY], added[KEY], index.pop(now)]).unique(maintain_order=True).to_frame()
    held = shaped(store.lookup(keys), {**PLACE, NOTED: pl.Int64(), **node.values.polars})
    rows = _rows(node, held, gone, added)
    alive = rows.filter(pl.col(DUE) > now)
    shard.ledger.note("expired", rows.height - alive.height)
    noted = pl.col(NOTED)
    again = alive.filter(noted.is_null() | (noted <= now) | (pl.col(DUE) < noted))
    index.add(again.select(KEY, DUE))
    kept = pl.concat([alive.join(again, on=KEY, how="anti"), again.with_columns(pl.col(DUE).alias(NOTED))])
    store.apply(kept.select(held.columns), keys.join(kept, on=KEY, how="anti")[KEY])
    due = rows.filter(pl.col(DUE) <= now).with_columns(pl.col(DUE).alias(TS), pl.col(DUE).alias(STREAM_TIME))
    causes = pl.concat([due.select(KEY, *CAUSE), gone.join(rows, on=KEY, how="anti").select(KEY, *CAUSE)])
    return differences(with_key(held, node.key), alive, node.schema.names, causes=causes, moves=emit_moves)


def _rows(node: Expire, held: pl.DataFrame, gone: pl.DataFrame, added: pl.DataFrame) -> pl.DataFrame:
    """The rows of all keys in question as they would be without an end, and when that is."""
    noted = held.select(KEY, NOTED)
    touched = pl.concat([gone[[KEY]], added[[KEY]]])
    untouched = with_key(held, node.key).join(touched, on=KEY, how="anti").with_columns(pl.col(TS).alias(STREAM_TIME))
    columns = [KEY, *CAUSE, *node.schema.names]
    new = added.select(columns).join(noted, on=KEY, how="left")
    return pl.concat([new, untouched.select(*columns, NOTED)]).with_columns(after(node.after_ms))


KERNELS: Final = {Expire: StateKernel(update, settled=True)}
