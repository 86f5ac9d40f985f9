"""The types a column can have, and how each is spelled in Polars, in Arrow and as JSON.

| type | Python | Polars | JSON value |
|---|---|---|---|
| `text` | `str` | String | string |
| `int64` (and `int8` to `uint64`) | `int` | Int64 | number without fraction or exponent |
| `float64`, `float32` | `float` | Float64 | number, or `"NaN"`, `"Infinity"`, `"-Infinity"` |
| `bool` | `bool` | Boolean | `true`, `false` |
| `bytes` | `bytes` | Binary | base64 string |
| `datetime` | `datetime` | Datetime(us, UTC) | ISO-8601 string with an offset, written with `Z` |
| `date` | `date` | Date | ISO-8601 string |
| `duration` | `timedelta` | Duration(us) | number of microseconds |
| `decimal` | `Decimal` | Decimal(38, 18) | string such as `"12.5"` |
| `list` | `list[T]` | List(T) | array |
| `map` | `dict[str, T]` | List(Struct(key, value)), sorted by key, so that equal dicts are equal rows | object |
| `struct` | dataclass, TypedDict or dict | Struct | object |
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import polars as pl
import pyarrow as pa

#: Precision and scale of a plain `Decimal`; an Arrow `decimal128(p, s)` chooses its own.
DECIMAL: Final = (38, 18)

_PLAIN: Final[dict[str, tuple[pl.DataType, pa.DataType]]] = {
    "text": (pl.String(), pa.string()),
    "int8": (pl.Int8(), pa.int8()),
    "int16": (pl.Int16(), pa.int16()),
    "int32": (pl.Int32(), pa.int32()),
    "int64": (pl.Int64(), pa.int64()),
    "uint8": (pl.UInt8(), pa.uint8()),
    "uint16": (pl.UInt16(), pa.uint16()),
    "uint32": (pl.UInt32(), pa.uint32()),
    "uint64": (pl.UInt64(), pa.uint64()),
    "float32": (pl.Float32(), pa.float32()),
    "float64": (pl.Float64(), pa.float64()),
    "bool": (pl.Boolean(), pa.bool_()),
    "bytes": (pl.Binary(), pa.binary()),
    "date": (pl.Date(), pa.date32()),
}
_NAME_OF_POLARS: Final = {polars: name for name, (polars, _) in _PLAIN.items()}
_NAME_OF_ARROW: Final = {arrow: name for name, (_, arrow) in _PLAIN.items()} | {
    pa.large_string(): "text",
    pa.string_view(): "text",
    pa.large_binary(): "bytes",
    pa.binary_view(): "bytes",
}
_INTEGERS: Final = {
    name: (0, 2**bits - 1) if name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for name in _PLAIN
    if "int" in name
    for bits in (int(name.removeprefix("u").removeprefix("int")),)
}

#: What to write instead of a type that has no place in a record.
_INSTEAD: Final = "Cast the column to one of: str, int, float, bool, bytes, datetime (UTC), date, timedelta, Decimal."


class TypeMistakeError(TypeError):
    """A type that cannot be a column's; `Schema` turns it into a SchemaError with the column's name and location."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.message = message
        self.hint = hint
        super().__init__(message)


