"""Messages as `protoc` would generate them, made of their description."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, message_factory, timestamp_pb2, wrappers_pb2

KINDS = descriptor_pb2.FieldDescriptorProto


def _field(message: Any, name: str, number: int, kind: int, **more: Any) -> None:
    optional = more.pop("optional", False)
    field = message.field.add(
        name=name, number=number, type=kind, label=more.pop("label", KINDS.LABEL_OPTIONAL), **more
    )
    if optional:
        message.oneof_decl.add(name=f"_{name}")
        field.oneof_index = len(message.oneof_decl) - 1
        field.proto3_optional = True


def order_file() -> Any:
    """`Refund` and `Order`, which has a field of each sort."""
    file = descriptor_pb2.FileDescriptorProto(name="shop/order.proto", package="shop", syntax="proto3")
    file.dependency.extend(
        ["google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto", "google/protobuf/duration.proto"]
    )
    state = file.enum_type.add(name="State")
    for number, name in enumerate(("NEW", "PAID")):
        state.value.add(name=name, number=number)
    refund = file.message_type.add(name="Refund")
    _field(refund, "id", 1, KINDS.TYPE_STRING)
    order = file.message_type.add(name="Order")
    line = order.nested_type.add(name="Line")
    _field(line, "product", 1, KINDS.TYPE_STRING)
    _field(line, "count", 2, KINDS.TYPE_INT32)
    entry = order.nested_type.add(name="NotesEntry")
    entry.options.map_entry = True
    _field(entry, "key", 1, KINDS.TYPE_STRING)
    _field(entry, "value", 2, KINDS.TYPE_STRING)
    _field(order, "id", 1, KINDS.TYPE_STRING)
    _field(order, "amount", 2, KINDS.TYPE_DOUBLE, optional=True)
    _field(order, "items", 3, KINDS.TYPE_INT64)
    _field(order, "state", 4, KINDS.TYPE_ENUM, type_name=".shop.State")
    _field(order, "at", 5, KINDS.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp")
    _field(order, "lines", 6, KINDS.TYPE_MESSAGE, type_name=".shop.Order.Line", label=KINDS.LABEL_REPEATED)
    _field(order, "tags", 7, KINDS.TYPE_STRING, label=KINDS.LABEL_REPEATED)
    _field(order, "notes", 8, KINDS.TYPE_MESSAGE, type_name=".shop.Order.NotesEntry", label=KINDS.LABEL_REPEATED)
    _field(order, "rating", 9, KINDS.TYPE_MESSAGE, type_name=".google.protobuf.Int32Value")
    _field(order, "took", 10, KINDS.TYPE_MESSAGE, type_name=".google.protobuf.Duration")
    return file


def classes(file: Any) -> dict[str, Any]:
    """The classes of a file's messages, by name."""
    pool = descriptor_pool.DescriptorPool()
    for known in (timestamp_pb2, wrappers_pb2, duration_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return {
        message.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.{message.name}"))
        for message in file.message_type
    }
