"""Giving rows another key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from everstate.kernels.expressions import evaluate
from everstate.kernels.functions import checked, guarded, report, row_values
from everstate.kernels.records.keys import decode_keys, encode_keys
from everstate.kernels.records.python_rows import to_frame
from everstate.kernels.rows import CONTRIBUTION, KEY, OP
from everstate.schema.schema import SCALAR_COLUMN, Field, Schema

if TYPE_CHECKING:
    from everstate.kernels.ledger import Ledger
    from everstate.schema.keys import KeySpec
    from everstate.topology.functions import Function
    from everstate.topology.nodes import Keying, Node


def with_key(rows: pl.DataFrame, key: KeySpec) -> pl.DataFrame:
    """Rows with the columns of their key, which stores keep as bytes alone."""
    columns, _ = decode_keys(rows[KEY], key)
    return rows.with_columns(series.alias(name) for name, series in columns.items())


def rekeyed(keying: Keying, rows: pl.DataFrame, ledger: Ledger, node: Node) -> pl.DataFrame:
    """The rows under their new key.

    A row without a new key is dropped and counted; one whose new key cannot be made is a dead letter.

    Args:
        keying: How the key is made.
        rows: A rows frame.
        ledger: Takes what is left out.
        node: The step that re-keys; its first input gave the rows.

    Returns:
        The rows with the new key in `$key` and in the key's columns, and the old one in `$ck`.
    """
    rows, parts = key_parts(keying, rows, ledger, node)
    absent = pl.any_horizontal(pl.col(keying.key.names).is_null())
    if any(parts[name].null_count() for name in keying.key.names):
        missing = parts.select(absent).to_series()
        ledger.drop("null_key", rows.filter(missing & (rows[OP] > 0)).height)
        rows, parts = rows.filter(~missing), parts.filter(~missing)
    return rows.with_columns(
        rows[KEY].alias(CONTRIBUTION), encode_keys(parts, keying.key).alias(KEY), *parts.get_columns()
    )


def key_parts(keying: Keying, rows: pl.DataFrame, ledger: Ledger, node: Node) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows whose new key can be made, and the columns of that key, which may be null."""
    if keying.fn is not None:
        return _called(keying.fn, keying.key, rows, ledger, node)
    named = [part.alias(name) for part, name in zip(keying.by, keying.key.names, strict=True)]
    return evaluate(rows, named, ledger, node)


def _called(
    fn: Function, key: KeySpec, rows: pl.DataFrame, ledger: Ledger, node: Node
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows for which the function gave a key, and the key's one column."""
    schema = Schema((Field(SCALAR_COLUMN, key.types[0], nullable=True),), scalar=True)
    calls = guarded(fn, ((value,) for value in row_values(rows, node.inputs[0].schema)))
    outcome = checked(calls, schema, fn)
    report(outcome, rows, ledger, node)
    numbers = sorted(outcome.results)
    parts = to_frame([outcome.results[number] for number in numbers], schema)
    return rows[numbers], parts.rename({SCALAR_COLUMN: key.names[0]})
