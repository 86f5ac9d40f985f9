"""What a record's value must look like: Python types, a dataclass, a TypedDict, an Arrow schema, or a scalar type."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any, Final

import polars as pl
import pyarrow as pa

from everstate.topology.errors import SchemaError, UnknownColumnError
from everstate.topology.readers import MismatchError, default_text
from everstate.topology.types import (
    BOOL,
    BYTES,
    DATE,
    DATETIME,
    DECIMAL,
    DURATION,
    FLOAT,
    INTEGER,
    TEXT,
    DataType,
    Field,
    TypeMistakeError,
    list_of,
    map_of,
    of_arrow,
    of_polars,
    struct_of,
)

if typing.TYPE_CHECKING:
    from everstate.topology.location import Location

__all__ = ["SCALAR_COLUMN", "DataType", "Field", "Schema"]

#: The one column of a scalar schema.
SCALAR_COLUMN: Final = "value"

_PYTHON: Final[dict[object, DataType]] = {
    str: TEXT,
    int: INTEGER,
    float: FLOAT,
    bool: BOOL,
    bytes: BYTES,
    datetime: DATETIME,
    date: DATE,
    timedelta: DURATION,
    Decimal: DataType("decimal", precision=DECIMAL[0], scale=DECIMAL[1]),
}
_SUPPORTED: Final = (
    "Use str, int, float, bool, bytes, datetime, date, timedelta, Decimal, list[T], dict[str, T], T | None, "
    "a dataclass, a TypedDict, a dict of these, or an Arrow type."
)


@dataclass(frozen=True)
class Schema:
    """The columns of a record's value.

    Example:
        >>> orders = Schema.of({"order_id": str, "amount": float, "note": str | None})
        >>> orders.names
        ('order_id', 'amount', 'note')
        >>> orders.field("note").nullable
        True
        >>> Schema.of(int).scalar
        True

    Attributes:
        fields: The columns, in order.
        scalar: Whether the value is not an object but the bare value of the one column, `value`.
    """

    fields: tuple[Field, ...]
    scalar: bool = False

    @staticmethod
    def of(spec: object, *, location: Location | None = None) -> Schema:
        """Reads a schema as users write it.

        Args:
            spec: A dict of types, a dataclass, a TypedDict, an Arrow schema, a scalar type, or a schema.
            location: Where the user wrote it, for the error.

        Raises:
            SchemaError: If it is none of these, or has a type or a name that cannot be.
        """
        if isinstance(spec, Schema):
            return spec
        try:
            fields = _record_fields(spec)
            if fields is None:
                return Schema((_field(SCALAR_COLUMN, spec),), scalar=True)
        except TypeMistakeError as mistake:
            raise SchemaError(f"schema: {mistake.message}", location=location, hint=mistake.hint) from None
        return _checked(fields, location)

    @staticmethod
    def of_polars(
        columns: Mapping[str, pl.DataType | pl.datatypes.DataTypeClass],
        *,
        like: Schema | None = None,
        location: Location | None = None,
    ) -> Schema:
        """The schema of columns that an expression made: every column may be null, as Polars knows no better.

        Args:
            columns: Polars types by column.
            like: The schema before the expression; a dict column that is still there as it was stays a dict.
            location: Where the user wrote it, for the error.

        Raises:
            SchemaError: If a column has a type that cannot be stored.
        """
        known = {field.name: field.type for field in like.fields} if like else {}
        fields = []
        for name, dtype in columns.items():
            before = known.get(name)
            try:
                kept = before.relaxed() if before is not None and before.polars == dtype else of_polars(dtype)
            except TypeMistakeError as mistake:
                raise SchemaError(f"column {name!r}: {mistake.message}", location=location, hint=mistake.hint) from None
            fields.append(Field(name, kept, nullable=True))
        return _checked(fields, location, may_be_empty=True)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(field.name for field in self.fields)

    @cached_property
    def polars(self) -> dict[str, pl.DataType]:
        """The Polars types by column; a new frame's `schema=`."""
        return {field.name: field.type.polars for field in self.fields}

    @cached_property
    def arrow(self) -> pa.Schema:
        """The Arrow schema, with nullability."""
        return pa.schema([field.arrow for field in self.fields])

    def field(self, name: str, *, location: Location | None = None) -> Field:
        """The column of this name.

        Raises:
            UnknownColumnError: If there is none.
        """
        for field in self.fields:
            if field.name == name:
                return field
        raise UnknownColumnError(name, list(self.names), location=location)

    def without(self, names: Iterable[str]) -> Schema:
        """The schema less these columns; names that are not there are passed over."""
        dropped = frozenset(names)
        fields = tuple(field for field in self.fields if field.name not in dropped)
        return Schema(fields, scalar=self.scalar and bool(fields))

    def to_json(self) -> dict[str, Any]:
        """A JSON value that `from_json` reads back; stable, so that it may be hashed."""
        return {"fields": [field.to_json() for field in self.fields], "scalar": self.scalar}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Schema:
        """The schema that `to_json` wrote."""
        return Schema(tuple(Field.from_json(field) for field in data["fields"]), scalar=data["scalar"])

    def __str__(self) -> str:
        columns = ", ".join(str(field) for field in self.fields)
        return columns if self.scalar else "{" + columns + "}"


