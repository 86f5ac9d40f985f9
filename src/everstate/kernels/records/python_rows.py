"""Frames to Python rows and back: for functions of the user, and for records that are taken one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from everstate.schema.column_values import default_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from everstate.schema.schema import Schema
    from everstate.schema.types import DataType, Field


def to_frame(rows: Iterable[Mapping[str, Any]], schema: Schema) -> pl.DataFrame:
    """The frame of rows as `decode_value` and `check_row` return them."""
    rows = list(rows)
    columns = {}
    for field in schema.fields:
        values = [row[field.name] for row in rows]
        if _has_map(field.type):
            values = [_entries(value, field.type) for value in values]
        columns[field.name] = _series(field.name, values, field.type)
    return pl.DataFrame(columns, schema=schema.polars) if columns else pl.DataFrame(height=len(rows))


def to_rows(frame: pl.DataFrame, schema: Schema) -> list[dict[str, Any]]:
    """The rows of a frame as Python sees them: dicts are dicts, and only the schema's columns are there."""
    if not schema.fields:
        return [{} for _ in range(len(frame))]  # a frame without columns has no rows, either
    rows = frame.select(schema.names).to_dicts()
    for field in schema.fields:
        if _has_map(field.type):
            for row in rows:
                row[field.name] = _dicts(row[field.name], field.type)
    return rows


def default_column(field: Field) -> pl.Expr:
    """A field's default as a column of one value."""
    value = default_of(field)
    return pl.lit(_series(field.name, [_entries(value, field.type)], field.type)).first()


def _series(name: str, values: list[Any], type_: DataType) -> pl.Series:
    # Arrow converts by the given type alone and refuses what does not fit exactly, in nested types too.
    made = pl.from_arrow(pa.array(values, type=type_.arrow))
    if not isinstance(made, pl.Series):
        message = "an Arrow array became a frame"
        raise TypeError(message)
    return made.alias(name).cast(type_.polars)


def _has_map(type_: DataType) -> bool:
    if type_.name == "map":
        return True
    inner = [type_.inner.type] if type_.name == "list" else [field.type for field in type_.fields]
    return any(_has_map(each) for each in inner)


def _entries(value: Any, type_: DataType) -> Any:
    """Dicts as the list of pairs that Arrow takes."""
    if value is None or not _has_map(type_):
        return value
    if type_.name == "map":
        return [(key, _entries(item, type_.inner.type)) for key, item in value.items()]
    if type_.name == "list":
        return [_entries(item, type_.inner.type) for item in value]
    return {field.name: _entries(value[field.name], field.type) for field in type_.fields}


def _dicts(value: Any, type_: DataType) -> Any:
    """The key and value structs of a frame as dicts."""
    if value is None or not _has_map(type_):
        return value
    if type_.name == "map":
        return {entry["key"]: _dicts(entry["value"], type_.inner.type) for entry in value}
    if type_.name == "list":
        return [_dicts(item, type_.inner.type) for item in value]
    return {field.name: _dicts(value[field.name], field.type) for field in type_.fields}
