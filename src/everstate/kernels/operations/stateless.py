"""Operations that see each row alone; on a table they act on the old and the new row alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.errors import RecordError
from everstate.kernels.expressions import evaluate
from everstate.kernels.functions import checked, guarded, in_place, report, row_values
from everstate.kernels.keying import rekeyed
from everstate.kernels.operations.kernel import RowKernel
from everstate.kernels.records.python_rows import to_frame
from everstate.kernels.rows import CONTRIBUTION, OP, SYSTEM
from everstate.topology.functions import Function
from everstate.topology.nodes import Filter, FlatMap, Map, Merge, Peek, Project, RekeyStream

if TYPE_CHECKING:
    from everstate.kernels.functions import Outcome
    from everstate.kernels.ledger import Ledger
    from everstate.topology.nodes import Node


def filtered(node: Filter, rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """`filter` and `branch`."""
    for condition in node.unless:
        rows = _where(node, condition, rows, ledger, wanted=False)
    return _where(node, node.predicate, rows, ledger, wanted=True)


def _where(
    node: Filter, condition: pl.Expr | Function, rows: pl.DataFrame, ledger: Ledger, *, wanted: bool
) -> pl.DataFrame:
    """The rows for which a condition is (or is not) true; null is not true."""
    if isinstance(condition, Function):
        outcome = guarded(condition, ((value,) for value in row_values(rows, node.inputs[0].schema)))
        report(outcome, rows, ledger, node)
        return rows[[number for number, result in outcome.results.items() if bool(result) is wanted]]
    rows, values = evaluate(rows, [condition], ledger, node)
    kept = values.to_series().fill_null(value=False)
    return rows.filter(kept if wanted else ~kept)


def projected(node: Project, rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """`select`, `with_columns`, `rename` and `drop`."""
    rows, values = evaluate(rows, node.columns, ledger, node)
    rows = rows.rename({old: new for old, new in node.renamed if old != new})
    system = rows.select(*SYSTEM, *node.key.names)
    values = values.drop(node.key.names, strict=False)
    return pl.concat([system, values], how="horizontal").select(*SYSTEM, *node.schema.names)


def mapped(node: Map, rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """`map` and `update`."""
    call = Function(in_place(node.fn.call), node.fn.name, node.fn.location) if node.in_place else node.fn
    outcome = guarded(call, ((value,) for value in row_values(rows, node.inputs[0].schema)))
    return with_results(node, rows, outcome, node.fn, ledger)


def with_results(node: Node, rows: pl.DataFrame, outcome: Outcome, fn: Function, ledger: Ledger) -> pl.DataFrame:
    """Rows with the checked results of a function as their values; those that failed are dead letters.

    A result may repeat the key, but not change it.
    """
    outcome = checked(_without_keys(node, rows, outcome), node.values, fn)
    report(outcome, rows, ledger, node)
    kept = rows[list(outcome.results)].select(*SYSTEM, *node.key.names)
    results = to_frame(outcome.results.values(), node.values)
    return pl.concat([kept, results], how="horizontal").select(*SYSTEM, *node.schema.names)


def without_key(node: Node, key: tuple[Any, ...], result: Any) -> Any:
    """A function's result without the fields of the key.

    Args:
        node: The node that the result is for.
        key: The row's key, by column.
        result: What the function returned.

    Raises:
        RecordError: If a field of the key differs from the row's key.
    """
    names = node.key.names
    if node.schema.scalar or not isinstance(result, dict) or not any(name in result for name in names):
        return result
    for name, part in zip(names, key, strict=True):
        if name in result and result[name] != part:
            raise RecordError(
                f"the function changed the key: field {name!r} is {result[name]!r}, the key is {part!r}; use rekey()"
            )
    return {name: value for name, value in result.items() if name not in names}


def _without_keys(node: Node, rows: pl.DataFrame, outcome: Outcome) -> Outcome:
    """Take the key's fields out of the results; one that differs from the row's key is a failure."""
    if node.schema.scalar:
        return outcome
    keys = rows.select(node.key.names).rows()
    for number, result in list(outcome.results.items()):
        try:
            outcome.results[number] = without_key(node, keys[number], result)
        except RecordError as error:
            outcome.results.pop(number)
            outcome.failures[number] = error.message
    return outcome


def flat_mapped(node: FlatMap, rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """`flat_map`."""

    def all_of(value: object) -> list[object]:
        return list(node.fn.call(value))

    call = Function(all_of, node.fn.name, node.fn.location)
    outcome = guarded(call, ((value,) for value in row_values(rows, node.inputs[0].schema)))
    report(outcome, rows, ledger, node)
    origin = [number for number, results in outcome.results.items() for _ in results]
    spread = [result for results in outcome.results.values() for result in results]
    each = type(outcome)(results=dict(enumerate(spread)))
    return with_results(node, rows[origin], each, node.fn, ledger)


def peeked(node: Peek, rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """`peek`."""
    added = rows.filter(pl.col(OP) > 0)
    outcome = guarded(node.fn, ((value,) for value in row_values(added, node.inputs[0].schema)))
    # The row passes although its side effect failed: what is computed must not depend on it.
    ledger.counts["peek.failed"] += len(outcome.failures)
    return rows


def given_key(node: RekeyStream, rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """`rekey` of a stream."""
    return rekeyed(node.keying, rows, ledger, node).drop(CONTRIBUTION).select(*SYSTEM, *node.schema.names)


def merged(node: Merge, rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """`merge`."""
    del ledger
    return rows.select(*SYSTEM, *node.schema.names)


KERNELS: Final = {
    Filter: RowKernel(filtered),
    Project: RowKernel(projected),
    Map: RowKernel(mapped),
    FlatMap: RowKernel(flat_mapped),
    Peek: RowKernel(peeked),
    RekeyStream: RowKernel(given_key),
    Merge: RowKernel(merged),
}
