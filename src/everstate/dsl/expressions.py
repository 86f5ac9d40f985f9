"""Checks of the user's expressions while a service is built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from everstate.dsl.arguments import shown
from everstate.dsl.functions import function
from everstate.topology.errors import SchemaError, UnknownColumnError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from everstate.topology.functions import Function
    from everstate.topology.location import Location
    from everstate.topology.schema import Schema

_ROW_BY_ROW = "Use group_by(...).agg(...) for what needs several rows; here each row is seen alone."


def as_expression(part: pl.Expr | str, location: Location | None) -> pl.Expr:
    """A column name or an expression, as an expression."""
    if isinstance(part, str):
        return pl.col(part)
    if isinstance(part, pl.Expr):
        return part
    raise SchemaError(
        f"expected a column name or an expression, got {shown(part)}",
        location=location,
        hint="Write a name, or an expression such as col('amount') * 2; pl.lit(5) makes a constant.",
    )


def resolve(expressions: Sequence[pl.Expr], schema: dict[str, pl.DataType], location: Location | None) -> pl.Schema:
    """Names and types of what expressions give on these columns.

    Raises:
        UnknownColumnError: A column is not there.
        SchemaError: The types do not fit.
        UnsupportedError: It needs more than one row.
    """
    for expression in expressions:
        for name in expression.meta.root_names():
            if name not in schema:
                raise UnknownColumnError(name, list(schema), location=location)
        if not _is_row_by_row(expression, location):
            raise UnsupportedError(
                f"this expression needs more than one row: {expression}", location=location, hint=_ROW_BY_ROW
            )
    try:
        found = pl.LazyFrame(schema=schema).select(expressions).collect_schema()
    except pl.exceptions.ColumnNotFoundError as error:
        raise UnknownColumnError(_quoted(str(error)), list(schema), location=location) from None
    except pl.exceptions.PolarsError as error:
        raise SchemaError(
            f"expression does not fit: {str(error).splitlines()[0]}",
            location=location,
            hint=f"The columns here are: {', '.join(f'{name} {dtype}' for name, dtype in schema.items())}.",
        ) from None
    _refuse_shorter(expressions, location)
    return found


def _is_row_by_row(expression: pl.Expr, location: Location | None) -> bool:
    try:
        return expression.meta.is_row_separable()
    except pl.exceptions.PolarsError:
        # Polars asks a function what it gives for columns that are not there.
        raise UnsupportedError(
            f"this expression holds a Python function: {expression}",
            location=location,
            hint="Pass the function itself: map(fn) or filter(fn).",
        ) from None


def _refuse_shorter(expressions: Sequence[pl.Expr], location: Location | None) -> None:
    for expression in expressions:
        if expression.meta.root_names() and not expression.meta.is_length_preserving():
            raise UnsupportedError(
                f"this expression changes the number of rows: {expression}", location=location, hint=_ROW_BY_ROW
            )


def _quoted(text: str) -> str:
    return text.split('"')[1] if '"' in text else text.splitlines()[0]


def predicate(
    part: pl.Expr | str | Callable[..., Any], schema: Schema, location: Location | None
) -> pl.Expr | Function:
    """A filter's condition: a Boolean expression, or a function."""
    if isinstance(part, (pl.Expr, str)):
        expression = as_expression(part, location)
        (dtype,) = resolve([expression], schema.polars, location).values()
        if dtype != pl.Boolean:
            raise SchemaError(
                f"a filter needs true or false, this gives {dtype}: {expression}",
                location=location,
                hint="Compare it: col('amount') > 0",
            )
        return expression
    return function(part, "filter(row)", location)
