"""Rows to values: vectorised by Polars' JSON writer, row by row for what it cannot write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from everstate.formats import avro
from everstate.formats.descriptions import Avro
from everstate.formats.values import encode_value
from everstate.kernels.records import avro_columns, numbers, python_rows, wire
from everstate.kernels.records.keys import text_of
from everstate.schema.schema import SCALAR_COLUMN

if TYPE_CHECKING:
    from everstate.formats.descriptions import Format
    from everstate.schema.schema import Schema


def encode_values(frame: pl.DataFrame, schema: Schema, fmt: Format) -> pl.Series:
    """The values of rows as bytes, named `value`; `decode_values` gives the rows back.

    Args:
        frame: Rows with the schema's columns; others are left out.
        schema: The columns of the value.
        fmt: The format of the value.
    """
    if fmt == "bytes":
        return frame.get_column(SCALAR_COLUMN)
    if fmt == "string":
        return text_of(frame.get_column(SCALAR_COLUMN), schema.fields[0].type).cast(pl.Binary)
    if fmt == "number":
        return numbers.write(frame.get_column(SCALAR_COLUMN), schema.fields[0].type.name)
    if isinstance(fmt, Avro):
        return _avro(frame, schema, fmt)
    return _json(frame, schema) if fmt == "json" else _one_by_one(frame, schema, fmt)


def _avro(frame: pl.DataFrame, schema: Schema, fmt: Avro) -> pl.Series:
    if avro_columns.is_written(schema):
        return avro_columns.write(frame, schema, avro.number(schema, fmt))
    return pl.Series("value", avro.encode(python_rows.to_rows(frame, schema), schema, fmt), dtype=pl.Binary)


def _json(frame: pl.DataFrame, schema: Schema) -> pl.Series:
    if not all(wire.is_carried(field.type) for field in schema.fields):
        return _one_by_one(frame, schema, "json")
    if not schema.fields:
        return pl.Series("value", [b"{}"], dtype=pl.Binary).new_from_index(0, len(frame))
    written = _written(frame, schema)
    special = _special(frame, schema)
    if special is None or not special.any():
        return written
    return written.scatter(special.arg_true(), _one_by_one(frame.filter(special), schema, "json"))


def _written(frame: pl.DataFrame, schema: Schema) -> pl.Series:
    columns = [wire.write(pl.col(field.name), field.type).alias(field.name) for field in schema.fields]
    text = pl.struct(columns).struct.json_encode()
    if schema.scalar:
        text = text.str.strip_prefix(f'{{"{SCALAR_COLUMN}":').str.strip_suffix("}")
    return frame.select(text.cast(pl.Binary).alias("value")).to_series()


def _special(frame: pl.DataFrame, schema: Schema) -> pl.Series | None:
    """Rows with a float that JSON has no number for, which Polars would write as null."""
    found = [wire.unwritable(pl.col(field.name), field.type) for field in schema.fields]
    present = [each for each in found if each is not None]
    return frame.select(pl.any_horizontal(present)).to_series() if present else None


def _one_by_one(frame: pl.DataFrame, schema: Schema, fmt: Format) -> pl.Series:
    rows = python_rows.to_rows(frame, schema)
    return pl.Series("value", [encode_value(row, schema, fmt) for row in rows], dtype=pl.Binary)
