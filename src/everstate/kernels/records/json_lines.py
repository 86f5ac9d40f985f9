"""Many JSON objects at once, by Arrow's reader, with everything in which it is laxer than our rules set aside.

Arrow reads a batch or refuses it; it never refuses one record. And it takes what is not JSON (`NaN`, a byte order
mark), counts two objects on a line as two rows, and crashes on a bare `null`. So a record is handed to it only if

- it is valid UTF-8, begins with `{` and ends with `}`: then, as a line break cannot stand inside a string, every record
  of a batch that was read holds at least one whole object; and if there are as many rows as records, exactly one;
- it holds no NUL, `NaN` or `Inf` anywhere, no `null` after a `}`, and is not nested too deep.

A batch that Arrow refuses is halved until the trouble is in few records. The slow path judges what is set aside.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.json as pj

from everstate.kernels.records import wire
from everstate.kernels.records.python_rows import default_column
from everstate.schema.record_values import MAX_DEPTH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.schema.schema import Schema
    from everstate.schema.types import Field

#: Records that are handed to Arrow at once: fewer cost more calls, more cost more when one of them is refused.
_BATCH: Final = 131_072
#: Arrow reads a batch as one block, whose size is a 32-bit number.
_BATCH_BYTES: Final = 256 * 1024 * 1024
#: A refused range of so few records goes to the slow path; halving it further would cost more.
_FEW: Final = 32
#: The least that is read after a refused record.
_STEP: Final = 1024

_ROW: Final = re.compile(r"in row ([0-9]+)$")
_REFUSED: Final = r"\x00|NaN|Inf|\}[ \t\r\n]*null"


def usable(text: pl.Series) -> pl.Series:
    """Which records may be handed to Arrow: true or false, never null."""
    record = pl.col(text.name)
    fits = record.str.starts_with("{") & record.str.ends_with("}") & ~record.str.contains(_REFUSED)
    found = text.to_frame().select(
        fits.fill_null(value=False).alias("fits"), (record.str.len_bytes() > MAX_DEPTH).alias("long")
    )
    if not found["long"].any():
        return found["fits"].alias(text.name)
    shallow = record.str.count_matches(r"[\[{]") <= MAX_DEPTH
    return found["fits"].alias(text.name) & text.to_frame().select(shallow.fill_null(value=False)).to_series()


def parse(text: pl.Series, schema: Schema) -> tuple[pl.DataFrame, pl.Series]:
    """Reads usable records.

    Args:
        text: The records; `usable` said yes to each.
        schema: All its types must be ones that can be read so (`wire.is_read`).

    Returns:
        The frame of what could be read, with the place of each record in `$index`; and the places of the others.
    """
    data, bounds = _joined(text)
    expected = pa.schema([pa.field(field.name, wire.arrow_type(field.type)) for field in schema.fields])
    tables: list[pa.Table] = []
    places: list[np.ndarray] = []
    aside: list[np.ndarray] = []
    pending = list(_batches(bounds))[::-1]
    while pending:
        low, high = pending.pop()
        table, row = _read(data.slice(bounds[low], bounds[high] - bounds[low]), expected, rows=high - low)
        if table is not None:
            tables.append(table)
            places.append(np.arange(low, high, dtype=np.uint32))
        elif row is not None and low + row < high:
            aside.append(np.array([low + row], dtype=np.uint32))
            # More are to be expected at such distances: a call costs as much as the range is long.
            after = min(low + row + 1 + max(_STEP, 4 * row), high)
            parts = ((after, high), (low + row + 1, after), (low, low + row))
            pending += [(start, end) for start, end in parts if start < end]
        elif high - low <= _FEW:
            aside.append(np.arange(low, high, dtype=np.uint32))
        else:
            middle = (low + high) // 2
            pending += [(middle, high), (low, middle)]
    return _checked(_frame(tables, places, schema), aside, schema, text)


def _joined(text: pl.Series) -> tuple[pa.Buffer, np.ndarray]:
    """All records in one buffer, a line break after each, and where each begins."""
    lines: Any = (text + "\n").rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, data = lines.buffers()
    return data, np.frombuffer(offsets, dtype=np.int64)[lines.offset : lines.offset + len(lines) + 1]


def _batches(bounds: np.ndarray) -> Iterator[tuple[int, int]]:
    low, count = 0, len(bounds) - 1
    while low < count:
        high = min(low + _BATCH, count, int(np.searchsorted(bounds, bounds[low] + _BATCH_BYTES, side="right")) - 1)
        high = max(high, low + 1)
        yield low, high
        low = high


def _read(data: pa.Buffer, expected: pa.Schema, *, rows: int) -> tuple[pa.Table | None, int | None]:
    """The table of a range of records; or, if Arrow refuses it, the record that it names, where it names one.

    Arrow names the record that is not JSON or holds another type, but not one with a number that does not fit. Nothing
    depends on that name but speed.
    """
    try:
        table = pj.read_json(
            pa.BufferReader(data),  # type: ignore[arg-type]  # any file-like object is
            read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pj.ParseOptions(explicit_schema=expected, unexpected_field_behavior="ignore"),
        )
    except (pa.ArrowException, OverflowError) as error:
        named = _ROW.search(str(error))
        return None, int(named.group(1)) if named else None
    return (table, None) if table.num_rows == rows else (None, None)


def _frame(tables: list[pa.Table], places: list[np.ndarray], schema: Schema) -> pl.DataFrame:
    """What was read, as the wire has it, with the place of each record."""
    index = pl.Series("$index", np.concatenate(places) if places else [], dtype=pl.UInt32)
    if not tables or not schema.fields:
        return pl.DataFrame([index])
    return pl.DataFrame(pa.concat_tables(tables)).with_columns(index)


def _doubt(read: pl.DataFrame, text: pl.Series, field: Field) -> pl.Expr:
    if field.default is None:
        return wire.doubtful(pl.col(field.name), field)
    doubt = wire.doubtful(pl.col(field.name), replace(field, nullable=False))
    return doubt & ~pl.lit(_left_out(read, text, field))


def _column(field: Field) -> pl.Expr:
    column = wire.read(pl.col(field.name), field.type)
    return (column if field.default is None else column.fill_null(default_column(field))).alias(field.name)


def _left_out(read: pl.DataFrame, text: pl.Series, field: Field) -> pl.Series:
    """Where a field with a default is certainly left out.

    Arrow gives null for that, and for a field that is null. A record that has neither the field's name, with quotation
    marks and a colon, nor an escape has left it out; of the others the slow path decides.
    """
    nulls = read[field.name].is_null()
    records = text.gather(read["$index"].filter(nulls))
    told = records.str.contains(rf'\\|"{re.escape(field.name)}"[ \t\r\n]*:')
    return nulls.scatter(nulls.arg_true(), ~told)


def _checked(
    read: pl.DataFrame, aside: list[np.ndarray], schema: Schema, text: pl.Series
) -> tuple[pl.DataFrame, pl.Series]:
    """Turns the wire's columns into the schema's, and sets the rows aside of which the wire is not sure."""
    if read.is_empty():
        read = pl.DataFrame(schema={**schema.polars, "$index": pl.UInt32})
    elif schema.fields:
        doubts = [_doubt(read, text, field) for field in schema.fields]
        doubt = read.select(pl.any_horizontal(doubts)).to_series()
        if doubt.any():
            aside.append(read.filter(doubt)["$index"].to_numpy())
            read = read.filter(~doubt)
        read = read.select(*(_column(field) for field in schema.fields), "$index")
    rest = np.sort(np.concatenate(aside)) if aside else np.empty(0, dtype=np.uint32)
    return read, pl.Series("$index", rest, dtype=pl.UInt32)