@dataclass(frozen=True)
class DataType:
    """One type; equal types are equal objects, whichever way they were written.

    Attributes:
        name: As in the table of this module.
        unit: `ms` or `us`, of datetimes and durations.
        zone: `UTC`, or None for datetimes without a time zone.
        precision: Digits of a decimal.
        scale: Digits of a decimal after the point.
        item: The items of a list (named `item`) or the values of a map (named `value`), with their nullability.
        fields: The fields of a struct.
    """

    name: str
    unit: str | None = None
    zone: str | None = None
    precision: int | None = None
    scale: int | None = None
    item: Field | None = None
    fields: tuple[Field, ...] = ()

    @property
    def is_integer(self) -> bool:
        """Whether it is one of the integer types."""
        return self.name in _INTEGERS

    @property
    def is_float(self) -> bool:
        """Whether it is one of the float types."""
        return self.name in ("float32", "float64")

    @property
    def is_nested(self) -> bool:
        """Whether it has other types inside."""
        return self.name in ("list", "map", "struct")

    @property
    def bounds(self) -> tuple[int, int]:
        """The smallest and the largest value of an integer type."""
        return _INTEGERS[self.name]

    @property
    def inner(self) -> Field:
        """The item of a list or a map."""
        if self.item is None:
            raise TypeMistakeError(f"{self.name} has no items", hint="Use a list or a dict.")
        return self.item

    @cached_property
    def polars(self) -> pl.DataType:
        """The Polars type of the column."""
        if self.name in _PLAIN:
            return _PLAIN[self.name][0]
        if self.name == "datetime":
            return pl.Datetime(self.unit, self.zone)  # type: ignore[arg-type]  # only units that Polars knows are built
        if self.name == "duration":
            return pl.Duration(self.unit)  # type: ignore[arg-type]
        if self.name == "decimal":
            return pl.Decimal(self.precision, self.scale)  # type: ignore[arg-type]
        if self.name == "list":
            return pl.List(self.inner.type.polars)
        if self.name == "map":
            return pl.List(pl.Struct({"key": pl.String(), "value": self.inner.type.polars}))
        return pl.Struct({field.name: field.type.polars for field in self.fields})

    @cached_property
    def arrow(self) -> pa.DataType:
        """The Arrow type of the column."""
        if self.name in _PLAIN:
            return _PLAIN[self.name][1]
        if self.name == "datetime":
            return pa.timestamp(self.unit, self.zone)  # type: ignore[no-any-return, call-overload]  # as above
        if self.name == "duration":
            return pa.duration(self.unit)  # type: ignore[type-var]
        if self.name == "decimal":
            return pa.decimal128(self.precision, self.scale)
        if self.name == "list":
            return pa.list_(self.inner.arrow)
        if self.name == "map":
            return pa.map_(pa.string(), self.inner.arrow)  # type: ignore[no-any-return, call-overload]  # fields are fine
        return pa.struct([field.arrow for field in self.fields])

    def relaxed(self) -> DataType:
        """The same type with everything inside nullable: what is known of it after an expression."""
        return replace(
            self,
            item=self.item and Field(self.item.name, self.item.type.relaxed(), nullable=True),
            fields=tuple(Field(field.name, field.type.relaxed(), nullable=True) for field in self.fields),
        )

    def to_json(self) -> Any:
        """A JSON value that `from_json` reads back; stable, so that it may be hashed."""
        if self.name in ("datetime", "duration"):
            return {self.name: self.unit, "zone": self.zone} if self.name == "datetime" else {self.name: self.unit}
        if self.name == "decimal":
            return {"decimal": [self.precision, self.scale]}
        if self.item is not None:
            return {self.name: self.item.to_json()}
        if self.name == "struct":
            return {"struct": [field.to_json() for field in self.fields]}
        return self.name

    @staticmethod
    def from_json(data: Any) -> DataType:
        """The type that `to_json` wrote."""
        if isinstance(data, str):
            return DataType(data)
        if "datetime" in data:
            return DataType("datetime", unit=data["datetime"], zone=data["zone"])
        if "duration" in data:
            return DataType("duration", unit=data["duration"])
        if "decimal" in data:
            return DataType("decimal", precision=data["decimal"][0], scale=data["decimal"][1])
        if "struct" in data:
            return DataType("struct", fields=tuple(Field.from_json(field) for field in data["struct"]))
        ((name, item),) = data.items()
        return DataType(name, item=Field.from_json(item))

    def __str__(self) -> str:
        if self.name == "list":
            return f"list of {self.inner.type}"
        if self.name == "map":
            return f"dict of {self.inner.type}"
        if self.name == "struct":
            return "{" + ", ".join(f"{field.name}: {field.type}" for field in self.fields) + "}"
        return {"int64": "integer", "float64": "float"}.get(self.name, self.name)


@dataclass(frozen=True)
class Field:
    """A column, or a field inside one.

    Attributes:
        name: Its name.
        type: Its type.
        nullable: Whether the value may be null; if there is no default, it may also be missing then.
        default: The JSON of what stands where the field is left out; None if nothing is declared.
    """

    name: str
    type: DataType
    nullable: bool = False
    default: str | None = None

    @property
    def arrow(self) -> pa.Field[Any]:
        """The Arrow field."""
        return pa.field(self.name, self.type.arrow, nullable=self.nullable)

    def to_json(self) -> dict[str, Any]:
        """A JSON value that `from_json` reads back."""
        written = {"name": self.name, "type": self.type.to_json(), "nullable": self.nullable}
        return written if self.default is None else {**written, "default": self.default}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Field:
        """The field that `to_json` wrote."""
        return Field(data["name"], DataType.from_json(data["type"]), data["nullable"], data.get("default"))

    def __str__(self) -> str:
        default = "" if self.default is None else f" = {self.default}"
        return f"{self.name}: {self.type}{'?' if self.nullable else ''}{default}"


