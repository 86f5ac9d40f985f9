"""Many Avro values at once, by Polars' reader, with everything set aside of which it is not sure.

Polars reads files. So the values of one schema become one block of a file in memory. Such a block says how many values
it has, not where each of them ends: one that is damaged would shift all that follow, and might still be read as
something. Therefore each value is followed by a number that this process has drawn, as one more field of its schema:
where it is found after every value, every value ended where it should.
"""

from __future__ import annotations

import io
import json
import random
import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.errors import DecodeError
from everstate.formats.avro import writer_schema
from everstate.formats.framing import HEAD, varint
from everstate.kernels.records.python_rows import default_column
from everstate.schema.schema import SCALAR_COLUMN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.formats.descriptions import Avro
    from everstate.schema.schema import Schema
    from everstate.schema.types import DataType, Field

_INDEX: Final = "$index"
#: Values that are read at once: if one is damaged, all of these are taken one by one.
_BATCH: Final = 8192
_END: Final = "everstate_end"
_SEAL: Final = random.SystemRandom().random()
_SEALED: Final = struct.pack("<d", _SEAL)
#: Follows the values: a length that is wrong by little leads there instead of beyond the end, where Polars would panic.
_MARGIN: Final = bytes(1 << 16)
_PLAIN: Final = frozenset({"boolean", "int", "long", "float", "double", "bytes", "string"})
_LOGICAL: Final = frozenset(
    {"date", *(f"{local}timestamp-{unit}" for local in ("", "local-") for unit in ("millis", "micros"))}
)
_SYNC: Final = bytes(range(16))
_WIDER: Final = {
    (pl.Int32, pl.Int64),
    (pl.Int32, pl.Float64),
    (pl.Float32, pl.Float64),
}


def read(values: pl.Series, schema: Schema, fmt: Avro) -> tuple[pl.DataFrame, pl.Series]:
    """Read values.

    Returns:
        The frame of what could be read, with the place of each value in `$index`; and the places of the others.
    """
    cut = pl.Series("head", [value[:HEAD] for value in values.to_list()], dtype=pl.Binary)
    heads = pl.DataFrame([cut]).with_row_index(_INDEX)
    frames: list[pl.DataFrame] = []
    for (head,), group in heads.group_by(["head"], maintain_order=True):
        writer = _readable(head, fmt)
        if writer is not None:
            frames += _group(values.gather(group[_INDEX]), group[_INDEX], writer, schema)
    kinds = {**schema.polars, _INDEX: pl.UInt32()}
    found = pl.concat([pl.DataFrame(schema=kinds), *frames]).sort(_INDEX)
    if found.height == len(values):
        return found, pl.Series(dtype=pl.UInt32)
    every = pl.int_range(len(values), dtype=pl.UInt32, eager=True)
    return found, every.filter(~every.is_in(found[_INDEX].implode()))


def _group(values: pl.Series, places: pl.Series, writer: str, schema: Schema) -> Iterator[pl.DataFrame]:
    """What can be read of values that have one schema."""
    for start in range(0, len(values), _BATCH):
        part = values.slice(start, _BATCH)
        frame = _block(part, writer)
        columns = None if frame is None else _columns(frame, schema)
        if columns is not None:
            found = columns.with_columns(places.slice(start, _BATCH).alias(_INDEX))
            yield found.filter(~found.select(_doubtful(schema)).to_series())


def _readable(head: Any, fmt: Avro) -> str | None:
    """The schema of values that begin so, if Polars can read it."""
    if len(head) < HEAD or head[0] != 0:
        return None
    try:
        return _sealed_schema(writer_schema(int.from_bytes(head[1:], "big"), fmt))
    except DecodeError:
        return None


