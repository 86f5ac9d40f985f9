"""Stream-table join as of the time of the row: each meets the value that its key had then.

A row that is not yet as old as `grace` by the stream time of its own partition waits until all that feeds the join has
passed its time and the grace; it meets what has come by then, also for earlier times, and nothing that comes later. So
results follow from the order of arrival, as for other tables that are looked up.

A row counts as long as its own partition's stream time is less than `history` ahead of it; one that is older may miss
values that nobody remembers, so it meets none, and is counted. That makes the end of a value's time enough to say when
nobody can ask for it any longer. The newest record of each key stays, a deletion too: without it an older value that
comes late would be taken for the newest.
"""

from __future__ import annotations

from re import escape
from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.kernels.changes import shaped
from everstate.kernels.operations.kernel import StateKernel
from everstate.kernels.operations.lookups.arrival import arriving, left_side, moved, put_together
from everstate.kernels.operations.pairs import FOREIGN, RIGHT
from everstate.kernels.operations.table_records import BY_TIME, as_records
from everstate.kernels.pages.due_index import DUE, DueIndex
from everstate.kernels.positions import position_names
from everstate.kernels.rows import CONTRIBUTION, KEY, ORDER, STREAM_TIME, SYSTEM, TOMBSTONE, TS, empty
from everstate.topology.nodes import HistoryJoin

if TYPE_CHECKING:
    from everstate.kernels.ledger import Ledger
    from everstate.kernels.pages.grouped_store import GroupedStore
    from everstate.kernels.pages.page_store import KeyedStore
    from everstate.kernels.pages.slices import Slices
    from everstate.kernels.shard import Shard

#: Slots of the node's stores: newest versions, rows that wait, earlier versions, when rows are due.
_NEWEST, _WAITING, _EARLIER, _DUE = range(4)
#: When a version was followed by the next one; null for the newest.
_END: Final = "$end"
#: The slice of time in which an earlier version lies.
_SLICE: Final = "$slice"
#: A row's own key, which it gets back.
_OWN: Final = "$own"
#: True of a row that is too old to be joined.
_OLD: Final = "$old"
_NONE: Final = pl.Series(KEY, [], dtype=pl.Binary)
_NAME: Final = [KEY, CONTRIBUTION]


