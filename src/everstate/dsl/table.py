"""Tables: the latest value for each key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self

from everstate.dsl import operations, stateful
from everstate.dsl.arguments import switch
from everstate.dsl.flow import Flow
from everstate.dsl.joins import both_sides, lookups
from everstate.dsl.joins.global_table import GlobalTable
from everstate.dsl.suppressing import suppressed
from everstate.errors import UnsupportedError
from everstate.errors.calls import explained_class
from everstate.location import caller

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    import polars as pl


@explained_class
class Table(Flow):
    """A table: rows by key, changed by upserts and tombstones."""

    def join(
        self,
        other: Table | GlobalTable,
        how: str = "inner",
        on: str | pl.Expr | Callable[..., Any] | None = None,
        joiner: Callable[..., Any] | None = None,
        suffix: str = "_right",
        schema: object | None = None,
    ) -> Self:
        """Join with another table; a change on either side re-evaluates the rows it touches, and deletes propagate.

        Rows stay where they are if the other one is a global table, which every shard holds in full.

        Example:
            >>> import everstate as es
            >>> app = es.Service("docs")
            >>> orders = app.table("orders", key="id", schema={"id": str, "customer": str, "amount": int})
            >>> people = app.table("people", key="customer", schema={"customer": str, "name": str})
            >>> _ = orders.join(people, on="customer").to("named-orders")
            >>> driver = es.testing.Driver(app)
            >>> driver.send("people", "c1", {"name": "Ada"})
            >>> driver.send("orders", "o1", {"customer": "c1", "amount": 5})
            >>> driver.table("named-orders")
            {'o1': {'customer': 'c1', 'amount': 5, 'name': 'Ada'}}

        Args:
            other: The right table.
            how: "inner", "left" or "outer"; with `on`, or a global table, "inner" or "left".
            on: A column, expression or function of this table that gives the other table's key: a foreign-key join.
                Without it the keys of both are joined. The result has this table's key.
            joiner: (left value, right value) -> value, with None for a side that has none.
            suffix: Added to right columns that have the same name as a left one.
            schema: What the joiner returns; by default its return annotation.
        """
        location = caller()
        self._require_table(other, "a table joins a table", location)
        if isinstance(other, GlobalTable):
            making = lookups.Making(how=how, joiner=joiner, schema=schema, suffix=suffix)
            return self._with(lookups.table_with_global(self.node, other.node, on, making, location))
        if on is None:
            node = both_sides.joined(
                self.node, other.node, how=how, joiner=joiner, schema=schema, suffix=suffix, location=location
            )
            return self._with(node)
        by = operations.foreign_keying(self.node, on, other.node.key, location)
        return self._with(
            both_sides.foreign_joined(
                self.node, other.node, on=by, how=how, joiner=joiner, schema=schema, suffix=suffix, location=location
            )
        )

    def expire(self, *, after: str | timedelta, clock: Literal["event", "wall"] = "event") -> Self:
        """Delete the row of each key that has been quiet for a time.

        A key's row goes once the clock has reached the time of its last record plus `after`, and a tombstone follows
        downstream. Every record of the key counts, even one that repeats its value. A later record brings the row back;
        one that is already older than that when it arrives deletes the row. The key stays as it is.

        The `"event"` clock is the lowest stream time of all partitions of the streams that feed the table or, where
        there are only tables, of the tables: time stands still when no records come. With `"wall"` it goes on. State
        holds a row for each existing key, and when to look at it again.

        Example:
            >>> import everstate as es
            >>> app = es.Service("docs")
            >>> carts = app.table("carts", key="user", schema={"user": str, "items": int})
            >>> _ = carts.expire(after="1h").to("open-carts")
            >>> driver = es.testing.Driver(app)
            >>> driver.send("carts", "ada", {"items": 2}, ts=0)
            >>> driver.send("carts", "bob", {"items": 1}, ts=0)
            >>> driver.send("carts", "bob", {"items": 1}, ts=1_800_000)
            >>> driver.advance(3_600_000)
            >>> driver.table("open-carts")
            {'bob': {'items': 1}}

        Args:
            after: How long a key must be quiet before its row is removed, such as "7d".
            clock: "event" uses the times of the records, "wall" the wall clock. That is recorded with every
                micro-batch, and every second without records, so a recalculation finds the same times.
        """
        return self._with(stateful.expiring(self.node, after, clock, caller()))

    def suppress(
        self,
        until: str | timedelta | None = None,
        *,
        max_keys: int | None = None,
        when_full: Literal["emit", "fail"] = "emit",
    ) -> Self:
        """Hold changes back, so that fewer of them are published.

        `until="close"` is for the results of windows: each comes out once, when its window is final, as with
        `window(..., emit="final")`. Results that were taken back before that are never seen.

        With a time, such as `until="10m"`, the net change of a key comes out once stream time has reached the time of
        its first change plus that: the lowest stream time of all partitions of the streams that feed the table or,
        where there are only tables, of the tables. A deletion comes out as a tombstone then. Only the last row of a key
        is certain; which others come out before it depends on where micro-batches end. A new version publishes
        everything that is held back. Keys stay as they are; state holds the keys that are held back.

        Example:
            >>> import everstate as es
            >>> app = es.Service("docs")
            >>> stock = app.table("stock", key="item", schema={"item": str, "left": int})
            >>> _ = stock.suppress(until="10m").to("stock-10m")
            >>> driver = es.testing.Driver(app)
            >>> for left in (9, 8, 7):
            ...     driver.send("stock", "pen", {"left": left}, ts=60_000 * (9 - left))
            >>> driver.records("stock-10m")
            []
            >>> driver.advance(600_000)
            >>> [record.value for record in driver.records("stock-10m")]
            [{'left': 7}]

        Args:
            until: "close", or for how long changes are held back; None for as long as there is room.
            max_keys: How many keys are held back at most, spread evenly over the shards.
            when_full: If there are more, "emit" lets the oldest out, "fail" stops the output.
        """
        return self._with(suppressed(self, until, max_keys, when_full, caller()))

    def merge(self, *others: Any) -> NoReturn:
        """Refused: two tables may hold the same key."""
        del others
        raise UnsupportedError(
            "merge works on streams, but this is a table",
            location=caller(),
            hint="Two tables may hold the same key: say how they combine with join(other, how='outer').",
        )

    def flat_map(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused: several rows cannot have one key."""
        del args, kwargs
        raise UnsupportedError(
            "flat_map works on streams, but this is a table",
            location=caller(),
            hint="Several rows cannot have one key; use map() to a list column, or read the topic with app.stream().",
        )

    def apply(self, fn: Callable[..., Any], *, stateful: bool = False, schema: object | None = None) -> Self:
        """As `map`; with `stateful=True` it is refused on a table."""
        if switch("stateful", stateful, caller()):
            return self._stateful(fn, "apply", schema)
        return self._with(operations.mapped(self.node, fn, schema, caller()))

    def update(self, fn: Callable[..., Any], *, stateful: bool = False) -> Self:
        """Let a function change each row in place; with `stateful=True` it is refused on a table."""
        if switch("stateful", stateful, caller()):
            return self._stateful(fn, "update", None)
        return self._with(operations.updated(self.node, fn, caller()))
