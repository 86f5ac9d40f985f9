"""Avro, one value at a time, and the Avro schema of an output."""

from __future__ import annotations

import io
import json
import re
from datetime import timedelta
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from everstate.errors import ConfigurationError, DecodeError, SchemaError
from everstate.formats.framing import framed, unframed
from everstate.formats.registry import RegisteredSchema, number_of, opened
from everstate.schema.column_values import MismatchError, object_reader, reader
from everstate.schema.scalars import MICROSECOND
from everstate.schema.schema import SCALAR_COLUMN, Schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from everstate.formats.descriptions import Avro
    from everstate.location import Location
    from everstate.schema.types import DataType, Field

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN: Final = {
    "text": "string",
    "bool": "boolean",
    "bytes": "bytes",
    "float32": "float",
    "float64": "double",
    "date": {"type": "int", "logicalType": "date"},
    **dict.fromkeys(("int8", "int16", "int32", "uint8", "uint16"), "int"),
    # A duration has microseconds; Avro's own has months and days.
    **dict.fromkeys(("int64", "uint32", "duration"), "long"),
}
_PRECISION: Final = {"ms": "millis", "us": "micros"}


def require(schema: Schema, location: Location | None) -> None:
    """Refuses columns that Avro has no type or no name for.

    Raises:
        SchemaError: It names the first.
    """
    for field in schema.fields:
        _type(field, "", location)


def decode(data: bytes, schema: Schema, fmt: Avro) -> dict[str, Any]:
    """The row of a value.

    Raises:
        DecodeError: If the bytes do not fit; the message is the reason.
    """
    written_with, body = unframed(data)
    return fitted(_read(body, written_with, fmt), schema)


def _read(body: bytes, number: int, fmt: Avro) -> Any:
    writer = parsed(writer_schema(number, fmt))
    source = io.BytesIO(body)
    try:
        value = _fastavro().schemaless_reader(source, writer, None)
    except Exception as error:  # noqa: BLE001 - damaged bytes fail in every way that the reader has
        raise DecodeError(f"it is not a value of schema {number}: {str(error) or type(error).__name__}") from None
    if source.tell() != len(body):
        raise DecodeError(f"it is not a value of schema {number}: {len(body) - source.tell()} bytes follow the value")
    return value


def writer_schema(number: int, fmt: Avro) -> str:
    """The text of the schema that a value was written with.

    Raises:
        DecodeError: If the registry has no such schema, or one that is not Avro.
    """
    found = opened(fmt.registry).schema(number)
    if found is None:
        raise DecodeError(f"the registry has no schema {number}")
    if found.kind != "AVRO":
        raise DecodeError(f"schema {number} is {found.kind}, not AVRO")
    if found.references:
        raise DecodeError(f"schema {number} refers to others, which is not supported")
    return found.text


@lru_cache(maxsize=512)
def parsed(text: str) -> Any:
    """A schema as the reader takes it."""
    return _fastavro().parse_schema(json.loads(text))


def fitted(value: Any, schema: Schema) -> dict[str, Any]:
    """The columns of a value as Avro or Protobuf give it: fields that the schema does not name are left out.

    Raises:
        DecodeError: If it does not fit; the message is the reason.
    """
    try:
        if schema.scalar:
            field = schema.fields[0]
            return {SCALAR_COLUMN: reader(field, python=True)(_plain(value, field.type))}
        if not isinstance(value, dict):
            raise ValueError(f"expected a record, got {type(value).__name__}")  # noqa: TRY004, TRY301 - a value's reason
        named = {field.name: _plain(value[field.name], field.type) for field in schema.fields if field.name in value}
        return object_reader(schema.fields, python=True)(named)
    except MismatchError as mismatch:
        raise DecodeError(mismatch.reason()) from None
    except ValueError as error:
        raise DecodeError(str(error)) from None


def _plain(value: Any, type_: DataType) -> Any:
    if isinstance(value, UUID):
        return str(value)
    if type_.name == "duration" and isinstance(value, int):
        return timedelta(microseconds=value)
    if type_.name == "struct" and isinstance(value, dict):
        return {field.name: _plain(value[field.name], field.type) for field in type_.fields if field.name in value}
    if type_.name == "list" and isinstance(value, list):
        return [_plain(item, type_.inner.type) for item in value]
    if type_.name == "map" and isinstance(value, dict):
        return {key: _plain(item, type_.inner.type) for key, item in value.items()}
    return value


