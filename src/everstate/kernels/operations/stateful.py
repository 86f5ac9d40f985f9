"""Stateful functions on a stream: `apply`, `filter` and `update` with the state of the row's key.

Rows are taken in the order of stream time, topic, partition and offset. A row for which the function raises, or gives a
result that does not fit, is a dead letter and leaves no trace in the state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.errors import EverstateError, RecordError
from everstate.kernels.changes import shaped
from everstate.kernels.functions import Outcome, reason, report, row_values
from everstate.kernels.operations.converting import converted, failure, function_of
from everstate.kernels.operations.kernel import StateKernel
from everstate.kernels.operations.stateless import without_key
from everstate.kernels.operations.user_state import Held, checked, decode, encode
from everstate.kernels.order import by_arrival
from everstate.kernels.records.python_rows import to_frame
from everstate.kernels.rows import KEY, SYSTEM, empty
from everstate.schema.record_values import check_row
from everstate.topology.nodes import Stateful

if TYPE_CHECKING:
    from everstate.kernels.ledger import Ledger
    from everstate.kernels.shard import Shard
    from everstate.schema.schema import Schema

#: The column that holds a key's state.
STATE: Final = "state"

#: What is stored of a key.
STORED: Final[dict[str, pl.DataType]] = {KEY: pl.Binary(), STATE: pl.Binary()}


def update(
    node: Stateful, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Call the function for each row of a micro-batch.

    Args:
        node: The node.
        number: Under which it keeps its state.
        inputs: The stream's rows; those without a key are dropped and counted.
        shard: Holds one state per key; a key whose state became empty is removed.
        emit_moves: Makes no difference: a stream's rows stand as they are.
    """
    del emit_moves
    if inputs[0].is_empty():
        return empty(node.schema.polars)
    keyed = inputs[0].filter(pl.col(KEY).is_not_null())
    shard.ledger.drop("null_key", inputs[0].height - keyed.height)
    rows = by_arrival(keyed, shard.order)
    store = shard.keyed(number)
    stored = shaped(store.lookup(rows.select(KEY).unique()), STORED)
    states = {key: Held(blob) for key, blob in stored.rows()}
    outcome = _called(node, rows, states)
    written = {key: held.blob() for key, held in states.items() if held.written}
    kept = pl.DataFrame([(key, blob) for key, blob in written.items() if blob], schema=STORED, orient="row")
    store.apply(kept, pl.Series(KEY, [key for key, blob in written.items() if not blob], dtype=pl.Binary))
    return _with_results(node, rows, outcome, shard.ledger)


def contents(node: Stateful, number: int, shard: Shard) -> pl.DataFrame:
    """The state of each key."""
    del node
    return shaped(shard.keyed(number).scan(), STORED)


def shown(row: dict[str, Any]) -> str:
    """A key's state, for people."""
    return repr(decode(row[STATE]))


def convert(node: Stateful, number: int, before: Schema, shard: Shard) -> None:
    """Convert the state of all keys, which describes itself; one that becomes empty is removed.

    Raises:
        MigrationError: If the function raises, or gives what cannot be stored.
    """
    del before
    function = function_of(node)
    rows = []
    for key, blob in contents(node, number, shard).iter_rows():
        result = converted(function, decode(blob), key)
        try:
            written = encode(checked({} if result is None else result, f"{function.name}()"))
        except EverstateError as error:
            raise failure(function, key, error.message) from None
        if written:
            rows.append((key, written))
    shard.replace(number, 0, pl.DataFrame(rows, schema=STORED, orient="row"))


def _called(node: Stateful, rows: pl.DataFrame, states: dict[bytes, Held]) -> Outcome:
    """Call the function row by row; each call sees what the earlier ones left in its key's state."""
    outcome = Outcome()
    keys = rows.select(node.key.names).rows()
    values = row_values(rows, node.inputs[0].schema)
    schema = node.values
    for number, (key, value) in enumerate(zip(rows[KEY], values, strict=True)):
        held = states.get(key) or states.setdefault(key, Held(b""))
        try:
            with held.opened() as state:
                result = node.fn.call(value, state)
                if node.mode == "filter":
                    outcome.results[number] = bool(result)
                else:
                    changed = value if node.mode == "update" else result
                    outcome.results[number] = _fitting(without_key(node, keys[number], changed), schema)
        except Exception as error:  # noqa: BLE001 - whatever the user's code raises
            outcome.failures[number] = reason(error, node.fn)
    return outcome


def _fitting(result: Any, schema: Schema) -> dict[str, Any]:
    """The result as columns; raises, and so undoes the call, if it does not fit."""
    try:
        return check_row(result, schema)
    except RecordError as error:
        raise RecordError(f"wrong result: {error.message}") from None


def _with_results(node: Stateful, rows: pl.DataFrame, outcome: Outcome, ledger: Ledger) -> pl.DataFrame:
    report(outcome, rows, ledger, node)
    if node.mode == "filter":
        return rows[[number for number, stays in outcome.results.items() if stays]].select(*SYSTEM, *node.schema.names)
    kept = rows[list(outcome.results)].select(*SYSTEM, *node.key.names)
    made = to_frame(outcome.results.values(), node.values)
    return pl.concat([kept, made], how="horizontal").select(*SYSTEM, *node.schema.names)


KERNELS: Final = {Stateful: StateKernel(update, contents=contents, shown=shown, convert=convert)}
