"""What a record's value must look like: Python types, a dataclass, a TypedDict, an Arrow schema, or a scalar type."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from everstate.errors import SchemaError, UnknownColumnError
from everstate.schema.annotations import field_of, is_name, record_fields
from everstate.schema.types import DataType, Field, TypeMistakeError, of_polars

if typing.TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import polars as pl

    from everstate.location import Location

__all__ = ["SCALAR_COLUMN", "DataType", "Field", "Schema"]

#: The one column of a scalar schema.
SCALAR_COLUMN: Final = "value"


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
            fields = record_fields(spec)
            if fields is None:
                return Schema((field_of(SCALAR_COLUMN, spec),), scalar=True)
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
        if not is_name(name):
            raise SchemaError(
                "schema: a column has an empty name, or one that UTF-8 cannot hold, or a NUL in it",
                location=location,
                hint="Give it a name.",
            )
        if name.startswith("$"):
            raise SchemaError(
                f"column {name!r}: names that start with $ are Everstate's own",
                location=location,
                hint=f"Call it {name.lstrip('$') or 'something else'!r}, for instance.",
            )
        if names.count(name) > 1:
            raise SchemaError(
                f"column {name!r} appears twice", location=location, hint="Rename one of them: .alias('other')"
            )
    return Schema(tuple(fields))
