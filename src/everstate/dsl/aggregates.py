"""The aggregates that Polars does not spell as one call; each gives a Polars expression for `agg()`."""

from __future__ import annotations

import polars as pl

from everstate.dsl.arguments import shown, whole_number
from everstate.dsl.expressions import as_expression
from everstate.errors import SchemaError
from everstate.errors.calls import explained
from everstate.location import caller


@explained
def count() -> pl.Expr:
    """The number of rows of the group.

    Example:
        >>> import everstate as es
        >>> app = es.Service("docs")
        >>> orders = app.table("orders", key="id", schema={"id": str, "customer": str})
        >>> _ = orders.group_by("customer").agg(orders=es.count()).to("orders-by-customer")
        >>> driver = es.testing.Driver(app)
        >>> driver.send("orders", "o1", {"customer": "ada"})
        >>> driver.table("orders-by-customer")
        {'ada': {'orders': 1}}
    """
    return pl.len()


@explained
def collect(expression: str | pl.Expr) -> pl.Expr:
    """All values of the group as a list, ordered by timestamp, topic, partition and offset; nulls are kept."""
    return _expression(expression).implode()


@explained
def top_k(expression: str | pl.Expr, k: int, by: str | pl.Expr | None = None) -> pl.Expr:
    """The k largest values of the group, largest first; or the values of the rows with the k largest `by`."""
    whole_number("k", k, caller(), kind=SchemaError)
    value = _expression(expression)
    return value.top_k(k) if by is None else value.top_k_by(_expression(by), k)


@explained
def median(expression: str | pl.Expr) -> pl.Expr:
    """The middle value of the group; the mean of the two middle ones where their number is even."""
    return _expression(expression).median()


@explained
def quantile(expression: str | pl.Expr, q: float) -> pl.Expr:
    """The q-quantile of the group (0 to 1), interpolated linearly."""
    if not isinstance(q, (int, float)) or isinstance(q, bool) or not 0 <= q <= 1:
        raise SchemaError(
            f"quantile needs q between 0 and 1, not {shown(q)}", location=caller(), hint="es.quantile('amount', 0.9)"
        )
    return _expression(expression).quantile(q, interpolation="linear")


def _expression(part: str | pl.Expr) -> pl.Expr:
    return as_expression(part, caller())
