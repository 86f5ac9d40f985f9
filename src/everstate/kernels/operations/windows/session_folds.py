"""Sessions that are folded with the user's own functions, `merge` among them: a row per open session is kept.

As in Kafka Streams, each row in the order of its arrival brings the sessions together that it touches: they are merged
into a new aggregate in the order of their beginning, then the row is added. Where the functions depend on an order, so
does the result; the order of arrival is recorded, so a recalculation takes the same one. Which rows count, and when a
session is final, is as for all windows that rows make (`row_windowed.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.kernels.changes import shaped
from everstate.kernels.functions import row_values
from everstate.kernels.keying import rekeyed
from everstate.kernels.operations.fold import fold, refolding
from everstate.kernels.operations.fold.folding import Folding, RefusedError
from everstate.kernels.operations.kernel import StateKernel
from everstate.kernels.operations.windows.assign import BEGIN, LAST, bounded, carried, dated, on_time
from everstate.kernels.operations.windows.merged_sessions import LAST_MS, SESSIONS, due, given
from everstate.kernels.order import by_arrival
from everstate.kernels.pages.due_index import DueIndex
from everstate.kernels.records.python_rows import to_frame
from everstate.kernels.rows import CONTRIBUTION, KEY, OP, ORDER, STREAM_TIME, SYSTEM, TS, empty
from everstate.kernels.stream_time import require_open
from everstate.schema.schema import SCALAR_COLUMN
from everstate.topology.nodes import SessionFold

if TYPE_CHECKING:
    from everstate.kernels.ledger import Ledger
    from everstate.kernels.shard import Shard

#: What is kept of a session beside its group and its aggregate: its name, its bounds, its latest position.
_KEPT: Final[dict[str, pl.DataType]] = {
    KEY: pl.Binary(),
    CONTRIBUTION: pl.Binary(),
    BEGIN: pl.Int64(),
    LAST_MS: pl.Int64(),
    **{name: SYSTEM[name] for name in ORDER},
}


@dataclass
class _Session:
    """An open session: its bounds, its aggregate, its latest position, and the columns of its group."""

    begin: int
    last: int
    value: dict[str, Any]
    position: tuple[Any, ...]
    group: dict[str, Any]


def prepare(
    node: SessionFold, port: int, rows: pl.DataFrame, ledger: Ledger, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Give rows their group."""
    del port, emit_moves
    rows = rekeyed(node.keying, fold.with_inputs(node, dated(node, rows, ledger)), ledger, node)
    rows = rows.with_columns(pl.col(TS).alias(BEGIN), pl.lit(1, pl.Int64).alias(LAST))
    if node.late_to is None:
        rows = on_time(node, rows, ledger)
    seen = [refolding.INPUT + name for name in node.inputs[0].schema.names]
    more = [name for name in carried(rows) if name != STREAM_TIME]
    return rows.select(*SYSTEM, CONTRIBUTION, *node.keying.key.names, *seen, *more)


