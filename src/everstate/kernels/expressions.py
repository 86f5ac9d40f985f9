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
        return rows, _select(rows, expressions)
    except pl.exceptions.PolarsError:
        return _halved(rows, expressions, ledger, node)


def _halved(
    rows: pl.DataFrame, expressions: Sequence[pl.Expr], ledger: Ledger, node: Node
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Evaluate parts, ever smaller around the rows that fail; a stack, since a batch may hold many of them."""
    good: list[tuple[pl.DataFrame, pl.DataFrame]] = [(rows.clear(), _select(rows.clear(), expressions))]
    waiting = [rows]
    while waiting:
        part = waiting.pop()
        try:
            good.append((part, _select(part, expressions)))
        except pl.exceptions.PolarsError as error:
            if part.height == 1:
                ledger.dead(part, [_reason(error)], node)
            else:
                middle = part.height // 2
                waiting += [part[middle:], part[:middle]]
    return pl.concat([part for part, _ in good]), pl.concat([values for _, values in good])


def _select(rows: pl.DataFrame, expressions: Sequence[pl.Expr]) -> pl.DataFrame:
    values = rows.select(expressions)
    # An expression made of literals alone gives one row, whatever the frame's height.
    return values if values.height == rows.height else rows.with_columns(expressions).select(values.columns)


def _reason(error: pl.exceptions.PolarsError) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0]}"
