"""Evaluating the user's Polars expressions, so that one bad row does not spoil its batch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, cast

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
#: The years 1 to 9999, in days since 1970.
_DAYS: Final = (-719_162, 2_932_896)
_PER_SECOND: Final = {"ms": 10**3, "us": 10**6, "ns": 10**9}
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
        found = rows, select_rows(rows[user_columns(rows)], expressions)
    except POLARS_ERRORS:
        found = _halved(rows, expressions, ledger, node)
    return _within_years(*found, ledger, node)


def _within_years(
    rows: pl.DataFrame, values: pl.DataFrame, ledger: Ledger, node: Node
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Without the rows that got a time which Polars has and neither Python nor a topic can hold: dead letters."""
    for name, kind in values.schema.items():
        outside = _outside(pl.col(name), kind)
        if outside is None:
            continue
        is_outside = values.select(outside.fill_null(value=False)).to_series()
        if is_outside.any():
            bad = rows.filter(is_outside)
            shown = "a result" if name.startswith("$") else f"the result {name!r}"
            ledger.dead(bad, [f"{shown} is outside the years 1 to 9999"] * bad.height, node)
            rows, values = rows.filter(~is_outside), values.filter(~is_outside)
    return rows, values


def _outside(value: pl.Expr, kind: pl.DataType) -> pl.Expr | None:
    """Whether a value has a time outside of the years that can be written; None if its type has no times."""
    match kind:
        case pl.Date():
            return ~value.to_physical().is_between(*_DAYS)
        case pl.Datetime():
            of_day = 86_400 * _PER_SECOND[kind.time_unit]
            # A zone of its own moves the ends by less than a day.
            inner = 0 if kind.time_zone in (None, "UTC") else 1
            return ~value.to_physical().is_between((_DAYS[0] + inner) * of_day, (_DAYS[1] + 1 - inner) * of_day - 1)
        case pl.List() | pl.Array():
            inside = _outside(pl.element(), cast("pl.DataType", kind.inner))
            items = value.list if isinstance(kind, pl.List) else value.arr.to_list().list
            return None if inside is None else items.eval(inside).list.any()
        case pl.Struct():
            fields = [(value.struct.field(field.name), cast("pl.DataType", field.dtype)) for field in kind.fields]
            found = [part for inner, of in fields if (part := _outside(inner, of)) is not None]
            return pl.any_horizontal(found) if found else None
    return None


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
