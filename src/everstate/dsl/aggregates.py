"""The aggregates that Polars does not spell as one call; each gives a Polars expression for `agg()`."""

from __future__ import annotations

import polars as pl

from everstate.topology.errors import SchemaError
from everstate.topology.location import caller


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


def collect(expression: str | pl.Expr) -> pl.Expr:
    """All values of the group as a list, ordered by timestamp, topic, partition and offset; nulls are kept."""
    return _expression(expression).implode()


def top_k(expression: str | pl.Expr, k: int, by: str | pl.Expr | None = None) -> pl.Expr:
    """The k largest values of the group, largest first; or the values of the rows with the k largest `by`."""
    if k < 1:
        raise SchemaError(f"top_k needs k of at least 1, not {k}", location=caller())
    value = _expression(expression)
    return value.top_k(k) if by is None else value.top_k_by(_expression(by), k)


def median(expression: str | pl.Expr) -> pl.Expr:
    """The middle value of the group; the mean of the two middle ones where their number is even."""
    return _expression(expression).median()


def quantile(expression: str | pl.Expr, q: float) -> pl.Expr:
    """The q-quantile of the group (0 to 1), interpolated linearly."""
    if not 0 <= q <= 1:
        raise SchemaError(f"quantile needs q between 0 and 1, not {q}", location=caller())
    return _expression(expression).quantile(q, interpolation="linear")


def _expression(part: str | pl.Expr) -> pl.Expr:
    return pl.col(part) if isinstance(part, str) else part