TEXT: Final = DataType("text")
INTEGER: Final = DataType("int64")
FLOAT: Final = DataType("float64")
BOOL: Final = DataType("bool")
BYTES: Final = DataType("bytes")
DATE: Final = DataType("date")
DATETIME: Final = DataType("datetime", unit="us", zone="UTC")
DURATION: Final = DataType("duration", unit="us")


def list_of(item: DataType, *, nullable: bool = False) -> DataType:
    """A list of these items."""
    return DataType("list", item=Field("item", item, nullable))


def map_of(value: DataType, *, nullable: bool = False) -> DataType:
    """A dict from text to these values."""
    return DataType("map", item=Field("value", value, nullable))


def struct_of(fields: list[Field]) -> DataType:
    """A struct of these fields, which must have names of their own."""
    names = [field.name for field in fields]
    if not names:
        raise TypeMistakeError("a nested type needs at least one field", hint="Name its fields.")
    for name in names:
        if not name or "\x00" in name:
            raise TypeMistakeError("a nested field has an empty name, or a NUL in it", hint="Give it a name.")
        if names.count(name) > 1:
            raise TypeMistakeError(f"the nested field {name!r} appears twice", hint="Rename one of them.")
    return DataType("struct", fields=tuple(fields))


def _timed(name: str, unit: str, zone: str | None) -> DataType:
    if unit not in ("ms", "us"):
        raise TypeMistakeError(
            f"a {name} in {unit} has a different precision from Python's", hint='Cast it: .dt.cast_time_unit("us")'
        )
    if zone not in (None, "UTC"):
        raise TypeMistakeError(f"a datetime in {zone}", hint='Convert it: .dt.convert_time_zone("UTC")')
    return DataType(name, unit=unit, zone=zone)


def _decimal(precision: int | None, scale: int) -> DataType:
    precision = DECIMAL[0] if precision is None else precision
    if not 0 <= scale <= precision <= DECIMAL[0]:
        raise TypeMistakeError(
            f"a decimal of {precision} digits, {scale} after the decimal point",
            hint=f"It has at most {DECIMAL[0]} digits, and no more of them after the decimal point.",
        )
    return DataType("decimal", precision=precision, scale=scale)


def _instance(dtype: pl.DataType | pl.datatypes.DataTypeClass) -> pl.DataType:
    try:
        return dtype() if isinstance(dtype, pl.datatypes.DataTypeClass) else dtype
    except TypeError:  # a class that needs an argument
        raise TypeMistakeError(f"pl.{dtype} does not say what is inside", hint=f"Write pl.{dtype}(...).") from None


def of_polars(dtype: pl.DataType | pl.datatypes.DataTypeClass) -> DataType:
    """The type of a Polars column; whatever is inside may be null, as Polars knows no better."""
    dtype = _instance(dtype)
    if dtype in _NAME_OF_POLARS:
        return DataType(_NAME_OF_POLARS[dtype])
    if isinstance(dtype, pl.Datetime):
        return _timed("datetime", dtype.time_unit, dtype.time_zone)
    if isinstance(dtype, pl.Duration):
        return _timed("duration", dtype.time_unit, None)
    if isinstance(dtype, pl.Decimal):
        return _decimal(dtype.precision, dtype.scale)
    if isinstance(dtype, pl.List):
        return list_of(of_polars(dtype.inner), nullable=True)
    if isinstance(dtype, pl.Struct):
        return struct_of([Field(field.name, of_polars(field.dtype), nullable=True) for field in dtype.fields])
    raise TypeMistakeError(f"the Polars type {dtype} cannot be stored", hint=_INSTEAD)


def of_arrow(arrow: Any) -> DataType:
    """The type of an Arrow column, with the nullability of nested fields."""
    if arrow in _NAME_OF_ARROW:
        return DataType(_NAME_OF_ARROW[arrow])
    if pa.types.is_timestamp(arrow):
        return _timed("datetime", arrow.unit, arrow.tz)
    if pa.types.is_duration(arrow):
        return _timed("duration", arrow.unit, None)
    if pa.types.is_decimal128(arrow):
        return _decimal(arrow.precision, arrow.scale)
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return list_of(of_arrow(arrow.value_type), nullable=arrow.value_field.nullable)
    if pa.types.is_map(arrow) and of_arrow(arrow.key_type) == TEXT:
        return map_of(of_arrow(arrow.item_type), nullable=arrow.item_field.nullable)
    if pa.types.is_struct(arrow):
        return struct_of([Field(field.name, of_arrow(field.type), field.nullable) for field in arrow])
    raise TypeMistakeError(f"the Arrow type {arrow} cannot be stored", hint=_INSTEAD)