@lru_cache(maxsize=512)
def _sealed_schema(text: str) -> str | None:
    """A schema with one more field at its end; None if it has what Polars cannot read as it is meant."""
    schema = json.loads(text)
    if not (isinstance(schema, dict) and schema.get("type") == "record"):
        # The only field of a record is written as it is without one.
        schema = {"type": "record", "name": "everstate", "fields": [{"name": SCALAR_COLUMN, "type": schema}]}
    if not _is_plain(schema) or not schema["fields"]:
        return None
    fields = [{"name": field["name"], "type": field["type"]} for field in schema["fields"]]
    sealed = {"type": "record", "name": "everstate", "fields": [*fields, {"name": _END, "type": "double"}]}
    return json.dumps(sealed)


def _is_plain(schema: Any) -> bool:
    """Whether Polars reads it as it is meant: not enumerations, maps, other unions, and what is named again."""
    if isinstance(schema, str):
        return schema in _PLAIN
    if isinstance(schema, list):
        inner = [each for each in schema if each != "null"]
        return len(schema) == 2 and len(inner) == 1 and not isinstance(inner[0], list) and _is_plain(inner[0])
    if not isinstance(schema, dict):
        return False
    if "logicalType" in schema:
        return schema["logicalType"] in _LOGICAL
    if schema.get("type") == "record":
        return all(_is_plain(field["type"]) for field in schema["fields"])
    if schema.get("type") == "array":
        return _is_plain(schema["items"])
    return _is_plain(schema.get("type"))


def _block(values: pl.Series, schema: str) -> pl.DataFrame | None:
    """The frame of values, if all of them could be read."""
    content = _SEALED.join([value[HEAD:] for value in values.to_list()]) + _SEALED + _MARGIN
    header = _entry(b"avro.schema", schema.encode()) + _entry(b"avro.codec", b"null")
    file = [b"Obj\x01", varint(2), header, varint(0), _SYNC, varint(len(values)), varint(len(content)), content, _SYNC]
    try:
        frame = pl.read_avro(io.BytesIO(b"".join(file)))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return None
    whole = frame.height == len(values) and bool((frame[_END] == _SEAL).all())
    return frame.drop(_END) if whole else None


def _entry(name: bytes, value: bytes) -> bytes:
    return varint(len(name)) + name + varint(len(value)) + value


def _columns(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame | None:
    """The schema's columns; None if one of them needs a closer look."""
    found = []
    for field in schema.fields:
        if field.name in frame.columns:
            column = _cast(frame[field.name], field.type)
        elif field.nullable or field.default is not None:
            column = pl.select(default_column(field)).to_series().new_from_index(0, frame.height)
        else:
            column = None
        if column is None:
            return None
        found.append(column.alias(field.name))
    return pl.DataFrame(found)


def _cast(column: pl.Series, type_: DataType) -> pl.Series | None:
    was, wanted = column.dtype, type_.polars
    if type_.name == "map":
        return None
    if was == wanted:
        return column
    if type_.name == "duration" and was == pl.Int64:
        return None if type_.unit != "us" else column.cast(wanted)
    if isinstance(was, pl.Datetime) and isinstance(wanted, pl.Datetime):
        finer = (was.time_unit, wanted.time_unit) == ("ms", "us") and was.time_zone == wanted.time_zone
        return column.cast(wanted) if finer else None
    return column.cast(wanted) if (was.base_type(), wanted.base_type()) in _WIDER else None


def _doubtful(schema: Schema) -> pl.Expr:
    doubts = [_doubt(pl.col(field.name), field) for field in schema.fields]
    return pl.any_horizontal([pl.lit(False), *doubts])


def _doubt(column: pl.Expr, field: Field) -> pl.Expr:
    """Where a value breaks the schema, or is a time that Python does not have: true, never null."""
    type_ = field.type
    doubt = pl.lit(False) if field.nullable else column.is_null()
    if type_.name == "list":
        inner = column.list.eval(_doubt(pl.element(), type_.inner))
        return doubt | inner.list.any().fill_null(value=False)
    if type_.name == "struct":
        fields = [_doubt(column.struct.field(each.name), each) for each in type_.fields]
        return doubt | (column.is_not_null() & pl.any_horizontal(fields))
    if type_.name in ("date", "datetime"):
        return doubt | ~column.dt.year().is_between(1, 9999).fill_null(value=True)
    return doubt
