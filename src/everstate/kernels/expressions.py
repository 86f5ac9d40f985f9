"""Evaluating the user's Polars expressions, so that one bad row does not spoil its batch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from everstate.kernels.hardening import MASK, hardened
from everstate.kernels.rows import user_columns
from everstate.topology.expressions.trial import POLARS_ERRORS, reason_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.kernels.ledger import Ledger
    from everstate.topology.nodes import Node

#: How the text of an expression shows a division, and a list.
_DIVISION: Final = re.compile(r"\) (/|//|%|trunc_div) \(|sql_(div|rem)")
_LISTS: Final = re.compile(
    r"list|arr\.|split|extract|find_many|ranges|spaces|repeat_by|json_decode|map\.", re.IGNORECASE
)


def evaluate(
    rows: pl.DataFrame, expressions: Sequence[pl.Expr], ledger: Ledger, node: Node
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Evaluate row expressions; rows for which one raises are dead letters.

    Args:
        rows: A rows frame; selectors see the user's columns alone.
        expressions: Expressions that work row by row.
        ledger: Takes the rows that fail.
        node: The step, for the dead letter.

    Returns:
        The rows that did not fail, and the values of the expressions for them.
    """
    try:
        return rows, select_rows(rows[user_columns(rows)], expressions)
    except POLARS_ERRORS:
        return _halved(rows, expressions, ledger, node)


def _halved(
    rows: pl.DataFrame, expressions: Sequence[pl.Expr], ledger: Ledger, node: Node
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Evaluate parts, ever smaller around the rows that fail; a stack, since a batch may hold many of them."""
    good = [(rows.clear(), _nothing(rows, expressions))]
    waiting = [rows]
    while waiting:
        part = waiting.pop()
        try:
            good.append((part, select_rows(part[user_columns(part)], expressions)))
        except POLARS_ERRORS as error:
            if part.height == 1:
                ledger.dead(part, [reason_of(error)], node)
            elif part.height:
                middle = part.height // 2
                waiting += [part[middle:], part[:middle]]
    return pl.concat([part for part, _ in good]), pl.concat([values for _, values in good])


def _nothing(rows: pl.DataFrame, expressions: Sequence[pl.Expr]) -> pl.DataFrame:
    """No values, of the types that the expressions give, whether or not they can be evaluated."""
    return pl.DataFrame(schema=rows[user_columns(rows)].lazy().select(expressions).collect_schema())


def select_rows(rows: pl.DataFrame, expressions: Sequence[pl.Expr]) -> pl.DataFrame:
    """The values of row expressions, whatever the number of rows.

    Polars divides a column by a constant by multiplying with its reciprocal, but a single row, a chunk of a single row
    or a column of one repeated value by division: another last digit for another cut of the same input. So every row
    is evaluated as one of several. The items of lists are divided as one column, too: where lists may be divided, rows
    are evaluated twice over, so that no item is ever alone.

    Example:
        >>> import polars as pl
        >>> many = select_rows(pl.DataFrame({"a": [5, 6]}), [pl.col("a") / 7])
        >>> one = select_rows(pl.DataFrame({"a": [5]}), [pl.col("a") / 7])
        >>> many["a"][0] == one["a"][0]
        True
    """
    height = rows.height
    columns = rows.get_columns()
    if height == 1 or (height and _divides_items(expressions, columns)):
        columns = [pl.concat([column, column], rechunk=True) for column in columns]
    elif any(1 in column.chunk_lengths() for column in columns):
        columns = [column.rechunk() for column in columns]
    expressions = [hardened(expression) for expression in expressions]
    if any(MASK in expression.meta.root_names() for expression in expressions):
        columns = [*columns, pl.Series(MASK, np.ones(columns[0].len(), np.bool_))]
    rows = pl.DataFrame(columns)  # a column that holds one value for all rows becomes one like the others
    values = rows.select(expressions)
    if values.height != rows.height:
        # An expression made of literals alone gives one row, whatever the frame's height.
        values = rows.with_columns(expressions).select(values.columns)
    return values[:height]


def _divides_items(expressions: Sequence[pl.Expr], columns: Sequence[pl.Series]) -> bool:
    """Whether the items of lists may be divided: there are lists, or functions that make some, and a division."""
    texts = [text for expression in expressions if _DIVISION.search(text := str(expression))]
    return bool(texts) and (any(_LISTS.search(text) for text in texts) or any(c.dtype.is_nested() for c in columns))
