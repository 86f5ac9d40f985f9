"""Aggregations of a stream by group and window of time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final

from everstate.schema.durations import milliseconds
from everstate.schema.windowed_keys import WindowedKeys
from everstate.topology.nodes.grouping import Aggregate, Fold, Grouping
from everstate.topology.nodes.node import Kind, Side
from everstate.topology.traits import Traits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everstate.topology.functions import Function
    from everstate.topology.nodes.node import Node

#: The key columns of a window.
START: Final = "window_start"
END: Final = "window_end"

#: A window that is over leaves the state, so no table can be read from there, and nothing that is there be converted.
_WINDOWED: Final = Traits(
    on_shard=True, keeps_state=True, regroups=True, rekeys_input=(0,), timed=True, accumulates=True
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Spanned(Grouping):
    """A step whose groups are also apart by time; the key is the group, then start and end of the window.

    A window `[start, start + size)` begins at each multiple of `advance`.

    Attributes:
        shape: "tumbling" or "hopping"; "session" or "sliding" where rows make the windows.
        size: How long a window is.
        advance: From the start of one window to that of the next; None if one begins where the other ends.
    """

    labelled: ClassVar[frozenset[str]] = frozenset({"size", "advance"})
    shape: str
    size: str
    advance: str | None = None

    @cached_property
    def size_ms(self) -> int:
        """The size in milliseconds."""
        return milliseconds(self.size)

    @cached_property
    def advance_ms(self) -> int:
        """From start to start, in milliseconds."""
        return self.size_ms if self.advance is None else milliseconds(self.advance)

    @property
    def window_keys(self) -> WindowedKeys | None:
        """Of its own windows."""
        return WindowedKeys(None if self.session else self.size_ms)

    @property
    def session(self) -> bool:
        """Whether windows are sessions."""
        return self.shape == "session"


@dataclass(frozen=True, eq=False, kw_only=True)
class Windowed(Spanned):
    """Windows of a stream: one closes when stream time reaches its end plus `grace`.

    Attributes:
        grace: How long after its end a window takes rows.
        emit: "update" publishes results as they change, "final" once the window has closed.
        keep: How long after its end a result stays on the topic; None for ever.
        late_to: The topic for rows that came too late for all windows; None if they are only counted.
    """

    labelled: ClassVar[frozenset[str]] = Spanned.labelled | {"grace", "emit", "keep", "late_to"}
    grace: str
    emit: str
    keep: str | None = None
    late_to: str | None = None

    @cached_property
    def close_ms(self) -> int:
        """From the start of a window to the stream time that closes it."""
        return self.size_ms + milliseconds(self.grace)

    @cached_property
    def keep_ms(self) -> int | None:
        """From the start of a window to the stream time that deletes its result; None for never."""
        return None if self.keep is None else self.size_ms + milliseconds(self.keep)

    @property
    def sides(self) -> tuple[Side, ...]:
        """The topic for late rows: a table by position, so that a recalculation does not repeat them."""
        return () if self.late_to is None else (Side(self.late_to, Kind.TABLE),)

    def when_final(self, produced: Mapping[str, Node]) -> Node | None:
        """The same windows, of which each result is published once."""
        del produced
        return replace(self, emit="final")

    @property
    def final(self) -> bool:
        """Whether results are published only once they are final."""
        return self.emit == "final"


@dataclass(frozen=True, eq=False, kw_only=True)
class RowWindowed(Windowed):
    """A step whose windows begin and end with rows; both ends belong to them.

    A session is a run of rows at a distance of at most `size`, the gap. A sliding window is `size` long and ends with a
    row, or begins just after one. Rows of one group make its windows, so they are brought to the shard of the group.
    """

    @cached_property
    def close_ms(self) -> int:
        """From a row to the stream time at which it is too late for every window."""
        return self.size_ms + milliseconds(self.grace) + 1

    @cached_property
    def closes_ms(self) -> int:
        """From the end of a window to the stream time that closes it.

        A session waits for two gaps: a row that is not late may still lie one gap after its end, and join it to a
        later one.
        """
        wait = 2 * self.size_ms if self.session else 0
        return wait + milliseconds(self.grace) + 1

    @cached_property
    def gone_ms(self) -> int:
        """From the end of a window to the stream time at which nothing is kept of it."""
        return max(self.closes_ms, 0 if self.keep is None else milliseconds(self.keep))


@dataclass(frozen=True, eq=False, kw_only=True)
class WindowAggregate(Windowed, Aggregate):
    """`group_by().window().agg()`."""

    operation: ClassVar[str] = "windowed aggregate"
    methods: ClassVar[tuple[str, ...]] = ("window",)
    traits: ClassVar[Traits] = _WINDOWED


@dataclass(frozen=True, eq=False, kw_only=True)
class WindowFold(Windowed, Fold):
    """`group_by().window().reduce()` and `.aggregate()`."""

    operation: ClassVar[str] = "windowed aggregate"
    methods: ClassVar[tuple[str, ...]] = ("window",)
    traits: ClassVar[Traits] = replace(_WINDOWED, order_sensitive=True)


@dataclass(frozen=True, eq=False, kw_only=True)
class RowWindowAggregate(RowWindowed, Aggregate):
    """`group_by().window(es.session(...)).agg()`, and with `es.sliding`."""

    operation: ClassVar[str] = "windowed aggregate"
    methods: ClassVar[tuple[str, ...]] = ("window",)
    traits: ClassVar[Traits] = replace(_WINDOWED, scatters=True, semantics=2)


@dataclass(frozen=True, eq=False, kw_only=True)
class RowWindowFold(RowWindowed, Fold):
    """`group_by().window(es.session(...)).reduce()` and `.aggregate()`: rows are kept, and folded by stream time."""

    operation: ClassVar[str] = "windowed aggregate"
    methods: ClassVar[tuple[str, ...]] = ("window",)
    traits: ClassVar[Traits] = replace(_WINDOWED, scatters=True, semantics=2)


@dataclass(frozen=True, eq=False, kw_only=True)
class SessionFold(RowWindowed, Fold):
    """`group_by().window(es.session(...)).aggregate()` with `merge`: sessions are kept, and none of their rows.

    Attributes:
        merge: (aggregate, aggregate) -> aggregate, for the sessions that a row brings together.
    """

    operation: ClassVar[str] = "windowed aggregate"
    methods: ClassVar[tuple[str, ...]] = ("window",)
    traits: ClassVar[Traits] = replace(_WINDOWED, scatters=True, order_sensitive=True)
    merge: Function
