"""Many rows to Avro at once: each column becomes pieces of bytes, and the pieces of a row are put one after the other.

An Avro record is its fields in order, without names or separators, so nothing but the pieces themselves has to be made:
whole numbers in seven bits per byte, floats as they are, texts after their length, a byte before what may be null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from everstate.formats.framing import framed

if TYPE_CHECKING:
    from everstate.schema.schema import Schema
    from everstate.schema.types import DataType, Field

_WHOLE: Final = frozenset({"date", "datetime", "duration"})
_FLOATS: Final = {"float32": "<f4", "float64": "<f8"}
_TEXTS: Final = frozenset({"text", "bytes"})
#: In a union of null and something, which of the two it is.
_NULL, _THERE = b"\0", b"\2"


def is_written(schema: Schema) -> bool:
    """Whether rows of a schema can be written so: lists, dicts, structs and decimals cannot."""
    return all(_is_written(field.type) for field in schema.fields)


def _is_written(type_: DataType) -> bool:
    return type_.is_integer or type_.name in _WHOLE | _TEXTS | _FLOATS.keys() | {"bool"}


def write(frame: pl.DataFrame, schema: Schema, number: int) -> pl.Series:
    """The values of rows, with the number of their schema."""
    if frame.is_empty():
        return pl.Series("value", [], dtype=pl.Binary)
    head = _pieces([framed(number, b"")]).take(pa.array(np.zeros(frame.height, np.int64)))
    parts = [_field(frame.get_column(field.name), field) for field in schema.fields]
    found = pl.from_arrow(_joined([head, *parts]))
    return pl.Series("value", found, dtype=pl.Binary)


def _field(column: pl.Series, field: Field) -> Any:
    if not field.nullable:
        return _values(column, field.type)
    there = column.is_not_null()
    if there.all():
        mark = _pieces([_THERE]).take(pa.array(np.zeros(len(column), np.int64)))
        return _joined([mark, _values(column, field.type)])
    mark = _pieces([_NULL, _THERE]).take(pa.array(there.cast(pl.Int64).to_numpy()))
    filled = _values(column.filter(there), field.type)
    # One more piece, which is empty, stands for all that are null.
    place = pl.select(pl.when(pl.lit(there)).then(pl.lit(there).cum_sum().cast(pl.Int64) - 1).otherwise(len(filled)))
    body = pa.concat_arrays([filled, _pieces([b""])]).take(pa.array(place.to_series().to_numpy()))
    return _joined([mark, body])


def _values(column: pl.Series, type_: DataType) -> Any:
    """The pieces of a column without nulls."""
    if type_.name == "bool":
        return _fixed(column.cast(pl.UInt8).to_numpy())
    if type_.name in _FLOATS:
        return _fixed(column.to_numpy().astype(_FLOATS[type_.name]))
    if type_.name in _TEXTS:
        data = column.cast(pl.Binary)
        return _joined([_varints(data.bin.size().cast(pl.Int64).to_numpy()), _pieces(data.to_list())])
    whole = column.dt.total_microseconds() if type_.name == "duration" else column.to_physical()
    return _varints(whole.cast(pl.Int64).to_numpy())


def _varints(numbers: npt.NDArray[np.int64]) -> Any:
    """Whole numbers in zigzag, seven bits per byte, the lowest first."""
    zigzag = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    width = max(1, -(-int(zigzag.max()).bit_length() // 7)) if len(zigzag) else 1
    places = np.arange(width, dtype=np.uint64)
    shifted = zigzag[:, None] >> (places * np.uint64(7))
    used = shifted > 0
    used[:, 0] = True
    lengths = used.sum(axis=1)
    more = np.arange(width) < (lengths - 1)[:, None]
    content = (shifted & np.uint64(0x7F)).astype(np.uint8) | np.where(more, np.uint8(0x80), np.uint8(0))
    return _array(content[used].tobytes(), lengths)


def _fixed(values: npt.NDArray[Any]) -> Any:
    return _array(values.tobytes(), np.full(len(values), values.dtype.itemsize))


def _array(content: bytes, lengths: npt.NDArray[Any]) -> Any:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(content)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(lengths), buffers)


def _pieces(values: list[bytes]) -> Any:
    return pa.array(values, type=pa.large_binary())


def _joined(parts: list[Any]) -> Any:
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary()))
