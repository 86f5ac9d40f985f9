from __future__ import annotations

import polars as pl
import pytest
from polars import col, when

from everstate.topology.expressions.python_text import python_text

EXPRESSIONS = [
    col("a") >= 10,
    (col("a") > 1) & (col("b") != "x[(y)] dyn int: 1"),
    ((col("a") > 1) | (col("b") == "z")).not_(),
    (col("a") * 2 + 1.5).sum().alias("t"),
    col("a").fill_null(0).is_between(1, 2),
    col("a").is_in([1, 2, 3]),
    when(col("a") > 1).then(col("b")).otherwise(col("c")),
    (col("a") - col("b")).abs() % 2 == 0,
    col("l").list.eval(pl.element() * 2),
    col("a").is_null() == True,  # noqa: E712 - a literal in an expression
]


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=str)
def test_expression_as_python_can_be_evaluated_again_to_the_same(expression):
    written = python_text(expression)
    names = {"col": col, "when": when, "element": pl.element}
    assert eval(written, names).meta.eq(expression)
    assert python_text(written) == written


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ('sum([(col("a")) * (dyn int: 2)])', 'sum(col("a") * 2)'),
        ('[(col("a")) > (dyn int: 1)], sum(col("b"))', 'col("a") > 1, sum(col("b"))'),
        ("lambda row: row['n'] in [1, 2]", "lambda row: row['n'] in [1, 2]"),
        ('col("a").is_in([1, 2])', 'col("a").is_in([1, 2])'),
        ('[(col("customer")) == ("ada")] & [(col("amou...', '(col("customer") == "ada") & [(col("amou...'),
    ],
    ids=["inside a call", "several", "a function", "the user's own", "cut short"],
)
def test_text_that_was_kept_is_shown_as_python_where_polars_printed_it(printed, shown):
    assert python_text(printed) == shown
