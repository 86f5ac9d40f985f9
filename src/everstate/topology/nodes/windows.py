"""Aggregations of a stream by group and window of time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Final

from everstate.schema.durations import milliseconds
from everstate.topology.nodes.grouping import Aggregate, Fold, Grouping
from everstate.topology.traits import Traits

#: The key columns of a window.
START: Final = "window_start"
END: Final = "window_end"

#: A window that is over leaves the state, so no table can be read from there, and nothing that is there be converted.
_WINDOWED: Final = Traits(
    on_shard=True, keeps_state=True, regroups=True, rekeys_input=(0,), timed=True, accumulates=True
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Windowed(Grouping):
    """A step whose groups are also apart by time; the key is the group, then start and end of the window.

    A window `[start, start + size)` begins at each multiple of `advance`. It closes when stream time reaches its end
    plus `grace`.

    Attributes:
        shape: "tumbling" or "hopping".
        size: How long a window is.
        advance: From the start of one window to that of the next; None if one begins where the other ends.
        grace: How long after its end a window takes rows.
        emit: "update" publishes results as they change, "final" once the window has closed.
        keep: How long after its end a result stays on the topic; None for ever.
        late_to: "dead-letters" if rows that came too late for all windows shall be seen; None if they are counted.
    """

    shape: str
    size: str
    advance: str | None = None
    grace: str
    emit: str
    keep: str | None = None
    late_to: str | None = None

    @cached_property
    def size_ms(self) -> int:
        """The size in milliseconds."""
        return milliseconds(self.size)

    @cached_property
    def advance_ms(self) -> int:
        """From start to start, in milliseconds."""
        return self.size_ms if self.advance is None else milliseconds(self.advance)

    @cached_property
    def close_ms(self) -> int:
        """From the start of a window to the stream time that closes it."""
        return self.size_ms + milliseconds(self.grace)

    @cached_property
    def keep_ms(self) -> int | None:
        """From the start of a window to the stream time that deletes its result; None for never."""
        return None if self.keep is None else self.size_ms + milliseconds(self.keep)

    @property
    def final(self) -> bool:
        """Whether results are published only once they are final."""
        return self.emit == "final"


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