def update(
    node: SessionFold, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Add rows to the sessions of their groups, then publish and delete what is due.

    Args:
        node: The node.
        number: Under which it keeps its state.
        inputs: Rows under the key of their group.
        shard: Holds the sessions, and knows how far time has come.
        emit_moves: What has only moved in time is a change as well.
    """
    slices = shard.sliced(number)
    before = slices.reached
    now = before if shard.frontier is None else max(before, shard.frontier)
    index = DueIndex(slices, max(1, node.gone_ms // 4))
    rows = on_time(node, inputs[0], shard.ledger)
    require_open(node, rows[TS] + node.close_ms, before)
    touched = pl.concat([rows[KEY], index.pop(now)]).unique(maintain_order=True).alias(KEY).to_frame()
    slices.reached = now
    if touched.is_empty():
        return empty(dict(node.schema.polars))
    store = shard.multi(number, SESSIONS)
    held = shaped(store.lookup(touched), _stored(node))
    sessions = _folded(node, by_arrival(rows, shard.order), held, shard.ledger)
    live = sessions.filter(pl.col(LAST_MS) + node.gone_ms > now)
    gone = held.join(live, on=[KEY, CONTRIBUTION], how="anti").select(KEY, CONTRIBUTION)
    store.apply(live, gone)
    index.add(due(node, live, now))

    def shown(sessions: pl.DataFrame) -> pl.DataFrame:
        return _results(node, sessions)

    return given(node, shown, (held, sessions), (before, now), moves=emit_moves)


def _stored(node: SessionFold) -> dict[str, pl.DataType]:
    group = dict(zip(node.keying.key.names, node.keying.key.dtypes, strict=True))
    return {**_KEPT, **group, **node.values.polars}


def _folded(node: SessionFold, rows: pl.DataFrame, held: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """The sessions after the rows, one after the other in their order."""
    groups = _sessions(node, held)
    calls, names = Folding(node), node.keying.key.names
    places = rows.select(KEY, *ORDER, *names).iter_rows(named=True)
    failures: dict[int, str] = {}
    for number, (row, seen) in enumerate(zip(places, refolding.row_inputs(node, rows), strict=True)):
        sessions = groups.setdefault(row[KEY], [])
        near = [s for s in sessions if s.begin - node.size_ms <= row[TS] <= s.last + node.size_ms]
        try:
            value = calls.joined(node.merge, [session.value for session in near], seen)
        except RefusedError as error:
            failures[number] = str(error)
            continue
        rest = [session for session in sessions if session not in near]
        if value is not None:
            begin, last = min([row[TS], *(s.begin for s in near)]), max([row[TS], *(s.last for s in near)])
            position = max([tuple(row[name] for name in ORDER), *(session.position for session in near)])
            rest.append(_Session(begin, last, value, position, {name: row[name] for name in names}))
        groups[row[KEY]] = sorted(rest, key=lambda session: session.begin)
    refolding.report(node, rows[sorted(failures)], [failures[place] for place in sorted(failures)], ledger)
    return _frame(node, groups)


def _sessions(node: SessionFold, held: pl.DataFrame) -> dict[bytes, list[_Session]]:
    """What is held, by group, in the order of its beginning."""
    held = held.sort(KEY, BEGIN)
    found: dict[bytes, list[_Session]] = {}
    names = node.keying.key.names
    for row, value in zip(held.iter_rows(named=True), row_values(held, node.values), strict=True):
        aggregate = {SCALAR_COLUMN: value} if node.values.scalar else value
        position, group = tuple(row[name] for name in ORDER), {name: row[name] for name in names}
        session = _Session(row[BEGIN], row[LAST_MS], aggregate, position, group)
        found.setdefault(row[KEY], []).append(session)
    return found


def _frame(node: SessionFold, groups: dict[bytes, list[_Session]]) -> pl.DataFrame:
    """Sessions as they are stored."""
    every = [(key, session) for key, sessions in groups.items() for session in sessions]
    rows = [
        {
            KEY: key,
            CONTRIBUTION: str(session.begin).encode(),
            BEGIN: session.begin,
            LAST_MS: session.last,
            **dict(zip(ORDER, session.position, strict=True)),
            **session.group,
        }
        for key, session in every
    ]
    columns = _stored(node)
    places = pl.DataFrame(rows, schema={name: columns[name] for name in columns if name not in node.values.polars})
    values = to_frame([session.value for _, session in every], node.values)
    return places.hstack(values).select(list(columns))


def _results(node: SessionFold, sessions: pl.DataFrame) -> pl.DataFrame:
    """The results of sessions, one row each."""
    if sessions.is_empty():
        return empty(dict(node.schema.polars))
    found = bounded(node, sessions, pl.col(BEGIN), pl.col(LAST_MS)).with_columns(
        pl.lit(1, pl.Int8).alias(OP), pl.col(LAST_MS).alias(TS), pl.col(LAST_MS).alias(STREAM_TIME)
    )
    return found.select(*SYSTEM, *node.schema.names)


KERNELS: Final = {SessionFold: StateKernel(update, prepare=prepare)}
