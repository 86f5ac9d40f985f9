"""Keys of a topic that have been quiet for a time are removed: a tombstone wherever a record of the key lies.

A key is as old as its youngest record, in whichever partition that is; within a partition its last record counts. What
is kept of a record is its place and its time, never its value. A tombstone, whoever has written it, ends that; so the
tombstones that this step has written itself change nothing when it reads them back.

While its generation is built nothing is removed: no tombstone would be published, and the key would be forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.kernels.changes import shaped
from everstate.kernels.keying import with_key
from everstate.kernels.operations.kernel import StateKernel
from everstate.kernels.output import REMOVED
from everstate.kernels.pages.due_index import DUE, DueIndex, after
from everstate.kernels.rows import KEY, OFF, OP, PART, STREAM_TIME, SYSTEM, TOMBSTONE, TOPIC, TS
from everstate.topology.nodes.removal import Removal

if TYPE_CHECKING:
    from everstate.kernels.ledger import Ledger
    from everstate.kernels.pages.page_store import KeyedStore
    from everstate.kernels.shard import Shard
    from everstate.topology.unit import Unit

#: When the index will have a key looked at, at the latest.
_NOTED: Final = "$noted"
#: The records of the key in other partitions than the one where its youngest lies; hardly any key has some.
_OTHERS: Final = "$others"
#: Into so many slices the index divides the time that a key may be quiet.
_SLICES: Final = 128
_PLACE: Final[dict[str, pl.DataType]] = {name: SYSTEM[name] for name in (PART, OFF, TS)}
_LISTED: Final = pl.List(pl.Struct(_PLACE))


def update(
    node: Removal, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Take note of the records of a micro-batch, and remove what is due.

    Args:
        node: The node.
        number: Under which it keeps its state.
        inputs: The records of the topic with `$tombstone`.
        shard: Holds the places of records, and knows how far time has come.
        emit_moves: Of no meaning here.
    """
    del emit_moves
    slices, store, others = shard.sliced(number), shard.keyed(number), shard.keyed(number, 1)
    clock = shard.clock if node.clocked else shard.frontier
    if clock is not None:
        slices.reached = max(slices.reached, clock)
    now = slices.reached
    index = DueIndex(slices, max(1, node.after_ms // _SLICES))
    records = inputs[0].select(KEY, *_PLACE, TOMBSTONE).sort(OFF).unique([KEY, PART], keep="last")
    late = pl.Series([], dtype=pl.Binary) if shard.building else index.pop(now)
    keys = pl.concat([records[KEY], late]).unique(maintain_order=True).to_frame()
    held = shaped(store.lookup(keys), {KEY: pl.Binary(), **_PLACE, _NOTED: pl.Int64()})
    listed = shaped(others.lookup(keys), {KEY: pl.Binary(), _OTHERS: _LISTED})
    places = _places(records, held, listed)
    youngest = _youngest(places, held, node.after_ms)
    alive = youngest if shard.building else youngest.filter(pl.col(DUE) > now)
    noted = pl.col(_NOTED)
    again = alive.filter(noted.is_null() | (noted <= now) | (pl.col(DUE) < noted))
    index.add(again.select(KEY, DUE))
    kept = pl.concat([alive.join(again, on=KEY, how="anti"), again.with_columns(pl.col(DUE).alias(_NOTED))])
    store.apply(kept.select(held.columns), keys.join(kept, on=KEY, how="anti")[KEY])
    _keep_others(others if listed.height or places.height > youngest.height else None, places, alive, listed)
    gone = youngest.join(alive, on=KEY, how="anti").sort(KEY)
    return _removed(node, gone, places.join(gone, on=KEY, how="semi").sort(KEY, PART), now, shard)


def waiting(shard: Shard, unit: Unit) -> int:
    """How many keys of a unit's topic are not due yet."""
    return sum(shard.keyed(unit.stores[number]).rows for number, node in enumerate(unit.nodes) if node.command)


def _places(records: pl.DataFrame, held: pl.DataFrame, listed: pl.DataFrame) -> pl.DataFrame:
    """Where the last record of each key lies, in each partition that has one which is no tombstone."""
    known = [held.select(KEY, *_PLACE)]
    if listed.height:
        known.append(listed.explode(_OTHERS).unnest(_OTHERS).select(KEY, *_PLACE))
    still = pl.concat(known).join(records, on=[KEY, PART], how="anti")
    return pl.concat([still, records.filter(~pl.col(TOMBSTONE)).select(still.columns)])


def _youngest(places: pl.DataFrame, held: pl.DataFrame, after_ms: int) -> pl.DataFrame:
    """The youngest record of each key, when it is due, and when the index will have it looked at."""
    if places[KEY].n_unique() < places.height:
        places = places.sort(TS, PART).unique(KEY, keep="last")
    return places.join(held.select(KEY, _NOTED), on=KEY, how="left").with_columns(after(after_ms))


def _keep_others(store: KeyedStore | None, places: pl.DataFrame, alive: pl.DataFrame, listed: pl.DataFrame) -> None:
    """Note the records that do not lie in the partition of their key's youngest."""
    if store is None:
        return
    rest = places.join(alive, on=KEY, how="semi").join(alive, on=[KEY, PART], how="anti").sort(KEY, PART)
    rows = rest.group_by(KEY, maintain_order=True).agg(pl.struct(*_PLACE).alias(_OTHERS))
    store.apply(rows, listed[KEY])


def _removed(node: Removal, gone: pl.DataFrame, places: pl.DataFrame, now: int, shard: Shard) -> pl.DataFrame:
    """The removals as rows; the tombstones go to the topic."""
    tombstones = places.select(
        pl.col(KEY).alias("key"),
        pl.lit(None, pl.Binary).alias("value"),
        pl.col(TS).alias("ts"),
        pl.col(PART).alias("partition"),
        pl.col(OFF).alias(REMOVED),
    )
    shard.ledger.aside(node.topic, tombstones)
    shard.ledger.note("removed", gone.height)
    rows = gone.with_columns(
        pl.lit(1, pl.Int8).alias(OP),
        pl.lit(0, pl.UInt16).alias(TOPIC),
        pl.lit(now, pl.Int64).alias(STREAM_TIME),
        pl.col(PART).alias("partition"),
        pl.col(OFF).alias("offset"),
    )
    return with_key(rows, node.key).select(*SYSTEM, *node.schema.names)


def prepare(node: Removal, port: int, rows: pl.DataFrame, ledger: Ledger, *, emit_moves: bool = False) -> pl.DataFrame:
    """Records as they are; where there are none, in the same shape."""
    del node, port, ledger, emit_moves
    return rows if TOMBSTONE in rows.columns else rows.with_columns(pl.lit(value=False).alias(TOMBSTONE))


KERNELS: Final = {Removal: StateKernel(update, prepare=prepare, settled=True)}
