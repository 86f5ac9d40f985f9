"""Protobuf, one value at a time.

A record is read as the message that the user has given: Protobuf goes by the numbers of fields, so that a value written
with another version of it is read, too. The class is made of descriptors, which travel to workers by value.
"""

from __future__ import annotations

import base64
from datetime import UTC
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError as ProtobufError

from everstate.errors import DecodeError, SchemaError
from everstate.formats.avro import fitted
from everstate.formats.framing import framed, message_place, unframed, written_place
from everstate.formats.registry import RegisteredSchema, number_of
from everstate.schema.scalars import MICROSECOND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everstate.formats.descriptions import Protobuf
    from everstate.location import Location
    from everstate.schema.schema import Schema
    from everstate.schema.types import DataType

_TIMESTAMP: Final = "google.protobuf.Timestamp"
_DURATION: Final = "google.protobuf.Duration"
#: What a field of Protobuf can hold, by what it is in C++, as its descriptors have it.
_SMALL: Final = ("int8", "int16", "uint8", "uint16")
_HELD: Final[dict[int, tuple[str, ...]]] = {
    FieldDescriptor.CPPTYPE_INT32: (*_SMALL, "int32"),
    FieldDescriptor.CPPTYPE_ENUM: (*_SMALL, "int32"),
    FieldDescriptor.CPPTYPE_INT64: (*_SMALL, "int32", "uint32", "int64"),
    FieldDescriptor.CPPTYPE_UINT32: ("uint8", "uint16", "uint32"),
    FieldDescriptor.CPPTYPE_UINT64: ("uint8", "uint16", "uint32", "uint64"),
    FieldDescriptor.CPPTYPE_DOUBLE: ("float64", "float32"),
    FieldDescriptor.CPPTYPE_FLOAT: ("float32",),
    FieldDescriptor.CPPTYPE_BOOL: ("bool",),
    FieldDescriptor.CPPTYPE_STRING: ("text", "bytes"),
}
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)


def require(schema: Schema, fmt: Protobuf, location: Location | None, *, writing: bool) -> None:
    """Refuses columns that the message does not have, or where it is written, cannot hold.

    Raises:
        SchemaError: It names the first, and those that there are.
    """
    known = _class(fmt).DESCRIPTOR.fields_by_name
    for column in schema.fields:
        if schema.scalar or column.name not in known:
            raise SchemaError(
                f"message {fmt.message} has no field {column.name!r}",
                location=location,
                hint=f"Its fields are: {', '.join(known)}.",
            )
        if writing and not _holds(known[column.name], column.type):
            raise SchemaError(
                f"field {column.name!r} of message {fmt.message} cannot hold {column.type}",
                location=location,
                hint="Cast the column to the field's type; an enumeration is written as an int32.",
            )


def _holds(field: Any, type_: DataType) -> bool:
    """Whether a field can hold every value of a type."""
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        text = inner.fields_by_name["key"].cpp_type == field.CPPTYPE_STRING
        return type_.name == "map" and text and _holds_one(inner.fields_by_name["value"], type_.inner.type)
    if field.is_repeated:
        return type_.name == "list" and _holds_one(field, type_.inner.type)
    return _holds_one(field, type_)


def _holds_one(field: Any, type_: DataType) -> bool:
    inner = field.message_type
    if inner is None:
        return type_.name in _HELD.get(field.cpp_type, ()) and (type_.name == "bytes") == (
            field.type == field.TYPE_BYTES
        )
    if inner.full_name == _TIMESTAMP:
        return type_.name == "datetime"
    if inner.full_name == _DURATION:
        return type_.name == "duration"
    if inner.full_name in _WRAPPERS:
        return _holds_one(inner.fields_by_name["value"], type_)
    names = inner.fields_by_name
    return type_.name == "struct" and all(
        each.name in names and _holds(names[each.name], each.type) for each in type_.fields
    )


def meaning(schema: Schema, fmt: Protobuf) -> list[Any]:
    """What of a message belongs to a fingerprint: the fields that are read, with their numbers and types."""
    fields = [field for field in _class(fmt).DESCRIPTOR.fields if field.name in schema.names]
    return ["protobuf", fmt.message, [_shape(field, frozenset()) for field in fields]]


def _shape(field: Any, seen: frozenset[str]) -> list[Any]:
    inner = field.message_type
    shape = [field.name, field.number, field.type, bool(field.is_repeated), bool(field.has_presence)]
    if inner is None or inner.full_name in seen:
        return [*shape, inner.full_name if inner is not None else ""]
    return [*shape, [_shape(each, seen | {inner.full_name}) for each in inner.fields]]


def decode(data: bytes, schema: Schema, fmt: Protobuf) -> dict[str, Any]:
    """The row of a value.

    Raises:
        DecodeError: If the bytes do not fit; the message is the reason.
    """
    _, rest = unframed(data)
    places, start = message_place(rest)
    kind = _class(fmt)
    wanted = _place(fmt)
    if places != wanted:
        # Another message of the same file: its fields would be taken for those of this one.
        raise DecodeError(f"it is message {list(places)} of its schema, and {fmt.message} is {list(wanted)}")
    message = kind()
    try:
        message.ParseFromString(rest[start:])
    except ProtobufError as error:
        raise DecodeError(f"it is not a value of {fmt.message}: {error}") from None
    types = {field.name: field.type for field in schema.fields}
    return fitted(_fields(message, types), schema)