def prepare(
    node: HistoryJoin, port: int, rows: pl.DataFrame, ledger: Ledger, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Rows on their way to the shard of what they refer to; records are there."""
    del emit_moves
    return as_records(rows) if port else moved(node, rows, ledger)


def update(
    node: HistoryJoin, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Take in the records of a micro-batch, then join the rows that need not wait, or no longer.

    Args:
        node: The node.
        number: Under which it keeps its state.
        inputs: The stream's rows as `prepare` gives them, and the records of the table's topic.
        shard: Holds versions and waiting rows, and knows how far time has come.
        emit_moves: Makes no difference: rows of a stream do not move.
    """
    del emit_moves
    earlier = shard.sliced(number, _EARLIER)
    if shard.frontier is not None:
        earlier.reached = max(earlier.reached, shard.frontier)
    rows = arriving(node, inputs[0], shard.ledger).with_columns(
        (pl.col(STREAM_TIME) >= pl.col(TS) + node.history_ms).alias(_OLD)
    )
    rows = _released(node, number, rows.rename({CONTRIBUTION: _OWN}), shard, earlier.reached)
    versions = _versions(node, inputs[1], rows, shard.keyed(number, _NEWEST), earlier)
    if rows.is_empty():
        return empty(node.schema.polars)
    shard.ledger.note("beyond_history", int(rows[_OLD].sum()))
    met = _as_of(node, rows, versions)
    sides = [left_side(node, met.with_columns(pl.col(_OWN).alias(KEY))), met.select(pl.col(f"^{escape(RIGHT)}.*$"))]
    return put_together(node, pl.concat(sides, how="horizontal"), shard.ledger)


def _released(node: HistoryJoin, number: int, rows: pl.DataFrame, shard: Shard, now: int) -> pl.DataFrame:
    """The rows of this micro-batch and earlier ones that need not wait, or no longer."""
    grace = node.grace_ms
    if not grace:
        return rows
    waits = pl.col(FOREIGN).is_not_null() & (pl.col(STREAM_TIME) < pl.col(TS) + grace)
    index = DueIndex(shard.sliced(number, _DUE), max(1, grace // 4))
    store = shard.multi(number, _WAITING)
    new = _named(rows.filter(waits), store)
    held = shaped(store.lookup(index.pop(now).alias(KEY).to_frame()), dict(new.schema))
    over = pl.col(TS) + grace <= now
    store.apply(new.filter(~over), held.filter(over).select(_NAME))
    waiting = pl.concat([held, new]).filter(~over)
    index.add(waiting.group_by(KEY).agg((pl.col(TS).min() + grace).alias(DUE)))
    released = pl.concat([held, new]).filter(over).drop(CONTRIBUTION)
    given = released.with_columns(pl.max_horizontal(STREAM_TIME, pl.col(TS) + grace).alias(STREAM_TIME))
    return pl.concat([rows.filter(~waits), given.select(rows.columns)])


def _named(rows: pl.DataFrame, store: GroupedStore) -> pl.DataFrame:
    """Rows that wait, each with a name that no other row has."""
    known = store.lookup(rows.select(KEY).unique())
    return rows.with_columns(position_names(rows, known).alias(CONTRIBUTION))


def _versions(
    node: HistoryJoin, records: pl.DataFrame, rows: pl.DataFrame, newest: KeyedStore, earlier: Slices
) -> pl.DataFrame:
    """The versions that rows can meet, after these records were taken in; what nobody can ask for goes."""
    columns = _stored(node)
    new = records.sort(*BY_TIME).unique([KEY, TS], keep="last", maintain_order=True)
    new = new.select(KEY, _version_name(), *list(columns)[2:])
    asked = pl.concat([new.select(KEY, TS), rows.drop_nulls(FOREIGN).select(pl.col(FOREIGN).alias(KEY), TS)])
    held = shaped(newest.lookup(asked.select(KEY).unique()), columns)
    back = asked.join(held.select(KEY, pl.col(TS).alias(_END)), on=KEY, how="inner").filter(pl.col(TS) < pl.col(_END))
    before = _looked_up(earlier, back.select(KEY).unique(), columns)
    line = (
        pl.concat([before.select(list(columns)), held, new])
        .sort(KEY, *BY_TIME)
        .unique([KEY, TS], keep="last", maintain_order=True)
        .with_columns(pl.col(TS).shift(-1).over(KEY).alias(_END))
    )
    if new.height:
        touched = new.select(KEY).unique()
        written = line.join(touched, on=KEY, how="semi")
        newest.apply(written.filter(pl.col(_END).is_null()).drop(_END), _NONE)
        _keep(node, earlier, before.join(touched, on=KEY, how="semi"), written.drop_nulls(_END))
    width, gone = _width(node), earlier.reached - max(node.history_ms, node.grace_ms)
    for number in earlier.numbers:
        if (number + 1) * width <= gone:
            earlier.drop(number)
    return line


def _looked_up(earlier: Slices, keys: pl.DataFrame, columns: dict[str, pl.DataType]) -> pl.DataFrame:
    """The earlier versions of these keys, with the slice in which each lies."""
    shape = {**columns, _END: pl.Int64(), _SLICE: pl.Int64()}
    found = [pl.DataFrame(schema=shape)]
    for number in earlier.numbers if keys.height else ():
        rows = shaped(earlier[number].multi(0).lookup(keys), {**columns, _END: pl.Int64()})
        found.append(rows.with_columns(pl.lit(number, pl.Int64).alias(_SLICE)))
    return pl.concat(found)


def _keep(node: HistoryJoin, earlier: Slices, before: pl.DataFrame, after: pl.DataFrame) -> None:
    """Put earlier versions of the keys that have changed in the place of what was there."""
    after = after.with_columns((pl.col(_END) // _width(node)).alias(_SLICE))
    same = [KEY, CONTRIBUTION, _SLICE]
    old = before.join(after.select(same), on=same, how="anti").partition_by(_SLICE, as_dict=True)
    now = after.partition_by(_SLICE, as_dict=True, include_key=False)
    for (number,) in sorted({*old, *now}):
        gone = old[number,].select(_NAME) if (number,) in old else after.clear().select(_NAME)
        rows = now.get((number,), after.clear().drop(_SLICE))
        earlier[int(number)].multi(0).apply(rows, gone)


def _as_of(node: HistoryJoin, rows: pl.DataFrame, versions: pl.DataFrame) -> pl.DataFrame:
    """Rows with the version that was there at their time under `RIGHT`; its time is null where there was none."""
    right = node.inputs[1]
    sided = [pl.col(name).alias(RIGHT + name) for name in (*ORDER, *right.values.names)]
    line = versions.select(pl.col(KEY).alias(FOREIGN), TS, TOMBSTONE, *sided).sort(TS)
    met = rows.sort(TS, maintain_order=True).join_asof(
        line, on=TS, by=FOREIGN, strategy="backward", check_sortedness=False
    )
    there = pl.col(TOMBSTONE).eq_missing(other=False) & ~pl.col(_OLD) & pl.col(FOREIGN).is_not_null()
    names = [RIGHT + name for name in (*ORDER, *right.values.names)]
    return met.with_columns(pl.when(there).then(pl.col(name)).alias(name) for name in names).drop(TOMBSTONE)


def _stored(node: HistoryJoin) -> dict[str, pl.DataType]:
    """What is kept of a version."""
    names = {KEY: SYSTEM[KEY], CONTRIBUTION: SYSTEM[KEY]}
    places = {name: SYSTEM[name] for name in ORDER}
    return {**names, **places, TOMBSTONE: pl.Boolean(), **node.inputs[1].values.polars}


def _version_name() -> pl.Expr:
    return pl.col(TS).cast(pl.String).cast(pl.Binary).alias(CONTRIBUTION)


def _width(node: HistoryJoin) -> int:
    """How long a slice of earlier versions is."""
    return max(1, max(node.history_ms, node.grace_ms) // 4)


KERNELS: Final = {HistoryJoin: StateKernel(update, prepare=prepare)}
