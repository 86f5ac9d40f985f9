"""What a processor keeps of one key, during one micro-batch: its named states, its timers, and how to undo a call."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from everstate.kernels.operations.user_state import decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from everstate.topology.nodes import KeptState

#: By what a timer goes.
Clock: TypeAlias = Literal["event", "wall"]
CLOCKS: Final[tuple[Clock, ...]] = ("event", "wall")
#: No time comes that far, and an index of times has none that is later.
_NEVER: Final = 1 << 62


class Written(NamedTuple):
    """A stored value with the stream time at which it was written."""

    value: Any
    st: int


class Timer(NamedTuple):
    """When something is to happen, and the row that wanted it: its stream time and its position."""

    at: int
    clock: Clock
    st: int
    topic: int
    partition: int
    offset: int


class Held:
    """What is kept of one key.

    Args:
        states: What the processor keeps.
        blob: Its states as they are stored; empty if there are none. Read when they are first asked for.
        timers: Its timers as they are stored.
        noted: By clock, the time at which an index has the key; None if it has not.

    Attributes:
        written: Something has changed since it was read.
    """

    __slots__ = ("_blob", "_cells", "_journal", "_states", "noted", "timers", "written")

    def __init__(
        self,
        states: Sequence[KeptState],
        blob: bytes = b"",
        timers: bytes = b"",
        noted: tuple[int | None, int | None] = (None, None),
    ) -> None:
        self._states = states
        self._blob = blob
        self._cells: dict[str, Any] | None = None
        self._journal: list[Callable[[], Any]] = []
        plain: dict[str, list[Any]] = json.loads(timers) if timers else {}
        self.timers = {name: Timer(*parts) for name, parts in plain.items()}
        self.noted: dict[Clock, int | None] = dict(zip(CLOCKS, noted, strict=True))
        self.written = False

    @property
    def cells(self) -> dict[str, Any]:
        """By stored name a `Written`, a list of them, or a dict of them; what is empty is not there."""
        if self._cells is None:
            stored = decode(self._blob)
            self._cells = {s.stored_as: _read(s, stored[s.stored_as]) for s in self._states if s.stored_as in stored}
        return self._cells

    def undoable(self, undo: Callable[[], Any]) -> None:
        """Something is about to change; this takes it back."""
        self._journal.append(undo)

    def begin(self) -> None:
        """A call begins."""
        self._journal.clear()

    def end(self, *, failed: bool) -> None:
        """The call is over; of one that has failed nothing stays."""
        if not failed:
            self.written = self.written or bool(self._journal)
            return
        for undo in reversed(self._journal):
            undo()

    def put(self, name: str, cell: Any) -> None:
        """Put something in the place of a whole cell; None takes it away."""
        before = self.cells.get(name)
        self.undoable(lambda: self._place(name, before))
        self._place(name, cell)

    def _place(self, name: str, cell: Any) -> None:
        if cell is None:
            self.cells.pop(name, None)
        else:
            self.cells[name] = cell

    def set_timer(self, name: str, timer: Timer | None) -> None:
        """Set, move or cancel a timer."""
        before = self.timers.get(name)
        self.undoable(lambda: self._place_timer(name, before))
        self._place_timer(name, timer)

    def _place_timer(self, name: str, timer: Timer | None) -> None:
        if timer is None:
            self.timers.pop(name, None)
        else:
            self.timers[name] = timer

    def fired(self, name: str) -> None:
        """A timer is due: it does not fire again, whatever becomes of the call."""
        del self.timers[name]
        self.written = True

    def drop_expired(self, reached: int) -> None:
        """Let go what can no longer be seen, now that everything has reached this stream time."""
        for state in self._states:
            cell, life = self.cells.get(state.stored_as), state.ttl_ms
            if cell is None or life is None:
                continue
            left = _living(cell, reached - life)
            if left is not cell:
                self._place(state.stored_as, left or None)
                self.written = True

    def due(self, clock: Clock) -> int | None:
        """When there is something to do for the key by a clock: a timer, or what can no longer be seen."""
        times = [timer.at for timer in self.timers.values() if timer.clock == clock]
        if clock == "event":
            times += self._ends()
        return min(times, default=None)

    def _ends(self) -> Iterator[int]:
        for state in self._states:
            if state.ttl_ms is not None and (cell := self.cells.get(state.stored_as)):
                end = min(part.st for part in _parts(cell)) + state.ttl_ms
                if end < _NEVER:
                    yield end

    def blob(self) -> bytes:
        """The states as they are stored; empty if there are none."""
        return encode({name: _plain(cell) for name, cell in self.cells.items() if cell})

    def timer_blob(self) -> bytes:
        """The timers as they are stored; empty if there are none."""
        if not self.timers:
            return b""
        return json.dumps({name: self.timers[name] for name in sorted(self.timers)}, separators=(",", ":")).encode()


def _parts(cell: Any) -> list[Written]:
    if isinstance(cell, Written):
        return [cell]
    return list(cell.values()) if isinstance(cell, dict) else cell


def _living(cell: Any, until: int) -> Any:
    """What was written after a stream time; the same object if that is all."""
    if all(part.st > until for part in _parts(cell)):
        return cell
    if isinstance(cell, Written):
        return None
    if isinstance(cell, dict):
        return {key: part for key, part in cell.items() if part.st > until}
    return [part for part in cell if part.st > until]


def _plain(cell: Any) -> Any:
    if isinstance(cell, Written):
        return list(cell)
    if isinstance(cell, dict):
        return {key: list(cell[key]) for key in sorted(cell)}
    return [list(part) for part in cell]


def _read(state: KeptState, plain: Any) -> Any:
    if state.shape == "value":
        return Written(*plain)
    if state.shape == "map":
        return {key: Written(*part) for key, part in plain.items()}
    return [Written(*part) for part in plain]
