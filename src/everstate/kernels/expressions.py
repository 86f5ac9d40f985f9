"""Evaluating the user's Polars expressions, so that one bad row does not spoil its batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.kernels.ledger import Ledger
    from everstate.topology.nodes import Node


def evaluate(
    rows: pl.DataFrame, expressions: Sequence[pl.Expr], ledger: Ledger, node: Node
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Evaluate row expressions; rows for which one raises are dead letters.

    Args:
        rows: A rows frame.
        expressions: Expressions that work row by row.
        ledger: Takes the rows that fail.
        node: The step, for the dead letter.

    Returns:
        The rows that did not fail, and the values of the expressions for them.
    """
    try:
        return rows, select_rows(rows, expressions)
    except pl.exceptions.PolarsError:
        return _halved(rows, expressions, ledger, node)


def _halved(
    rows: pl.DataFrame, expressions: Sequence[pl.Expr], ledger: Ledger, node: Node
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Evaluate parts, ever smaller around the rows that fail; a stack, since a batch may hold many of them."""
    good: list[tuple[pl.DataFrame, pl.DataFrame]] = [(rows.clear(), select_rows(rows.clear(), expressions))]
    waiting = [rows]
    while waiting:
        part = waiting.pop()
        try:
            good.append((part, select_rows(part, expressions)))
        except pl.exceptions.PolarsError as error:
            if part.height == 1:
                ledger.dead(part, [_reason(error)], node)
            else:
                middle = part.height // 2
                waiting += [part[middle:], part[:middle]]
    return pl.concat([part for part, _ in good]), pl.concat([values for _, values in good])


def select_rows(rows: pl.DataFrame, expressions: Sequence[pl.Expr]) -> pl.DataFrame:
    """The values of row expressions, whatever the number of rows.

    Polars divides a column by a constant by multiplying with its reciprocal, but a single row, a chunk of a single row
    or a column of one repeated value by division: another last digit for another cut of the same input. So every row
    is evaluated as one of several.

    Example:
        >>> import polars as pl
        >>> many = select_rows(pl.DataFrame({"a": [5, 6]}), [pl.col("a") / 7])
        >>> one = select_rows(pl.DataFrame({"a": [5]}), [pl.col("a") / 7])
        >>> many["a"][0] == one["a"][0]
        True
    """
    if rows.height == 1:
        doubled = pl.DataFrame([pl.concat([column, column]) for column in rows])
        return select_rows(doubled, expressions)[:1]
    columns = rows.get_columns()
    if any(1 in column.chunk_lengths() for column in columns):
        columns = [column.rechunk() for column in columns]
    rows = pl.DataFrame(columns)  # a column that holds one value for all rows becomes one like the others
    values = rows.select(expressions)
    # An expression made of literals alone gives one row, whatever the frame's height.
    return values if values.height == rows.height else rows.with_columns(expressions).select(values.columns)


def _reason(error: pl.exceptions.PolarsError) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0]}"
