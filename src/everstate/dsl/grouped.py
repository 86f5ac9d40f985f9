"""Rows brought together by a group, waiting to be aggregated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everstate.dsl import stateful
from everstate.dsl.absent import Guiding
from everstate.errors.calls import explained_class
from everstate.location import caller

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from everstate.dsl.service import Service
    from everstate.dsl.table import Table
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

        Sums, means and variances are exact: whatever the order, the cut into micro-batches or later corrections, the
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
                each other and not depend on order. Without it a table's rows are kept and combined again in key order,
                and nothing need be promised.
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
            schema: The value's schema; else the return annotation of `add`.
            migrate: value of the version before -> value, for an output with `on_change="migrate"`: see `to`.
        """
        return self._table(stateful.folded(self._node, self._by, (init, add, remove), schema, caller(), migrate))

    def _table(self, node: Node) -> Table:
        return self._service.as_table(node)
