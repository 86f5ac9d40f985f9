"""Checks of the user's expressions while a service is built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from everstate.dsl.arguments import shown
from everstate.dsl.functions import function
from everstate.errors import SchemaError, UnknownColumnError
from everstate.topology.expressions import rows, trial
from everstate.topology.expressions.python_text import python_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from everstate.location import Location
    from everstate.schema.schema import Schema
    from everstate.topology.functions import Function


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


def resolve(expressions: Sequence[pl.Expr], schema: Mapping[str, pl.DataType], location: Location | None) -> pl.Schema:
    """Names and types of what expressions give on these columns.

    Raises:
        UnknownColumnError: A column is not there.
        SchemaError: The types do not fit, or it would fail for every record.
        UnsupportedError: It does not work row by row.
    """
    for expression in expressions:
        rows.check(expression, schema, location)
    try:
        found = pl.LazyFrame(schema=dict(schema)).select(expressions).collect_schema()
    except pl.exceptions.ColumnNotFoundError as error:
        raise UnknownColumnError(_quoted(str(error)), list(schema), location=location) from None
    except trial.POLARS_ERRORS as error:
        raise _misfit(trial.reason_of(error), schema, location) from None
    reason = trial.failure(expressions, schema)
    if reason is not None:
        raise _misfit(reason, schema, location)
    return found


def resolve_one(expression: pl.Expr, schema: Mapping[str, pl.DataType], location: Location | None) -> pl.DataType:
    """The type of what an expression gives, where it must give one column.

    Raises:
        SchemaError: It gives several, or none; and as for `resolve`.
    """
    found = resolve([expression], schema, location)
    if len(found) != 1:
        raise SchemaError(
            f"one column is needed here, but this gives {', '.join(found) or 'none'}: {python_text(expression)}",
            location=location,
            hint="Combine them: pl.all_horizontal(...), pl.sum_horizontal(...), or one expression for each.",
        )
    return next(iter(found.values()))


def _misfit(reason: str, schema: Mapping[str, pl.DataType], location: Location | None) -> SchemaError:
    columns = ", ".join(f"{name}: {dtype}" for name, dtype in schema.items())
    return SchemaError(
        f"expression does not fit: {reason}",
        location=location,
        hint=f"cast() brings values to one type. The columns here are: {columns or 'none'}.",
    )


def _quoted(text: str) -> str:
    return text.split('"')[1] if '"' in text else text.splitlines()[0]


def predicate(
    part: pl.Expr | str | Callable[..., Any], schema: Schema, location: Location | None
) -> pl.Expr | Function:
    """A filter's condition: a Boolean expression, or a function."""
    if isinstance(part, (pl.Expr, str)):
        expression = as_expression(part, location)
        dtype = resolve_one(expression, schema.polars, location)
        if dtype != pl.Boolean:
            raise SchemaError(
                f"a filter needs true or false, but this gives {dtype}: {python_text(expression)}",
                location=location,
                hint="Compare it: col('amount') > 0",
            )
        return expression
    return function(part, "filter(row)", location)
