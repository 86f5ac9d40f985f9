"""What working row by row means, tried: the same rows in other cuts, in another order and in other company."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import polars as pl

Evaluate = Callable[[pl.DataFrame, Sequence[pl.Expr]], pl.DataFrame]


def differs(expression: pl.Expr, frame: pl.DataFrame, strangers: pl.DataFrame, evaluate: Evaluate) -> str | None:
    """How the value of a row depends on more than the row; None where it does not.

    Args:
        expression: To be tried.
        frame: Whose rows are compared.
        strangers: Other rows of the same columns.
        evaluate: How a batch is evaluated.
    """
    whole = _values(evaluate(frame, [expression]))
    if len(whole) != frame.height:
        return "it gives another number of rows"
    for name, numbers, company in _cuts(frame, strangers):
        part = frame[numbers]
        try:
            found = _values(evaluate(pl.concat([part, company]), [expression]))[: len(numbers)]
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            return f"{name}: {error}"
        for number, value in zip(numbers, found, strict=True):
            if value != whole[number]:
                return f"{name}: row {number} gives {value}, in the whole {whole[number]}"
    return None


def _cuts(frame: pl.DataFrame, strangers: pl.DataFrame) -> Iterator[tuple[str, list[int], pl.DataFrame]]:
    chance, height = random.Random(5), frame.height
    nobody, numbers = strangers.clear(), list(range(height))
    nulls = pl.DataFrame({name: [None] * 3 for name in frame.columns}, schema=frame.schema)
    for number in chance.sample(numbers, min(6, height)):
        yield "alone", [number], nobody
        yield "beside itself", [number, number, number], nobody
        yield "beside nulls", [number], nulls
    for size in (2, 7):
        for start in range(0, height, size):
            yield f"in batches of {size}", numbers[start : start + size], nobody
    yield "in another order", chance.sample(numbers, height), nobody
    yield "in reverse", numbers[::-1], nobody
    yield "beside strangers", numbers, strangers
    yield "beside a stranger", numbers[: height // 2], strangers[:1]


def _values(frame: pl.DataFrame) -> list[str]:
    """Each row as text, since NaN is not equal to itself, and a zero to its negative."""
    return [repr(row) for row in _plain(frame).iter_rows()]


def _plain(frame: pl.DataFrame) -> pl.DataFrame:
    maps: list[Any] = [name for name, dtype in frame.schema.items() if type(dtype).__name__ == "Map"]
    return frame.with_columns(pl.col(maps).map.entries()) if maps else frame
