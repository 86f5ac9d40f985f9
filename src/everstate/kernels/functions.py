"""Calling the user's Python functions on rows: what they see, what they may return, and where they failed."""

from __future__ import annotations

import copy
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from everstate.errors import RecordError
from everstate.kernels.records.python_rows import to_rows
from everstate.schema.record_values import check_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import polars as pl

    from everstate.kernels.ledger import Ledger
    from everstate.schema.schema import Schema
    from everstate.topology.functions import Function
    from everstate.topology.nodes import Node


@dataclass
class Outcome:
    """What guarded calls gave: by row number the results, and the reasons of those that failed."""

    results: dict[int, Any] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)


def row_values(rows: pl.DataFrame, schema: Schema) -> list[Any]:
    """Each row as a user's function sees it: a dict of all columns, or the bare value where the schema is scalar."""
    if schema.scalar:
        return [row["value"] for row in to_rows(rows, schema)]
    return to_rows(rows, schema)


def guarded(fn: Function, arguments: Iterable[tuple[Any, ...]]) -> Outcome:
    """Call a function for each tuple of arguments; an exception is a failure of that row alone."""
    outcome = Outcome()
    for number, given in enumerate(arguments):
        try:
            outcome.results[number] = fn.call(*given)
        except Exception as error:  # noqa: BLE001 - whatever the user's code raises
            outcome.failures[number] = reason(error, fn)
    return outcome


def reason(error: BaseException, fn: Function) -> str:
    """`ValueError: text (file.py:12 in fn)`, with the innermost line of the user's file."""
    if isinstance(error, RecordError) and error.__traceback__ is None:
        return str(error)
    file = fn.location.file if fn.location else None
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    line = frames[-1].lineno if frames else (fn.location.line if fn.location else None)
    where = f" ({file}:{line} in {fn.name})" if file else f" (in {fn.name})"
    return f"{type(error).__name__}: {error}{where}"


def checked(outcome: Outcome, schema: Schema, fn: Function) -> Outcome:
    """The results as rows of a schema; one that does not fit becomes a failure."""
    fitting = Outcome(failures=dict(outcome.failures))
    for number, result in outcome.results.items():
        try:
            fitting.results[number] = check_row(result, schema)
        except RecordError as error:
            where = f" ({fn.location} in {fn.name})" if fn.location else f" (in {fn.name})"
            fitting.failures[number] = f"wrong result: {error.message}{where}"
    return fitting


def report(outcome: Outcome, rows: pl.DataFrame, ledger: Ledger, node: Node) -> None:
    """Send the rows that failed to the ledger."""
    if outcome.failures:
        numbers = sorted(outcome.failures)
        ledger.dead(rows[numbers], [outcome.failures[number] for number in numbers], node)


def in_place(call: Callable[..., Any]) -> Callable[..., Any]:
    """A function that changes its first argument, as one that returns the changed copy."""

    def changed(row: Any, *others: Any) -> Any:
        own = copy.deepcopy(row)
        call(own, *others)
        return own

    return changed