def encode(rows: Iterable[Mapping[str, Any]], schema: Schema, fmt: Avro) -> list[bytes]:
    """The bytes of rows as `decode` returns them."""
    writer, write = parsed(schema_text(schema, fmt.subject)), _fastavro().schemaless_writer
    own = number(schema, fmt)
    converted = [(field.name, field.type) for field in schema.fields if _is_converted(field.type)]
    values = []
    for row in rows:
        value = {**row, **{name: _wire(row.get(name), type_) for name, type_ in converted}}
        out = io.BytesIO()
        write(out, writer, value[SCALAR_COLUMN] if schema.scalar else value)
        values.append(framed(own, out.getvalue()))
    return values


def number(schema: Schema, fmt: Avro) -> int:
    """The number of an output's schema."""
    return number_of(fmt.registry, fmt.subject, registered(schema, fmt))


def _is_converted(type_: DataType) -> bool:
    """Whether values of a type are not what the writer takes."""
    inner = [each.type for each in ((type_.item,) if type_.item is not None else type_.fields)]
    return type_.name in ("duration", "decimal") or any(map(_is_converted, inner))


def registered(schema: Schema, fmt: Avro) -> RegisteredSchema:
    """An output's schema as the registry takes it."""
    return RegisteredSchema("AVRO", schema_text(schema, fmt.subject))


def _wire(value: Any, type_: DataType) -> Any:
    if value is None:
        return None
    if type_.name == "duration":
        return value // MICROSECOND
    if type_.name == "decimal":
        return value if isinstance(value, Decimal) else Decimal(value)
    if type_.name == "struct":
        return {field.name: _wire(value.get(field.name), field.type) for field in type_.fields}
    if type_.name == "list":
        return [_wire(item, type_.inner.type) for item in value]
    if type_.name == "map":
        return {key: _wire(item, type_.inner.type) for key, item in value.items()}
    return value


@lru_cache(maxsize=128)
def schema_text(schema: Schema, subject: str) -> str:
    """The Avro schema of these columns: one text for equal columns, so that it has one number."""
    if schema.scalar:
        return json.dumps(_type(schema.fields[0], "Value", None), separators=(",", ":"))
    name = re.sub(r"[^A-Za-z0-9_]", "_", subject) or "value"
    name = name if _NAME.fullmatch(name) else f"_{name}"
    return json.dumps(_record(schema.fields, name, None), separators=(",", ":"))


def _record(fields: tuple[Field, ...], name: str, location: Location | None) -> dict[str, Any]:
    written = []
    for field in fields:
        entry = {"name": field.name, "type": _type(field, f"{name}_{field.name}", location)}
        written.append({**entry, "default": None} if field.nullable else entry)
    return {"type": "record", "name": name, "fields": written}


def _type(field: Field, name: str, location: Location | None) -> Any:
    if not _NAME.fullmatch(field.name):
        raise SchemaError(
            f"column {field.name!r} has a name that Avro does not allow",
            location=location,
            hint="Use letters, digits and underscores, beginning with a letter: .alias('name')",
        )
    found = _inner(field, name, location)
    return ["null", found] if field.nullable else found


def _inner(field: Field, name: str, location: Location | None) -> Any:
    type_ = field.type
    if type_.name in _PLAIN:
        return _PLAIN[type_.name]
    if type_.name == "datetime":
        local = "" if type_.zone else "local-"
        return {"type": "long", "logicalType": f"{local}timestamp-{_PRECISION[str(type_.unit)]}"}
    if type_.name == "decimal":
        sizes = {"precision": type_.precision, "scale": type_.scale}
        return {"type": "bytes", "logicalType": "decimal", **sizes}
    if type_.name == "list":
        return {"type": "array", "items": _type(type_.inner, f"{name}_item", location)}
    if type_.name == "map":
        return {"type": "map", "values": _type(type_.inner, f"{name}_value", location)}
    if type_.name == "struct":
        return _record(type_.fields, name, location)
    raise SchemaError(
        f"column {field.name!r}: Avro has no type for {type_}",
        location=location,
        hint="Cast it, for example to a decimal: col('n').cast(pl.Decimal(20, 0))",
    )


def _fastavro() -> Any:
    try:
        import fastavro  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            "Avro needs a package that is not installed: fastavro", hint="Install it: pip install 'everstate[avro]'"
        ) from error
    return fastavro
