"""Reading and writing one value in any format; `schema/record_values.py` has what needs no more than a word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everstate.errors import ConfigurationError, SchemaError
from everstate.formats import avro
from everstate.formats.descriptions import Avro, Protobuf
from everstate.formats.registry import InProcessRegistry, opened
from everstate.schema import record_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everstate.formats.descriptions import Format
    from everstate.location import Location
    from everstate.schema.schema import Schema


def require_format(schema: Schema, fmt: object, *, location: Location | None = None, writing: bool = False) -> None:
    """Refuses a schema that cannot be written in a format.

    Raises:
        SchemaError: If it cannot.
    """
    if isinstance(fmt, Avro):
        avro.require(schema, location)
    elif isinstance(fmt, Protobuf):
        _protobuf().require(schema, fmt, location, writing=writing)
    elif fmt in (Avro, Protobuf):
        raise SchemaError(
            f"format={getattr(fmt, '__name__', '')} is a class", location=location, hint="Write format=es.Avro()"
        )
    else:
        record_values.require_format(schema, fmt, location=location)


def on_topic(fmt: Format, topic: str) -> Format:
    """A format that knows under which name its schema is registered."""
    return fmt if isinstance(fmt, str) else fmt.on(f"{topic}-value")


def decode_value(data: bytes, schema: Schema, fmt: Format) -> dict[str, Any]:
    """The row of a value's bytes, with every column of the schema.

    Raises:
        DecodeError: If the bytes do not fit; the message is the reason.
    """
    if isinstance(fmt, Avro):
        return avro.decode(data, schema, fmt)
    if isinstance(fmt, Protobuf):
        found: dict[str, Any] = _protobuf().decode(data, schema, fmt)
        return found
    return record_values.decode_value(data, schema, fmt)


def encode_value(row: Mapping[str, Any], schema: Schema, fmt: Format) -> bytes:
    """The bytes of a row as `decode_value` and `check_row` return it."""
    if isinstance(fmt, Avro):
        return avro.encode([row], schema, fmt)[0]
    if isinstance(fmt, Protobuf):
        written: bytes = _protobuf().encode(row, schema, fmt)
        return written
    return record_values.encode_value(row, schema, fmt)


def meaning(schema: Schema, fmt: Format) -> Any:
    """What of a format belongs to a fingerprint: where its registry is does not."""
    if isinstance(fmt, Protobuf):
        return _protobuf().meaning(schema, fmt)
    return str(fmt).lower() if isinstance(fmt, Avro) else fmt


def require_shared(fmt: Format) -> None:
    """Refuses a registry that other processes cannot ask: each would number schemas for itself.

    Raises:
        ConfigurationError: If it is one.
    """
    if not isinstance(fmt, str) and isinstance(opened(fmt.registry), InProcessRegistry):
        raise ConfigurationError(
            f"{fmt.registry or 'the registry'} is a registry in one process, which Spark's workers cannot reach",
            hint="It is for tests with es.testing.Driver. Name a running one: es.Avro('http://registry:8081')",
        )


def register(schema: Schema, fmt: Format) -> None:
    """Have the registry number what an output writes, if its format needs that.

    Raises:
        SchemaError: If the registry refuses the schema.
    """
    if isinstance(fmt, Avro):
        opened(fmt.registry).register(fmt.subject, avro.registered(schema, fmt))
    elif isinstance(fmt, Protobuf):
        opened(fmt.registry).register(fmt.subject, _protobuf().registered(fmt))


def _protobuf() -> Any:
    from everstate.formats import protobuf  # noqa: PLC0415 - few services need it, and it takes a while

    return protobuf
