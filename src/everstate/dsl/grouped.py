"""Rows brought together by a group, waiting to be aggregated."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from everstate.dsl import stateful
from everstate.dsl.absent import Guiding, refuse_subscript
from everstate.dsl.functions import function
from everstate.dsl.windowing import windowing
from everstate.errors import FunctionError
from everstate.errors.calls import explained_class
from everstate.location import caller

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    import polars as pl

    from everstate.dsl.service import Service
    from everstate.dsl.table import Table
    from everstate.dsl.windowing import Windowing
    from everstate.dsl.windows import Window
    from everstate.location import Location
    from everstate.topology.nodes import Keying, Node


@explained_class
class Grouped(Guiding):
    """What `group_by` returns. Each method gives a table with the group as its key.

    On a table source a change takes the old row out of its group and adds the new one to its own; a group that has lost
    its last row is deleted.
    """

    def __init__(self, service: Service, node: Node, by: Keying) -> None:
        self._service = service
        self._node = node
        self._by = by

    def agg(self, *aggregates: pl.Expr, **named: pl.Expr) -> Table:
        """Aggregate with expressions over `es.count()`, `es.collect(e)`, `es.top_k(e, k)`, `es.median(e)`,
        `es.quantile(e, q)` and Polars' sum, mean, min, max, first, last, n_unique, count, var and std.

        Sums, means and variances are exact: whatever the order, the split into micro-batches or later corrections, the
        result is the same to the last digit.

        Example:
            >>> import everstate as es
            >>> app = es.Service("docs")
            >>> orders = app.table("orders", key="id", schema={"id": str, "customer": str, "amount": float})
            >>> totals = orders.group_by("customer").agg(total=es.col("amount").sum(), orders=es.count())
            >>> _ = totals.to("totals")
            >>> driver = es.testing.Driver(app)
            >>> driver.send("orders", "o1", {"customer": "ada", "amount": 10.0})
            >>> driver.send("orders", "o1", {"customer": "bob", "amount": 2.5})
            >>> driver.table("totals")
            {'bob': {'total': 2.5, 'orders': 1}}
        """  # noqa: D205 - one sentence that lists them all
        return self._table(stateful.aggregated(self._node, self._by, aggregates, named, caller()))

    def reduce(
        self,
        add: Callable[..., Any],
        remove: Callable[..., Any] | None = None,
        *,
        migrate: Callable[..., Any] | None = None,
    ) -> Table:
        """Combine rows two by two; the first row of a group is its first result. The schema stays.

        Args:
            add: (result, row) -> result.
            remove: (result, row) -> result, taking a row back out; only used on tables. `add` and `remove` must undo
                each other and not depend on order. Without it, a table's rows are kept and combined again in key order,
                and no promise is needed.
            migrate: result of the version before -> result, for an output with `on_change="migrate"`: see `to`.
        """
        return self._table(stateful.folded(self._node, self._by, (None, add, remove), None, caller(), migrate))

    def aggregate(
        self,
        init: Callable[[], Any],
        add: Callable[..., Any],
        remove: Callable[..., Any] | None = None,
        schema: object | None = None,
        *,
        migrate: Callable[..., Any] | None = None,
    ) -> Table:
        """Fold rows into a value of its own schema.

        A group that is deleted and returns starts from `init()` again. If `add` returns None the group is deleted.

        Args:
            init: () -> value.
            add: (value, row) -> value.
            remove: (value, row) -> value; as for `reduce`.
            schema: The value's schema; by default the return annotation of `add`.
            migrate: value of the version before -> value, for an output with `on_change="migrate"`: see `to`.
        """
        return self._table(stateful.folded(self._node, self._by, (init, add, remove), schema, caller(), migrate))

    def window(
        self,
        window: Window,
        *,
        emit: Literal["update", "final"] = "update",
        keep: str | timedelta | None = None,
        late_to: str | None = None,
        time: str | pl.Expr | None = None,
    ) -> WindowedGroup:
        """Split each group by time: the window becomes part of the key.

        The key of the result is the group, then `window_start` and `window_end`. A row counts in a window until the
        stream time of its own partition, the highest time so far, has reached the window's end plus its grace; rows
        that come later are dropped and counted. A window is final when every partition of the streams that feed it has
        got there. So no result depends on how input was split into micro-batches or how fast partitions were read.

        On a table `time=` names the column that says when a row happened. No row is late and no window is ever final:
        a change takes the old row out of its windows and adds the new one to its own, and a window without rows gets a
        tombstone. A row whose time is null belongs to no window.

        Example:
            >>> import everstate as es
            >>> app = es.Service("docs")
            >>> orders = app.stream("orders", key="id", schema={"id": str, "customer": str, "amount": float})
            >>> per_hour = orders.group_by("customer").window(es.tumbling("1h"), emit="final")
            >>> _ = per_hour.agg(total=es.col("amount").sum()).to("per-hour")
            >>> driver = es.testing.Driver(app)
            >>> driver.send("orders", "o1", {"customer": "ada", "amount": 5.0}, ts=0)
            >>> driver.send("orders", "o2", {"customer": "ada", "amount": 2.5}, ts=1_800_000)
            >>> driver.advance(3_600_000)
            >>> [(record.key[0], record.key[1].hour, record.value) for record in driver.records("per-hour")]
            [('ada', 0, {'total': 7.5})]

        Args:
            window: `es.tumbling("5m", grace="1m")`, `es.hopping("1h", "5m")`, `es.sliding("10m")` or
                `es.session("30m")`.
            emit: "update" publishes a result whenever it changes, at most once per micro-batch; "final" once, when the
                window is final.
            keep: How long after its end a window's result stays on the topic; then it gets a tombstone. By default
                forever. A window's state is kept as long.
            late_to: A topic for rows that were too late for all their windows: a table by (topic, partition, offset),
                as the dead-letter topic is, in the same commit as the results. By default they are only counted.
            time: On a table, when a row happened: a datetime, or whole milliseconds since 1970.
        """
        given: dict[str, object] = {"emit": emit, "keep": keep, "late_to": late_to}
        options = windowing(self._node, window, given, time, caller())
        return WindowedGroup(self._service, self._node, self._by, options)

    def _table(self, node: Node) -> Table:
        return self._service.as_table(node)

    def __getitem__(self, key: object) -> NoReturn:
        refuse_subscript(type(self).__name__, key)


@explained_class
class WindowedGroup(Guiding):
    """What `group_by().window()` returns. Each method gives a table with group and window as its key."""

    def __init__(self, service: Service, node: Node, by: Keying, options: Windowing) -> None:
        self._service = service
        self._node = node
        self._by = by
        self._options = options

    def agg(self, *aggregates: pl.Expr, **named: pl.Expr) -> Table:
        """As `group_by().agg()`, in each window."""
        options, location = self._options, caller()
        key = options.key(self._by, location)
        found = stateful.aggregated(self._node, replace(self._by, key=key), aggregates, named, location)
        return self._table(options.aggregate(found, self._by))

    def reduce(self, add: Callable[..., Any]) -> Table:
        """As `group_by().reduce()`, in each window.

        Rows are combined in the order in which they arrived: by stream time, then by topic, partition and offset. For
        tumbling and hopping windows micro-batches come one after the other, as they were recorded; sessions and sliding
        windows have all of their rows at hand, so it makes no difference there when a row was read. Those of a table
        are combined in the order of their keys, again whenever one of them changes.
        """
        return self._folded((None, add, None), None, caller())

    def aggregate(
        self,
        init: Callable[[], Any],
        add: Callable[..., Any],
        schema: object | None = None,
        *,
        merge: Callable[..., Any] | None = None,
    ) -> Table:
        """As `group_by().aggregate()`, in each window; rows are added in the same order as for `reduce`.

        Sessions keep their rows for that. With `merge` they keep one value each: a row begins with `init()`, the
        sessions that it touches are merged into that in the order of their beginning, and then it is added. Rows are
        taken in the order of their arrival, which is recorded.

        Args:
            init: () -> value.
            add: (value, row) -> value.
            schema: The value's schema; by default the return annotation of `add`.
            merge: (value, value) -> value, for sessions.
        """
        location = caller()
        if inspect.isroutine(schema):
            raise FunctionError(
                "aggregate() of a window takes no remove",
                location=location,
                hint="Rows are never taken out of a result: where one is corrected, all of its window are added again. "
                "Write aggregate(init, add, schema=...), for sessions also merge=.",
            )
        return self._folded((init, add, None), schema, location, merge)

    def _folded(
        self,
        functions: tuple[Any, Any, None],
        schema: object | None,
        location: Location | None,
        merge: Callable[..., Any] | None = None,
    ) -> Table:
        merging = None if merge is None else function(merge, "merge=(result, result)", location)
        if merge is not None:
            self._options.require_sessions(location)
        key = self._options.key(self._by, location)
        found = stateful.folded(self._node, replace(self._by, key=key), functions, schema, location)
        return self._table(self._options.fold(found, self._by, merging))

    def _table(self, node: Node) -> Table:
        return self._service.as_table(node)

    def __getitem__(self, key: object) -> NoReturn:
        refuse_subscript(type(self).__name__, key)
