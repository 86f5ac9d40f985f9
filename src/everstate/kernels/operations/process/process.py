"""`process`: a function on each row of a stream, with named states of its key, timers and several ways out.

A micro-batch is gone through epoch by epoch, as the live run did: timers that are due by the recorded clock, rows in
the order of arrival, timers that are due by the time which everything that feeds the step has reached. A call that
raises is a dead letter and leaves nothing behind; a timer that does so does not fire again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.kernels.changes import shaped
from everstate.kernels.epochs import epochs
from everstate.kernels.functions import Outcome, report, row_values
from everstate.kernels.operations.kernel import StateKernel
from everstate.kernels.operations.process.calls import Calls
from everstate.kernels.operations.process.context import Moment
from everstate.kernels.operations.process.held import CLOCKS, Held
from everstate.kernels.operations.user_state import decode
from everstate.kernels.pages.due_index import DUE
from everstate.kernels.pages.due_wheel import DueWheel
from everstate.kernels.rows import KEY, OFF, PART, STREAM_TIME, TOPIC, TS
from everstate.kernels.stream_time import frontier
from everstate.topology.nodes import Process

if TYPE_CHECKING:
    from everstate.kernels.epochs import Epoch
    from everstate.kernels.operations.process.held import Clock
    from everstate.kernels.shard import Shard

#: The columns that hold a key's states and timers, and by which time an index has it.
STATE: Final = "state"
TIMERS: Final = "timers"
_NOTED: Final[dict[Clock, str]] = {"event": "noted", "wall": "noted_wall"}

#: What is stored of a key.
STORED: Final[dict[str, pl.DataType]] = {
    KEY: pl.Binary(),
    STATE: pl.Binary(),
    TIMERS: pl.Binary(),
    **dict.fromkeys(_NOTED.values(), pl.Int64()),
}
_NO_KEYS: Final = pl.Series(KEY, [], dtype=pl.Binary)


def update(
    node: Process, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Call the function for each row of a micro-batch, and for each timer that is due.

    Args:
        node: The node.
        number: Under which it keeps its state.
        inputs: The stream's rows; those without a key are dropped and counted.
        shard: Holds the states and timers of each key, an index of when keys are due, and what was heard of time.
        emit_moves: Makes no difference: a stream's rows stand as they are.
    """
    del emit_moves
    keyed = inputs[0].filter(pl.col(KEY).is_not_null())
    shard.ledger.drop("null_key", inputs[0].height - keyed.height)
    found = epochs([keyed], shard)
    reached = _Reached(found)
    used: dict[Clock, bool] = {"event": node.timed, "wall": node.clocked}
    indices = {clock: DueWheel(shard.sliced(number, slot)) for slot, clock in enumerate(CLOCKS) if used[clock]}
    held = _held(node, number, keyed, shard, indices, reached)
    calls = Calls(node, shard.ledger, held, frontier(shard.times_before, shard.feeds))
    for epoch in found:
        _gone_through(node, epoch, calls)
    _stored(number, shard, held, indices, reached)
    return calls.rows()


class _Reached:
    """How far the clocks have come at the end of a micro-batch."""

    def __init__(self, found: list[Epoch]) -> None:
        fronts = [epoch.frontier for epoch in found if epoch.frontier is not None]
        clocks = [epoch.clock for epoch in found if epoch.clock is not None]
        self.by: dict[Clock, int | None] = {"event": max(fronts, default=None), "wall": max(clocks, default=None)}


def _held(
    node: Process, number: int, rows: pl.DataFrame, shard: Shard, indices: dict[Clock, DueWheel], reached: _Reached
) -> dict[bytes, Held]:
    """What is kept of the keys that have rows, and of those for which something is due."""
    due = {clock: index.pop(now) for clock, index in indices.items() if (now := reached.by[clock]) is not None}
    keys = pl.concat([rows[KEY], *due.values()]).unique(maintain_order=True)
    if keys.is_empty():
        return {}
    stored = shaped(shard.keyed(number).lookup(keys.to_frame()), STORED)
    held = {key: Held(node.states) for key in keys}
    for key, blob, timers, *noted in stored.iter_rows():
        held[key] = Held(node.states, blob, timers, (noted[0], noted[1]))
    for clock, popped in due.items():
        for key in popped:
            held[key].noted[clock] = None
            held[key].written = True
    return held


def _gone_through(node: Process, epoch: Epoch, calls: Calls) -> None:
    """One epoch."""
    calls.begin(epoch)
    calls.fire("wall", epoch.clock)
    rows = epoch.inputs[0]
    if rows.height:
        outcome = Outcome()
        keys = rows.select(node.key.names).rows()
        places = rows.select(KEY, TS, STREAM_TIME, TOPIC, PART, OFF).iter_rows()
        values = row_values(rows, node.inputs[0].schema)
        for place, (parts, value, (key, *where)) in enumerate(zip(keys, values, places, strict=True)):
            failure = calls.call(key, Moment._make((parts, *where, epoch.clock, None)), value)
            if failure is not None:
                outcome.failures[place] = failure
        report(outcome, rows, calls.ledger, node)
    calls.fire("event", epoch.frontier)


def _stored(
    number: int, shard: Shard, held: dict[bytes, Held], indices: dict[Clock, DueWheel], reached: _Reached
) -> None:
    """Write what has changed, and note in the indices when keys are due that they do not have early enough."""
    entries: dict[Clock, list[tuple[bytes, int]]] = {clock: [] for clock in indices}
    kept: list[tuple[Any, ...]] = []
    gone: list[bytes] = []
    for key, mine in held.items():
        if not mine.written:
            continue
        if (now := reached.by["event"]) is not None:
            mine.drop_expired(now)
        blob, timers = mine.blob(), mine.timer_blob()
        if not blob and not timers:
            gone.append(key)
            continue
        for clock in indices:
            due, noted = mine.due(clock), mine.noted[clock]
            if due is not None and (noted is None or due < noted):
                entries[clock].append((key, due))
                mine.noted[clock] = due
        kept.append((key, blob, timers, *(mine.noted[clock] for clock in CLOCKS)))
    for clock, some in entries.items():
        if some:
            frame = pl.DataFrame(some, schema={KEY: pl.Binary(), DUE: pl.Int64()}, orient="row")
            now = reached.by[clock]
            indices[clock].add(frame, now=min(due for _, due in some) if now is None else now)
    if kept or gone:
        frame = pl.DataFrame(kept, schema=STORED, orient="row")
        shard.keyed(number).apply(frame, pl.Series(KEY, gone, dtype=pl.Binary) if gone else _NO_KEYS)


def contents(node: Process, number: int, shard: Shard) -> pl.DataFrame:
    """The states and timers of each key."""
    del node
    return shaped(shard.keyed(number).scan(), STORED).select(KEY, STATE, TIMERS)


def shown(row: dict[str, Any]) -> str:
    """What is kept of a key, for people."""
    timers = [f"timer {name} at {parts[0]}" for name, parts in json.loads(row[TIMERS] or b"{}").items()]
    return ", ".join([repr(decode(row[STATE])), *timers])


KERNELS: Final = {Process: StateKernel(update, contents=contents, shown=shown)}
