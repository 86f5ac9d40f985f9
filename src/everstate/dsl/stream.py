"""Streams: append-only events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, overload

import polars as pl

from everstate.dsl import operations, processor, stateful
from everstate.dsl.arguments import switch
from everstate.dsl.flow import Flow
from everstate.dsl.joins import lookups
from everstate.dsl.joins.global_table import GlobalTable
from everstate.dsl.joins.lookups import Making, Times
from everstate.errors import UnsupportedError
from everstate.errors.calls import explained_class
from everstate.location import caller

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import timedelta

    from everstate.dsl.table import Table
    from everstate.dsl.written import KeyFormat
    from everstate.formats.descriptions import Format
    from everstate.topology.nodes import KeptState, OnChange


@explained_class
class Stream(Flow):
    """A stream of rows. A record with a null value is dropped and counted."""

    def flat_map(self, fn: Callable[..., Any], schema: object | None = None) -> Self:
        """Replace each row with any number of rows. The key stays.

        Args:
            fn: row -> iterable of values.
            schema: What each value is; by default the return annotation, such as `list[Item]`.
        """
        return self._with(operations.flat_mapped(self.node, fn, schema, caller()))

    def merge(self, *others: Stream) -> Self:
        """Put streams of the same key and columns together."""
        location = caller()
        for other in others:
            self._require_own(other, Stream, "merge() puts streams together", location)
        return self._with(operations.merged([self.node, *(other.node for other in others)], location))

    def join(
        self,
        other: Stream | Table | GlobalTable,
        *,
        on: str | pl.Expr | Sequence[str | pl.Expr] | Callable[..., Any] | None = None,
        within: str | timedelta | tuple[str | timedelta, str | timedelta] | None = None,
        grace: str | timedelta | None = None,
        how: str = "inner",
        joiner: Callable[..., Any] | None = None,
        suffix: str = "_right",
        schema: object | None = None,
    ) -> Self:
        """Join with another stream, with a table, or with a global table.

        **Two streams**: rows with the same key that are close in time, `within`. Each pair comes out once. With
        `how="left"` or `"outer"` a row without a partner comes out when every partition of both streams has passed its
        time plus the grace. A row that is later than that by the stream time of its own partition is dropped and
        counted; so is one without a key, unless it may come out alone: then it does so at once.

        **A table**: each row meets what the table has when the row arrives, or had at the row's time if it is read with
        `history=`; changes of the table drive nothing. Rows keep their key. In a micro-batch the table's records come
        first, and at the first start the table is read to its end before the stream. A row without a reference is
        dropped and counted, or passes with `how="left"`. State holds the table; for a global one, each shard holds all
        of it.

        Example:
            >>> import everstate as es
            >>> app = es.Service("docs")
            >>> clicks = app.stream("clicks", schema={"user": str, "page": str})
            >>> users = app.table("users", key="user", schema={"user": str, "name": str})
            >>> _ = clicks.join(users, on="user", how="left").to("named-clicks")
            >>> driver = es.testing.Driver(app)
            >>> driver.send("users", "u1", {"name": "Ada"})
            >>> driver.send("clicks", None, {"user": "u1", "page": "/"})
            >>> [record.value for record in driver.records("named-clicks")]
            [{'user': 'u1', 'page': '/', 'name': 'Ada'}]

        Args:
            other: The right side.
            on: With a table: a column, expression or function that gives its key; by default the stream's key.
            within: With a stream: how far apart the rows of a pair may be: one duration, or how much earlier and how
                much later the right row may be.
            grace: How long a row waits after that; with a table that has a history, for values that come late.
            how: "inner" or "left"; with a stream "outer", too.
            joiner: (left value, right value) -> value, with None for a side that has none.
            suffix: Added to right columns that have the same name as a left one.
            schema: What the joiner returns; by default its return annotation.
        """
        location, times = caller(), Times(within, grace)
        making = Making(how=how, joiner=joiner, schema=schema, suffix=suffix)
        if isinstance(other, Stream):
            self._require_own(other, Stream, "a stream joins a stream", location)
            return self._with(lookups.with_stream(self.node, other.node, on, times, making, location))
        self._require_table(other, "a stream joins a stream, a table or a global table", location)
        if isinstance(other, GlobalTable):
            return self._with(lookups.stream_with_global(self.node, other.node, on, times, making, location))
        return self._with(lookups.with_table(self.node, other.node, on, times, making, location))

    def dedup(
        self,
        by: str | pl.Expr | Sequence[str | pl.Expr] | None = None,
        *,
        within: str | timedelta,
    ) -> Self:
        """Let the first row of each id pass, and drop those with the same id that are close to it in time.

        A row is dropped if one with its id has passed whose time is less than `within` away, earlier or later. Ids are
        forgotten after that, so a row that is older than the stream time of its own partition by `within` or more can
        no longer be compared: it passes, and is counted as `unchecked`. Rows without an id are dropped and counted. The
        key stays.

        Example:
            >>> import everstate as es
            >>> app = es.Service("docs")
            >>> clicks = app.stream("clicks", key="user", schema={"event_id": str, "page": str})
            >>> _ = clicks.dedup("event_id", within="1h").to("visits")
            >>> driver = es.testing.Driver(app)
            >>> driver.send("clicks", "ada", {"event_id": "e1", "page": "/"}, ts=0)
            >>> driver.send("clicks", "ada", {"event_id": "e1", "page": "/"}, ts=60_000)
            >>> driver.send("clicks", "ada", {"event_id": "e1", "page": "/"}, ts=3_600_000)
            >>> [record.ts for record in driver.records("visits")]
            [0, 3600000]

        Args:
            by: The id: a column, an expression, or several; the key if it is left out.
            within: Rows of one id that are less than this apart are one row.
        """
        return self._with(stateful.deduplicated(self.node, by, within, caller()))

    def apply(
        self,
        fn: Callable[..., Any],
        *,
        stateful: bool = False,
        schema: object | None = None,
        migrate: Callable[..., Any] | None = None,
    ) -> Self:
        """Replace each row's value with the result of a function.

        With `stateful=True` the function gets the `State` of the row's key as its second argument. Rows of one key are
        seen in order; rows without a key are dropped and counted. If the function raises, the row goes to the
        dead-letter topic and its changes to the state are undone.

        Example:
            >>> import everstate as es
            >>> app = es.Service("docs")
            >>> clicks = app.stream("clicks", key="user", schema={"page": str})
            >>> def numbered(row: dict, state: es.State) -> int:
            ...     state.set("seen", state.get("seen", 0) + 1)
            ...     return state.get("seen")
            >>> _ = clicks.apply(numbered, stateful=True).to("numbered")
            >>> driver = es.testing.Driver(app)
            >>> driver.send("clicks", "ada", {"page": "/"})
            >>> driver.send("clicks", "ada", {"page": "/buy"})
            >>> [record.value for record in driver.records("numbered")]
            [1, 2]

        Args:
            fn: row -> value, or (row, state) -> value.
            stateful: Pass the state of the row's key.
            schema: What it returns; by default the return annotation.
            migrate: state -> state, both as dicts: turns a key's state in the previous version into one of this
                version, for an output with `on_change="migrate"`; see `to`.
        """
        if switch("stateful", stateful, caller()):
            return self._stateful(fn, "apply", schema, migrate)
        operations.refuse_migrate(migrate, caller())
        return self._with(operations.mapped(self.node, fn, schema, caller()))

    def update(
        self, fn: Callable[..., Any], *, stateful: bool = False, migrate: Callable[..., Any] | None = None
    ) -> Self:
        """Let a function change each row in place; what it returns is ignored. The columns stay the same.

        Args:
            fn: Called with the row, or (row, state).
            stateful: Pass the state of the row's key.
            migrate: As for `apply`.
        """
        if switch("stateful", stateful, caller()):
            return self._stateful(fn, "update", None, migrate)
        operations.refuse_migrate(migrate, caller())
        return self._with(operations.updated(self.node, fn, caller()))

    def process(
        self,
        fn: Callable[..., Any] | type,
        on_timer: Callable[..., Any] | None = None,
        *,
        schema: object | None = None,
        sides: Mapping[str, object] | None = None,
        states: Sequence[KeptState] = (),
        wall_clock: bool | None = None,
    ) -> Self:
        """Call a function with each row, which keeps named states of the row's key, sets timers, and sends rows on.

        The second argument is the `Context`: `ctx.key`, `ctx.time`, each state by its name, `ctx.timer(...)`,
        `ctx.cancel(...)`, `ctx.forward(value, to=...)`. The function's return value is sent on as well, unless it is
        None. Rows are seen in the order of arrival; those without a key are dropped and counted. If the function
        raises, the row goes to the dead-letter topic, and everything that it has changed, set or sent is undone; a
        timer for which `on_timer` raises goes there with its key, name and time, and does not fire again.

        Example:
            >>> import everstate as es
            >>> app = es.Service("docs")
            >>> readings = app.stream("readings", key="patient", schema={"pulse": int})
            >>> def rising(row, ctx):
            ...     before = ctx.last.get(0)
            ...     ctx.last.set(row["pulse"])
            ...     return {"by": row["pulse"] - before} if before and row["pulse"] > before else None
            >>> _ = readings.process(rising, schema={"by": int}, states=[es.value("last", int)]).to("rises")
            >>> driver = es.testing.Driver(app)
            >>> for pulse in (70, 75, 72):
            ...     driver.send("readings", "ada", {"pulse": pulse})
            >>> [record.value for record in driver.records("rises")]
            [{'by': 5}]

        Args:
            fn: (row, ctx) -> value or None; or a class, or an object, with a method `process(row, ctx)` and, if it sets
                timers, `on_timer(ctx)`. Attributes of the object cannot be set while it processes: keep a state.
            on_timer: (ctx) -> value or None, called when a timer is due.
            schema: What comes out, as for a source; by default the function's return annotation.
            sides: Additional outputs, by name, with the schemas of their rows. `to(sides=...)` gives each its topic.
            states: What is kept for each key: `es.value`, `es.list_`, `es.map_`.
            wall_clock: Whether timers may use the wall clock, which is then recorded every second. By default, if the
                code of the functions contains the string "wall", as in `clock="wall"`.
        """
        made = processor.processed(
            self.node,
            fn,
            on_timer,
            schema=schema,
            sides=sides,
            states=states,
            wall_clock=wall_clock,
            location=caller(),
        )
        return self._with(made)

    @overload
    def to(
        self,
        topic: str,
        *,
        partitions: int | None = ...,
        format: Format = ...,
        on_change: OnChange = ...,
        sides: Mapping[str, str | None] | None = ...,
        key_format: KeyFormat = ...,
    ) -> Self: ...

    @overload
    def to(
        self,
        topic: str,
        *,
        key: str | pl.Expr | Sequence[str | pl.Expr],
        partitions: int | None = ...,
        format: Format = ...,
        on_change: OnChange = ...,
        sides: Mapping[str, None] | None = ...,
        key_format: KeyFormat = ...,
    ) -> Table: ...

    def to(
        self, topic: str, *, key: str | pl.Expr | Sequence[str | pl.Expr] | None = None, **declared: Any
    ) -> Self | Table:
        """Declare an output, as `Flow.to` does.

        What a stream has published stands: a new version continues where the old one stopped. With `key` each record
        can be found again by that key, so the topic is a table with the newest record of each key, and a new version
        corrects it as it corrects any table: it writes what differs, and a tombstone for each key that it no longer
        produces.

        Example:
            >>> import everstate as es
            >>> app = es.Service("docs")
            >>> clicks = app.stream("clicks", key="user", schema={"user": str, "id": str, "page": str})
            >>> _ = clicks.filter(es.col("page") != "/health").to("visits", key="id")
            >>> driver = es.testing.Driver(app)
            >>> driver.send("clicks", "ada", {"id": "c1", "page": "/buy"})
            >>> driver.table("visits")
            {'c1': {'user': 'ada', 'page': '/buy'}}

        Args:
            topic: The topic, and the output's name.
            key: A column or expression that identifies the record, or several.
            declared: As for `Flow.to`: partitions, format, on_change, sides.
        """
        if key is None:
            return super().to(topic, **declared)
        location = caller()
        if self.schema.scalar:
            raise UnsupportedError(
                "to(key=...) needs a value with columns, but this one is a scalar",
                location=location,
                hint="Give it columns first: .map(lambda row: {...}, schema={...})",
            )
        if callable(key):
            raise UnsupportedError(
                "to(key=...) takes columns, but this is a function",
                location=location,
                hint="Add its result as a column first: .map(f, schema=...).to('topic', key='id')",
            )
        by = operations.keying(self.node, [key], {}, {}, location)
        columns = [name for name in self.schema.names if name not in by.key.names]
        if not columns:
            raise UnsupportedError(
                "to(key=...) leaves no column for the value",
                location=location,
                hint="Keep one besides the key: .with_columns(...)",
            )
        newest = {name: pl.col(name).last() for name in columns}
        table = self.service.as_table(stateful.aggregated(self.node, by, (), newest, location))
        return table.to(topic, **declared)

    def _stateful(self, fn: Any, mode: str, schema: object | None, migrate: Any = None) -> Self:
        return self._with(stateful.stateful(self.node, fn, mode, schema, caller(), migrate))