def encode(row: Mapping[str, Any], schema: Schema, fmt: Protobuf) -> bytes:
    """The bytes of a row as `decode` returns it."""
    kind = _class(fmt)
    message = kind()
    for field in schema.fields:
        _set(message, field.name, row.get(field.name), field.type)
    body = written_place(_place(fmt)) + message.SerializeToString(deterministic=True)
    return framed(number_of(fmt.registry, fmt.subject, registered(fmt)), body)


def registered(fmt: Protobuf) -> RegisteredSchema:
    """An output's schema as the registry takes it: the file's descriptor."""
    needed = [descriptor_pb2.FileDescriptorProto.FromString(content).name for content in fmt.files[:-1]]
    for name in needed:
        if not name.startswith("google/protobuf/"):
            raise SchemaError(
                f"message {fmt.message} needs {name}, and a schema that refers to others is not registered yet",
                hint="Put the messages of an output into one file.",
            )
    return RegisteredSchema("PROTOBUF", base64.b64encode(fmt.files[-1]).decode())


@lru_cache(maxsize=64)
def _class(fmt: Protobuf) -> Any:
    pool = descriptor_pool.DescriptorPool()
    for content in fmt.files:
        pool.Add(descriptor_pb2.FileDescriptorProto.FromString(content))
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(fmt.message))


@lru_cache(maxsize=64)
def _place(fmt: Protobuf) -> tuple[int, ...]:
    """Which message of its file it is: its number among its neighbours, from the outermost on."""
    descriptor = _class(fmt).DESCRIPTOR
    places: list[int] = []
    while descriptor is not None:
        outer = descriptor.containing_type
        neighbours = descriptor.file.message_types_by_name if outer is None else outer.nested_types_by_name
        places.insert(0, list(neighbours).index(descriptor.name))
        descriptor = outer
    return tuple(places)


def _fields(message: Any, types: Mapping[str, DataType]) -> dict[str, Any]:
    """The fields of a message that are asked for; one that is not there is left out."""
    found = {}
    for field in message.DESCRIPTOR.fields:
        if field.name in types:
            if field.has_presence and not message.HasField(field.name):
                continue
            found[field.name] = _value(getattr(message, field.name), field, types[field.name])
    return found


def _value(value: Any, field: Any, type_: DataType) -> Any:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        entry = inner.fields_by_name["value"]
        return {str(key): _single(value[key], entry, _item(type_)) for key in value}
    if field.is_repeated:
        return [_single(item, field, _item(type_)) for item in value]
    return _single(value, field, type_)


def _item(type_: DataType) -> DataType:
    return type_ if type_.item is None else type_.item.type


def _single(value: Any, field: Any, type_: DataType) -> Any:
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return value if type_.is_integer or known is None else known.name
    inner = field.message_type
    if inner is None:
        return value
    if inner.full_name == _TIMESTAMP:
        return _aware(value, type_)
    if inner.full_name == _DURATION:
        return value.ToTimedelta()
    if inner.full_name in _WRAPPERS:
        return value.value
    return _fields(value, {each.name: each.type for each in type_.fields})


def _aware(value: Any, type_: DataType) -> Any:
    try:
        found = value.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise DecodeError(f"a time is out of range: {error}") from None
    return found if type_.zone else found.replace(tzinfo=None)


def _set(message: Any, name: str, value: Any, type_: DataType) -> None:
    """Set a field; null is a field that is not there."""
    if value is None:
        return
    field = message.DESCRIPTOR.fields_by_name[name]
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        _set_map(getattr(message, name), inner, value, type_)
    elif field.is_repeated:
        place = getattr(message, name)
        for item in value:
            if inner is None:
                place.append(_scalar(item, field))
            else:
                _fill(place.add(), item, _item(type_))
    elif inner is not None:
        getattr(message, name).SetInParent()
        _fill(getattr(message, name), value, type_)
    else:
        setattr(message, name, _scalar(value, field))


def _set_map(place: Any, inner: Any, value: Mapping[str, Any], type_: DataType) -> None:
    entry, key = inner.fields_by_name["value"], inner.fields_by_name["key"]
    for name, item in value.items():
        known = int(name) if key.cpp_type != key.CPPTYPE_STRING else name
        if entry.message_type is None:
            place[known] = _scalar(item, entry)
        else:
            _fill(place[known], item, _item(type_))


def _scalar(value: Any, field: Any) -> Any:
    if field.enum_type is not None and isinstance(value, str):
        return field.enum_type.values_by_name[value].number
    return value


def _fill(message: Any, value: Any, type_: DataType) -> None:
    kind = message.DESCRIPTOR.full_name
    if kind == _TIMESTAMP:
        message.FromDatetime(value)
    elif kind == _DURATION:
        message.FromMicroseconds(value // MICROSECOND)
    elif kind in _WRAPPERS:
        message.value = value
    else:
        for field in type_.fields:
            _set(message, field.name, value.get(field.name), field.type)
