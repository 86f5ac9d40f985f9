"""Columns as JSON can carry them, and back: expressions, so that no value is touched by Python.

JSON has no datetimes, dates, decimals, bytes or durations. On the wire they are texts or integers; here are the
expressions that turn columns of them into the column's own type, and the other way. `topology.forms` says what they
look like; where these expressions know less than it does, they mark the row as doubtful.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa

from everstate.schema.scalars import LONGEST, MICROSECOND

if TYPE_CHECKING:
    from everstate.schema.types import DataType, Field

_DATE: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-5][0-9](\.[0-9]{1,%d})?%s$"
_DECIMAL: Final = r"^-?[0-9]{1,%d}(\.[0-9]{1,%d})?$"
_LONGEST: Final = LONGEST // MICROSECOND
_PLAIN: Final = frozenset({"text", "bool", "float64"})


def is_carried(type_: DataType) -> bool:
    """Whether columns of this type can be written and read without Python; dicts cannot."""
    return type_.name != "map" and all(is_carried(each) for each in _inside(type_))


def is_read(type_: DataType) -> bool:
    """Whether columns of this type can be read so, too; defaults of fields inside are put there by Python alone."""
    if type_.name == "map" or any(field.default is not None for field in type_.fields):
        return False
    return all(is_read(each) for each in _inside(type_))


def _inside(type_: DataType) -> list[DataType]:
    return [field.type for field in ((type_.item,) if type_.item is not None else type_.fields)]


def arrow_type(type_: DataType) -> pa.DataType:
    """What Arrow's JSON reader is told to expect for a column of this type."""
    if type_.name == "list":
        return pa.list_(arrow_type(type_.inner.type))
    if type_.name == "struct":
        return pa.struct([pa.field(field.name, arrow_type(field.type)) for field in type_.fields])
    if type_.is_integer or type_.name == "bool":
        return type_.arrow
    if type_.is_float:
        return pa.float64()  # read as 64 bits and rounded after, as the slow path does
    return pa.int64() if type_.name == "duration" else pa.string()


def _is_plain(type_: DataType) -> bool:
    """Whether the column is the same on the wire."""
    if type_.name == "list":
        return _is_plain(type_.inner.type)
    if type_.name == "struct":
        return all(_is_plain(field.type) for field in type_.fields)
    return type_.is_integer or type_.name in _PLAIN


def read(expr: pl.Expr, type_: DataType) -> pl.Expr:
    """The column of its own type; null where the text is not one that this expression knows."""
    if _is_plain(type_):
        return expr
    if type_.name == "list":
        return expr.list.eval(read(pl.element(), type_.inner.type))
    if type_.name == "struct":
        fields = [read(expr.struct.field(field.name), field.type).alias(field.name) for field in type_.fields]
        return pl.when(expr.is_not_null()).then(pl.struct(fields))
    if type_.name == "float32":
        return expr.cast(pl.Float32)
    if type_.name == "duration":
        known = pl.when(expr.is_between(-_LONGEST, _LONGEST) & (expr % (1 if type_.unit == "us" else 1000) == 0))
        return known.then(expr if type_.unit == "us" else expr // 1000).cast(type_.polars)
    return _read_text(expr, type_)


def _read_text(expr: pl.Expr, type_: DataType) -> pl.Expr:
    if type_.name == "bytes":
        decoded = expr.str.decode("base64", strict=False)
        return pl.when(decoded.bin.encode("base64") == expr).then(decoded)
    if type_.name == "decimal":
        scale, whole = type_.scale or 0, (type_.precision or 0) - (type_.scale or 0)
        known = expr.str.contains(_DECIMAL % (max(whole, 1), max(scale, 1)))
        return pl.when(known).then(expr).str.to_decimal(scale=scale).cast(type_.polars, strict=False)
    if type_.name == "date":
        day = pl.when(expr.str.contains(_DATE)).then(expr).str.to_date("%Y-%m-%d", strict=False)
        return pl.when(day.dt.year() >= 1).then(day)  # Python has no year 0
    digits, suffix = (6, "Z") if type_.unit == "us" else (3, "Z")
    known = expr.str.contains(_TIME % (digits, suffix if type_.zone else ""))
    text = pl.when(known).then(expr.str.strip_suffix("Z"))
    time = text.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", time_unit=type_.unit, strict=False)  # type: ignore[arg-type]
    time = pl.when(time.dt.year() >= 1).then(time)
    return time.dt.replace_time_zone("UTC") if type_.zone else time


def doubtful(wire: pl.Expr, field: Field) -> pl.Expr:
    """Where a column as it was read may break the schema, or may hold what `read` did not know: true, never null."""
    type_ = field.type
    doubt = pl.lit(False) if field.nullable else wire.is_null()
    if type_.name == "list":
        inner = wire.list.eval(doubtful(pl.element(), type_.inner))
        return doubt | inner.list.any().fill_null(value=False)
    if type_.name == "struct":
        fields = [doubtful(wire.struct.field(each.name), each) for each in type_.fields]
        return doubt | (wire.is_not_null() & pl.any_horizontal(fields))
    if type_.is_float:
        return doubt | read(wire, type_).is_infinite().fill_null(value=False)
    if _is_plain(type_):
        return doubt
    return doubt | (wire.is_not_null() & read(wire, type_).is_null())


def write(expr: pl.Expr, type_: DataType) -> pl.Expr:
    """The column as Polars' JSON writer must get it."""
    if _is_plain(type_):
        return expr
    if type_.name == "list":
        return expr.list.eval(write(pl.element(), type_.inner.type))
    if type_.name == "struct":
        fields = [write(expr.struct.field(field.name), field.type).alias(field.name) for field in type_.fields]
        return pl.when(expr.is_not_null()).then(pl.struct(fields))
    if type_.name == "float32":
        return expr.cast(pl.Float64)  # written with all its digits, as the slow path does
    if type_.name == "duration":
        return expr.dt.total_microseconds()
    return text(expr, type_)


def text(expr: pl.Expr, type_: DataType) -> pl.Expr:
    """The one text of bytes, decimals, dates and datetimes."""
    if type_.name == "bytes":
        return expr.bin.encode("base64")
    if type_.name == "decimal":
        digits = expr.cast(pl.String)
        plain = digits.str.strip_chars_end("0").str.strip_suffix(".") if type_.scale else digits
        return plain.replace("-0", "0")
    if type_.name == "date":
        return expr.dt.strftime("%Y-%m-%d")
    written = expr.dt.strftime("%Y-%m-%dT%H:%M:%S%.6f").str.strip_suffix(".000000")
    return pl.concat_str(written, pl.lit("Z")) if type_.zone else written


def unwritable(expr: pl.Expr, type_: DataType) -> pl.Expr | None:
    """Where a column holds a float that JSON has no number for: true, never null; None if it cannot."""
    if type_.is_float:
        return ~expr.is_finite().fill_null(value=True)
    if type_.name == "list":
        inner = unwritable(pl.element(), type_.inner.type)
        return None if inner is None else expr.list.eval(inner).list.any().fill_null(value=False)
    found = [unwritable(expr.struct.field(field.name), field.type) for field in type_.fields]
    present = [each for each in found if each is not None]
    return pl.any_horizontal(present) if present else None
