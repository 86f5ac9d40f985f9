"""What `group_by().window()` was given, checked, and the steps that it makes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, TypeVar

import polars as pl

from everstate.dsl.arguments import one_of, shown
from everstate.dsl.sources import event_time
from everstate.dsl.windows import Window, duration
from everstate.errors import DefinitionError, NameClashError, UnsupportedError
from everstate.schema.durations import milliseconds
from everstate.schema.keys import KeySpec
from everstate.schema.topic_names import check_topic_name
from everstate.topology.nodes import (
    Kind,
    RowWindowAggregate,
    RowWindowFold,
    SessionFold,
    Spanned,
    TableRowWindowAggregate,
    TableRowWindowFold,
    TableWindowAggregate,
    TableWindowFold,
    WindowAggregate,
    WindowFold,
)
from everstate.topology.nodes.windows import END, START

if TYPE_CHECKING:
    from everstate.location import Location
    from everstate.topology.functions import Function
    from everstate.topology.nodes import Aggregate, Fold, Keying, Node

_TIME: Final = pl.Datetime("us", "UTC")
_Made = TypeVar("_Made", bound=Spanned)


@dataclass(frozen=True)
class Windowing:
    """A window with how its results are published; see `Windowed` and, where there is a time, `TableWindowed`."""

    window: Window
    emit: str
    keep: str | None
    late_to: str | None
    time: pl.Expr | None = None

    def key(self, by: Keying, location: Location | None) -> KeySpec:
        """The key of the result: the group, then start and end of the window."""
        for name in (START, END):
            if name in by.key.names:
                raise NameClashError(
                    f"the group has a column named {name!r}, and so has the window",
                    location=location,
                    hint=f"Give it another name: group_by(begin='{name}')",
                )
        columns = dict(zip(by.key.names, by.key.dtypes, strict=True))
        return KeySpec.of({**columns, START: _TIME, END: _TIME}, location=location)

    def aggregate(self, found: Aggregate, by: Keying) -> Node:
        """The aggregation in each window."""
        if self.time is not None:
            return self._node(TableRowWindowAggregate if self._of_rows else TableWindowAggregate, found, by)
        return self._node(RowWindowAggregate if self._of_rows else WindowAggregate, found, by)

    def fold(self, found: Fold, by: Keying, merge: Function | None = None) -> Node:
        """The fold in each window; with `merge`, sessions are kept and not their rows."""
        if merge is not None:
            return self._node(SessionFold, found, by, {"merge": merge})
        if self.time is not None:
            return self._node(TableRowWindowFold if self._of_rows else TableWindowFold, found, by)
        return self._node(RowWindowFold if self._of_rows else WindowFold, found, by)

    @property
    def _of_rows(self) -> bool:
        """Whether windows begin and end with rows."""
        return self.window.shape in ("session", "sliding")

    def require_sessions(self, location: Location | None) -> None:
        """Only sessions of a stream are ever merged.

        Raises:
            UnsupportedError: If this is something else.
        """
        if self.window.shape != "session":
            raise UnsupportedError(
                f"merge= is for sessions, but this is a {self.window.shape} window",
                location=location,
                hint="No row ever brings two such windows together. Leave merge= out.",
            )
        if self.time is not None:
            raise UnsupportedError(
                "merge= works on streams, but this is a table",
                location=location,
                hint="A row of a table may change, and nothing takes it out of what was merged; its sessions are "
                "folded again from their rows. Leave merge= out.",
            )

    def _node(
        self, kind: type[_Made], found: Aggregate | Fold, by: Keying, more: dict[str, Any] | None = None
    ) -> _Made:
        given: dict[str, Any] = {field.name: getattr(found, field.name) for field in fields(found)}
        window = self.window
        own: dict[str, Any] = {"shape": window.shape, "size": window.size, "advance": window.advance, "keying": by}
        if self.time is not None:
            own |= {"time": self.time}
        else:
            own |= {"grace": window.grace, "emit": self.emit, "keep": self.keep, "late_to": self.late_to}
        return kind(**{**given, **own, **(more or {})})


def windowing(
    node: Node, window: object, options: dict[str, object], time: str | pl.Expr | None, location: Location | None
) -> Windowing:
    """What `window()` was given: the window, `emit`, `keep` and `late_to`, and the `time` of a table's rows.

    Raises:
        UnsupportedError: If it is not for a stream, or not for a table.
        DefinitionError: If an argument does not fit.
    """
    if not isinstance(window, Window):
        raise DefinitionError(
            f"window() needs a window, got {shown(window)}",
            location=location,
            hint="Write window(es.tumbling('5m')), es.hopping('1h', '5m'), es.sliding('10m') or es.session('30m').",
        )
    emit, keep, late_to = options["emit"], options["keep"], options["late_to"]
    one_of("emit", emit, ("update", "final"), location)
    if node.kind is Kind.TABLE:
        return _of_table(node, window, options, time, location)
    if time is not None:
        raise UnsupportedError(
            "time= is for windows of a table, but this is a stream",
            location=location,
            hint="A stream's time is declared where it is read: app.stream(..., time=col('at'))",
        )
    if late_to is not None:
        check_topic_name(late_to, location=location)  # type: ignore[arg-type]  # what is not text is refused
    kept = None if keep is None else duration("keep", keep, location)
    if kept is not None and milliseconds(kept) < milliseconds(window.grace):
        raise DefinitionError(
            f"keep={kept} is shorter than the grace, {window.grace}: results would go while they can still change",
            location=location,
            hint=f"Write keep={window.grace!r}, or longer.",
        )
    return Windowing(window, str(emit), kept, None if late_to is None else str(late_to))


def _of_table(
    node: Node, window: Window, options: dict[str, object], time: str | pl.Expr | None, location: Location | None
) -> Windowing:
    """Windows of a table: rows are never late, and no window is ever final, so nothing that goes by that fits."""
    if time is None:
        raise UnsupportedError(
            "window() on a table needs time=, the column that says when a row happened",
            location=location,
            hint="A change of a table has the time of its cause, which may be long after the row's own. "
            "Write window(es.tumbling('1d'), time=col('sold_at')).",
        )
    if options["emit"] == "final":
        raise UnsupportedError(
            "emit='final' works on streams, but this is a table",
            location=location,
            hint="Rows of a table may still change, so no window of it is ever final. Leave emit= out, "
            "or read the topic with app.stream().",
        )
    given = [name for name in ("keep", "late_to") if options[name] is not None]
    given += ["grace"] if milliseconds(window.grace) else []
    if given:
        raise UnsupportedError(
            f"{given[0]}= works on streams, but this is a table",
            location=location,
            hint="A row of a table is never late: a change takes the old row out of its windows, whenever it comes, "
            f"and adds the new one. Leave {given[0]}= out.",
        )
    return Windowing(window, "update", None, None, event_time(time, node.schema, location))
