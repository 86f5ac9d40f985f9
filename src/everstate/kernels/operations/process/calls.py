"""The calls of one micro-batch, one after the other, and what they send on."""

from __future__ import annotations

import heapq
import json
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.errors import StateValueError
from everstate.kernels.functions import reason
from everstate.kernels.operations.process.context import Context, Moment
from everstate.kernels.operations.process.held import CLOCKS, Held
from everstate.kernels.output import stream_records
from everstate.kernels.records.keys import decode_keys
from everstate.kernels.records.python_rows import to_frame
from everstate.kernels.rows import KEY, OFF, PART, SYSTEM, TOPIC, TS
from everstate.schema.keys import decode_key

if TYPE_CHECKING:
    from everstate.kernels.epochs import Epoch
    from everstate.kernels.ledger import Ledger
    from everstate.kernels.operations.process.held import Clock, Timer
    from everstate.schema.schema import Schema
    from everstate.topology.functions import Function
    from everstate.topology.nodes import Process

#: What is said of a timer whose call has failed.
_LETTER: Final[dict[str, pl.DataType]] = {
    KEY: pl.Binary(),
    **{name: SYSTEM[name] for name in (TS, TOPIC, PART, OFF)},
    "value": pl.Binary(),
    "timer": pl.String(),
}


class Calls:
    """Calls the functions of a processor, and collects what they send on.

    Args:
        node: The processor.
        ledger: Takes what fails.
        held: What is kept of each key that has rows or is due.
        frontier: The stream time that everything which feeds the step had reached before; None if that is not known.
    """

    def __init__(self, node: Process, ledger: Ledger, held: dict[bytes, Held], frontier: int | None = None) -> None:
        self.ledger = ledger
        self._node = node
        self._held = held
        self._sent: dict[str | None, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {}
        self._clock: int | None = None
        self._frontier = self._least = frontier
        self._queues: dict[Clock, list[tuple[int, bytes, str]]] = {clock: [] for clock in CLOCKS}
        for key, mine in held.items():
            for name, timer in mine.timers.items():
                self._queues[timer.clock].append((timer.at, key, name))
        for queue in self._queues.values():
            heapq.heapify(queue)

    def begin(self, epoch: Epoch) -> None:
        """An epoch begins."""
        self._clock = epoch.clock

    def call(self, key: bytes, moment: Moment, value: Any) -> str | None:
        """Call the function for a row; the reason if it fails."""
        return self._called(self._node.fn, key, moment, (value,))

    def fire(self, clock: Clock, until: int | None) -> None:
        """Call the function for all timers that are due by a clock, in the order of time, key and name.

        Args:
            clock: Which.
            until: How far it has come; None if that is not known.
        """
        function, queue = self._node.on_timer, self._queues[clock]
        before = self._frontier
        if clock == "event":
            self._frontier = until if until is not None else before
        if until is None or function is None:
            return
        letters: list[tuple[Any, ...]] = []
        reasons: list[str] = []
        while queue and queue[0][0] <= until:
            at, key, name = heapq.heappop(queue)
            timer = self._held[key].timers.get(name)
            if timer is None or (timer.at, timer.clock) != (at, clock):
                continue  # it was moved or cancelled
            self._held[key].fired(name)
            failure = self._called(function, key, self._moment(key, name, timer, before), ())
            if failure is not None:
                letters.append(_letter(key, name, timer))
                reasons.append(f"timer {name!r}: {failure}")
        if letters:
            self.ledger.dead(pl.DataFrame(letters, schema=_LETTER, orient="row"), reasons, self._node)

    def _moment(self, key: bytes, name: str, timer: Timer, frontier: int | None) -> Moment:
        st = max(timer.at, timer.st)
        if timer.clock == "wall" and frontier is not None:
            st = max(st, frontier)  # what comes out must not fall into what is final downstream
        parts = decode_key(key, self._node.key)
        place = (timer.topic, timer.partition, timer.offset)
        return Moment(parts, timer.at, st, *place, self._clock, (name, timer.clock))

    def _called(self, function: Function, key: bytes, moment: Moment, arguments: tuple[Any, ...]) -> str | None:
        mine = self._held[key]
        sent: list[tuple[str | None, dict[str, Any]]] = []
        context = Context(self._node, mine, moment, sent)
        timers = dict(mine.timers) if mine.timers else {}
        mine.begin()
        try:
            result = _unchanged(function, *arguments, context)
            if result is not None:
                context.forward(result)
        except Exception as error:  # noqa: BLE001 - whatever the user's code raises
            mine.end(failed=True)
            return reason(error, function)
        finally:
            context.close()
        mine.end(failed=False)
        for name, timer in mine.timers.items():
            if timers.get(name) != timer:
                heapq.heappush(self._queues[timer.clock], (timer.at, key, name))
        place = (key, 1, moment.time, moment.topic, moment.partition, moment.offset, moment.st)
        for to, row in sent:
            self._sent.setdefault(to, []).append((place, row))
        return None

    def rows(self) -> pl.DataFrame:
        """The rows of the processor itself; what was sent to its sides goes to their topics."""
        for side in self._node.exits:
            topic = self.ledger.route(side.name)
            if topic is not None and side.name in self._sent:
                rows, values = self._frame(side.name, side.schema), side.schema.without(self._node.key.names)
                self.ledger.aside(topic, stream_records(rows, values, "json", self._least))
        return self._frame(None, self._node.schema)

    def _frame(self, to: str | None, schema: Schema) -> pl.DataFrame:
        sent, key = self._sent.get(to, []), self._node.key
        system = pl.DataFrame([place for place, _ in sent], schema=SYSTEM, orient="row")
        columns, _ = decode_keys(system[KEY], key)
        values = to_frame([row for _, row in sent], schema.without(key.names))
        named = [columns[name].alias(name) for name in key.names]
        return pl.concat([system, pl.DataFrame(named), values], how="horizontal").select(*SYSTEM, *schema.names)


def _unchanged(function: Function, *arguments: Any) -> Any:
    """Call a function; if it belongs to an object, that has to stay as it is.

    Raises:
        StateValueError: If an attribute was set: another worker, or the next start, would not have it.
    """
    owner = getattr(function.call, "__self__", None)
    if owner is None or not hasattr(owner, "__dict__"):
        return function.call(*arguments)
    before = dict(vars(owner))
    try:
        return function.call(*arguments)
    finally:
        _restored(function, vars(owner), before)


def _restored(function: Function, now: dict[str, Any], before: dict[str, Any]) -> None:
    changed = [name for name in {**before, **now} if name not in before or before[name] is not now.get(name, now)]
    if changed:
        now.clear()
        now.update(before)
        raise StateValueError(
            f"{function.name} has set self.{min(changed)}, which would be lost",
            hint="Keep it in a state: process(..., states=[es.value('name', float)])",
        )


def _letter(key: bytes, name: str, timer: Timer) -> tuple[Any, ...]:
    said = json.dumps({"timer": name, "time": timer.at, "clock": timer.clock}).encode()
    return key, timer.at, timer.topic, timer.partition, timer.offset, said, name