def _checked(fields: list[Field], location: Location | None, *, may_be_empty: bool = False) -> Schema:
    """The schema of these columns, once their names are known to be usable."""
    names = [field.name for field in fields]
    if not names and not may_be_empty:
        raise SchemaError("schema: it has no columns", location=location, hint="Give it at least one column.")
    for name in names:
        if not name or "\x00" in name:
            raise SchemaError("schema: a column has an empty name, or a NUL in it", location=location)
        if name.startswith("$"):
            raise SchemaError(
                f"column {name!r}: names that start with $ are Everstate's own",
                location=location,
                hint=f"Call it {name.lstrip('$') or 'something else'!r}, for instance.",
            )
        if names.count(name) > 1:
            raise SchemaError(f"column {name!r} is there twice", location=location)
    return Schema(tuple(fields))


def _record_fields(spec: object) -> list[Field] | None:
    """The fields of a specification of several columns; None if it is the type of one value."""
    if isinstance(spec, pa.Schema):
        return [_at(field.name, field.type, nullable=field.nullable) for field in spec]
    if isinstance(spec, Mapping):
        return [_field(name, annotation) for name, annotation in spec.items()]
    if isinstance(spec, type) and dataclasses.is_dataclass(spec):
        hints = _hints(spec)
        return [_with_default(_field(field.name, hints[field.name]), field) for field in dataclasses.fields(spec)]
    if typing.is_typeddict(spec):
        optional: frozenset[str] = spec.__optional_keys__  # type: ignore[attr-defined]
        return [_field(name, hint, missing=name in optional) for name, hint in _hints(spec).items()]
    return None


def _hints(spec: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(spec, include_extras=True)
    except (NameError, TypeError) as error:
        raise TypeMistakeError(
            f"the annotations of {spec.__name__} cannot be resolved: {error}",
            hint="Define the types it names at the top level of its module.",
        ) from None


def _at(name: str, annotation: object, *, nullable: bool = False) -> Field:
    """A field whose type's mistakes are reported with its name."""
    try:
        return Field(name, _type(annotation), nullable)
    except TypeMistakeError as mistake:
        raise TypeMistakeError(f"column {name!r}: {mistake.message}", mistake.hint) from None


def _field(name: object, annotation: object, *, missing: bool = False) -> Field:
    """The field of an annotation.

    Args:
        name: Its name.
        annotation: Its type; `T | None` and `NotRequired[T]` make it nullable.
        missing: Whether the field may be missing if the annotation does not say.
    """
    if not isinstance(name, str):
        raise TypeMistakeError(f"the name of a column must be text, not {name!r}")
    if isinstance(annotation, Field):
        return dataclasses.replace(annotation, name=name)
    if isinstance(annotation, pa.Field):
        return _at(name, annotation.type, nullable=annotation.nullable)
    while (origin := typing.get_origin(annotation)) in (typing.NotRequired, typing.Required, typing.Annotated):
        if origin is not typing.Annotated:
            missing = origin is typing.NotRequired
        annotation = typing.get_args(annotation)[0]
    stripped = _without_none(annotation)
    return _at(name, stripped, nullable=missing or stripped is not annotation)


def _with_default(field: Field, declared: dataclasses.Field[Any]) -> Field:
    """The field with the default that a dataclass declares."""
    made = declared.default_factory
    value = declared.default if made is dataclasses.MISSING else made()
    if value is dataclasses.MISSING or (value is None and field.nullable):
        return field
    try:
        text = default_text(value, field)
        if made is not dataclasses.MISSING and default_text(made(), field) != text:
            raise TypeMistakeError(
                f"column {field.name!r}: its default is another one each time",
                hint="The same records must give the same rows: give it a constant.",
            )
        return dataclasses.replace(field, default=text)
    except (ValueError, MismatchError) as error:
        why = error.reason() if isinstance(error, MismatchError) else str(error)
        hint = "Write T | None." if value is None else "Give it a default of its type."
        raise TypeMistakeError(f"column {field.name!r}: the default {value!r} does not fit: {why}", hint) from None


def _without_none(annotation: object) -> object:
    """The T of `T | None`; the annotation itself if it has no None."""
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return annotation
    members = typing.get_args(annotation)
    others = [member for member in members if member is not type(None)]
    if len(others) != 1 or len(others) == len(members):
        raise TypeMistakeError(f"{annotation} is more than one type", hint=_SUPPORTED)
    return others[0]


def _type(annotation: Any) -> DataType:
    """The type of an annotation that is not nullable."""
    while isinstance(annotation, typing.NewType):
        annotation = annotation.__supertype__
    if isinstance(annotation, DataType):
        return annotation
    if isinstance(annotation, pa.DataType):
        return of_arrow(annotation)
    if isinstance(annotation, pl.DataType | pl.datatypes.DataTypeClass):
        return of_polars(annotation)
    if isinstance(annotation, type) and annotation in _PYTHON:
        return _PYTHON[annotation]
    return _nested(annotation)


def _nested(annotation: Any) -> DataType:
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is list:
        return _inner(list_of, args[0])
    if origin in (dict, Mapping) and args[0] is str:
        return _inner(map_of, args[1])
    if origin in (dict, Mapping):
        raise TypeMistakeError(f"the keys of {_shown(annotation)} are not str", hint="Write dict[str, T].")
    if annotation is None or annotation is type(None):
        raise TypeMistakeError("None is not a type of its own", hint="Write T | None.")
    fields = None if origin else _record_fields(annotation)
    if fields is None:
        raise TypeMistakeError(f"{_shown(annotation)} is not a type of a column", hint=_SUPPORTED)
    return struct_of(fields)


def _inner(kind: Any, annotation: object) -> DataType:
    field = _field("item", annotation)
    built: DataType = kind(field.type, nullable=field.nullable)
    return built


def _shown(annotation: object) -> str:
    if isinstance(annotation, str):
        return repr(annotation)
    return annotation.__name__ if isinstance(annotation, type) and not typing.get_args(annotation) else str(annotation)
