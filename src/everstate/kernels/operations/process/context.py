"""What a processor's function is given beside its row: the key, the time, the named states, timers and ways out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from everstate.errors import RecordError, StateValueError
from everstate.errors.calls import suggestion
from everstate.kernels.operations.process.cells import HANDLES
from everstate.kernels.operations.process.held import CLOCKS, Clock, Timer
from everstate.kernels.operations.stateless import without_key
from everstate.schema.record_values import check_row

if TYPE_CHECKING:
    from everstate.kernels.operations.process.held import Held
    from everstate.schema.schema import Schema
    from everstate.topology.nodes import Process

_LAST: Final = 1 << 62
_MILLISECOND: Final = timedelta(milliseconds=1)


class Moment(NamedTuple):
    """Where and when a call happens.

    Attributes:
        key: The key, by column.
        time: Of the row, or of the timer.
        st: Its stream time.
        topic: Of the row, or of the row that has set the timer; by its place among the unit's.
        partition: In it.
        offset: In that.
        clock: The recorded wall clock; None if there is none.
        due: The timer that is due, and by what it goes; None for a row.
    """

    key: tuple[Any, ...]
    time: int
    st: int
    topic: int
    partition: int
    offset: int
    clock: int | None
    due: tuple[str, Clock] | None = None


class Context:
    """What a processor's function is given as its second argument, and `on_timer` as its only one.

    Each state that the processor declares is an attribute: `ctx.last` for `es.value("last", float)`. It can be used
    only while the function runs, and reaches nothing of other keys. If the function raises, everything that it has
    changed, set or forwarded is undone.

    Example:
        >>> import everstate as es
        >>> app = es.Service("docs")
        >>> readings = app.stream("readings", key="patient", schema={"pulse": int})
        >>> def watch(row, ctx):
        ...     ctx.timer("silent", at=ctx.time + 60_000)
        >>> def silent(ctx):
        ...     return {"alarm": f"nothing from {ctx.key} since {ctx.time - 60_000}"}
        >>> _ = readings.process(watch, on_timer=silent, schema={"alarm": str}).to("alarms")
        >>> driver = es.testing.Driver(app)
        >>> driver.send("readings", "ada", {"pulse": 70}, ts=0)
        >>> driver.send("readings", "bob", {"pulse": 75}, ts=60_000)
        >>> [record.value for record in driver.records("alarms")]
        [{'alarm': 'nothing from ada since 0'}]
    """

    __slots__ = ("_held", "_moment", "_node", "_sent")

    def __init__(
        self, node: Process, held: Held, moment: Moment, sent: list[tuple[str | None, dict[str, Any]]]
    ) -> None:
        self._node = node
        self._held: Held | None = held
        self._moment = moment
        self._sent = sent

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse `ctx.last = 5`: what is kept of a key is in its states."""
        if name.startswith("_"):
            object.__setattr__(self, name, value)
            return
        known = any(state.name == name for state in self._node.states)
        raise StateValueError(
            f"ctx.{name} cannot be set",
            hint=f"Write ctx.{name}.set(...)" if known else "Keep it in a state: states=[es.value('last', float)]",
        )

    @property
    def key(self) -> Any:
        """The key of the row; a tuple if it has several columns."""
        key = self._moment.key
        return key[0] if len(key) == 1 else key

    @property
    def time(self) -> int:
        """When the row happened, or the time for which the timer was set, in milliseconds since 1970."""
        return self._moment.time

    @property
    def stream_time(self) -> int:
        """The stream time at the row: the highest time of its partition so far. It decides the lifetimes of states."""
        return self._moment.st

    @property
    def now(self) -> int:
        """The wall clock as it was recorded with this micro-batch, in milliseconds: the same in a recalculation.

        Raises:
            StateValueError: If it is not recorded, since the processor was not known to use it.
        """
        self._open()
        if self._moment.clock is None or not self._node.wall_clock:
            raise _no_clock()
        return self._moment.clock

    @property
    def due(self) -> str | None:
        """The name of the timer that is due; None in a call for a row."""
        return None if self._moment.due is None else self._moment.due[0]

    def timer(self, name: str, at: int | datetime, clock: Clock = "event") -> None:
        """Have `on_timer` called for this key at a time; a timer of that name that is already set is moved.

        An event timer is due once every partition of the streams that feed the processor has reached its time, after
        the rows of that micro-batch; timers of one micro-batch fire in the order of their times. A wall timer is due
        with the first micro-batch whose recorded clock has reached its time, before the rows of that micro-batch.

        Args:
            name: Its name; a key has one timer of each name.
            at: When: milliseconds since 1970, or a datetime with a time zone.
            clock: "event" for the time of rows, "wall" for the wall clock.

        Raises:
            StateValueError: If there is no `on_timer`, the time is not valid, or a timer that is due would set itself
                to a time that is not later than its own.
        """
        held = self._open()
        if self._node.on_timer is None:
            raise StateValueError("there is no on_timer function", hint="Pass one: process(f, on_timer=g)")
        _require_name(name)
        if clock not in CLOCKS:
            raise StateValueError(
                f"clock={clock!r} is neither 'event' nor 'wall'", hint=f"{suggestion(clock, CLOCKS)}Use clock='event'."
            )
        if clock == "wall" and not self._node.wall_clock:
            raise _no_clock()
        time = _milliseconds(at)
        moment = self._moment
        if moment.due is not None and moment.due[1] == clock and time <= moment.time:
            raise StateValueError(
                f"timer {moment.due[0]!r}, due at {moment.time}, sets {name!r} to {time}, which is not later",
                hint="A timer that goes on has to move forward: at=ctx.time + 60_000",
            )
        held.set_timer(name, Timer(time, clock, moment.st, moment.topic, moment.partition, moment.offset))

    def cancel(self, name: str) -> None:
        """Cancel a timer of this key; nothing happens if there is none."""
        held = self._open()
        _require_name(name)
        if name in held.timers:
            held.set_timer(name, None)

    def forward(self, value: Any, to: str | None = None) -> None:
        """Send a row on, with the key of this one and its time; several calls send several.

        Args:
            value: What the schema says: a dict, an instance of a dataclass, or the bare value of a scalar.
            to: A side that the processor declares; by default the processor's own rows, where its result goes, too.

        Raises:
            RecordError: If the value does not fit, or there is no such side.
        """
        self._open()
        self._sent.append((to, self._fitting(value, to)))

    def _fitting(self, value: Any, to: str | None) -> dict[str, Any]:
        node = self._node
        schema: Schema | None = node.schema
        if to is not None:
            schema = next((side.schema for side in node.exits if side.name == to), None)
        if schema is None:
            names = [side.name for side in node.exits]
            raise RecordError(
                f"there is no side {to!r}",
                hint=f"{suggestion(to, names)}Declare it: process(..., sides={{{to!r}: {{...}}}})",
            )
        try:
            return check_row(without_key(node, self._moment.key, value), schema.without(node.key.names))
        except RecordError as error:
            where = "wrong result" if to is None else f"side {to!r}"
            raise RecordError(f"{where}: {error.message}") from None

    def __getattr__(self, name: str) -> Any:
        """A named state."""
        if name.startswith("_"):
            raise AttributeError(name)
        state = next((state for state in self._node.states if state.name == name), None)
        if state is None:
            names = [state.name for state in self._node.states]
            raise StateValueError(
                f"there is no state {name!r}",
                hint=f"{suggestion(name, names)}Declare it: process(..., states=[es.value({name!r}, float)])",
            )
        return HANDLES[state.shape](self, state)

    def __repr__(self) -> str:
        return f"Context(key={self.key!r}, time={self.time})"

    def _open(self) -> Held:
        """What is kept of the key.

        Raises:
            StateValueError: If the call is over.
        """
        if self._held is None:
            raise StateValueError(
                "this context belongs to a row that has been processed",
                hint="Use the one that the function is called with; do not keep it.",
            )
        return self._held

    def close(self) -> None:
        """The call is over."""
        self._held = None


def _require_name(name: object) -> None:
    if not isinstance(name, str) or not name or any("\ud800" <= sign <= "\udfff" for sign in name):
        raise StateValueError(f"the name of a timer is text, not {name!r}", hint="ctx.timer('silent', at=...)")


def _milliseconds(at: object) -> int:
    if isinstance(at, datetime) and at.tzinfo is not None:
        at = (at - datetime(1970, 1, 1, tzinfo=UTC)) // _MILLISECOND
    if not isinstance(at, int) or isinstance(at, bool) or not 0 <= at < _LAST:
        raise StateValueError(
            f"at={at!r} is not a time",
            hint="Pass whole milliseconds since 1970, such as ctx.time + 60_000, or a datetime with a time zone.",
        )
    return at


def _no_clock() -> StateValueError:
    return StateValueError(
        "the wall clock is not recorded for this processor",
        hint="Say that it is used: process(..., wall_clock=True)",
    )
