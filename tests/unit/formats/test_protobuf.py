"""Protobuf in the registry's wire format: what Confluent's serialisers write is read, what we write is read by them."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict

import polars as pl
import pytest
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

import everstate as es
from everstate.errors import SchemaError
from everstate.fingerprints.outputs import print_unit
from everstate.formats.values import decode_value, encode_value, register
from everstate.kernels.records.decode import decode_values
from everstate.schema.schema import Schema
from tests.registries import RegistryServer
from tests.unit.formats.messages import KINDS, classes, order_file

VALUE = SerializationContext("orders", MessageField.VALUE)
MESSAGES = classes(order_file())
Order = MESSAGES["Order"]


class Line(TypedDict):
    product: str
    count: int


COLUMNS = Schema.of(
    {
        "id": str,
        "amount": float | None,
        "items": int,
        "state": str,
        "at": datetime | None,
        "lines": list[Line],
        "tags": list[str],
        "notes": dict[str, str],
        "rating": int | None,
        "took": timedelta | None,
    }
)
ROW: dict[str, Any] = {
    "id": "a1",
    "amount": 2.5,
    "items": 3,
    "state": "PAID",
    "at": datetime(2024, 5, 1, 10, 0, 0, 5, tzinfo=UTC),
    "lines": [{"product": "pen", "count": 2}],
    "tags": ["new", "é"],
    "notes": {"a": "b"},
    "rating": 0,
    "took": timedelta(microseconds=5),
}


def order(**fields: Any) -> Any:
    return Order(**{"id": "a1", "items": 3, **fields})


def serialised(registry: RegistryServer, message: Any) -> bytes:
    return ProtobufSerializer(type(message), registry.client, {"use.deprecated.format": False})(message, VALUE)


def test_a_value_of_confluents_serialiser_is_read(registry: RegistryServer):
    message = order(amount=2.5, state=1, tags=["new", "é"], notes={"a": "b"})
    message.at.FromDatetime(ROW["at"])
    message.lines.add(product="pen", count=2)
    message.rating.value = 0
    message.took.FromMicroseconds(5)
    assert decode_value(serialised(registry, message), COLUMNS, es.Protobuf(Order, registry.url)) == ROW


def test_fields_that_are_left_out_are_null_or_protobufs_default(registry: RegistryServer):
    row = decode_value(serialised(registry, Order()), COLUMNS, es.Protobuf(Order, registry.url))
    assert row == {
        "id": "",
        "amount": None,
        "items": 0,
        "state": "NEW",
        "at": None,
        "lines": [],
        "tags": [],
        "notes": {},
        "rating": None,
        "took": None,
    }


def test_a_value_that_is_written_is_read_by_confluents_deserialiser(registry: RegistryServer):
    fmt = es.Protobuf(Order, registry.url, "orders-value")
    register(COLUMNS, fmt)
    value = encode_value(ROW, COLUMNS, fmt)
    assert decode_value(value, COLUMNS, fmt) == ROW
    message = ProtobufDeserializer(Order, {"use.deprecated.format": False})(value, VALUE)
    assert (message.id, message.amount, message.state, message.lines[0].product) == ("a1", 2.5, 1, "pen")
    assert message.at.ToDatetime(tzinfo=UTC) == ROW["at"]


def test_another_message_of_the_file_and_damage_are_named(registry: RegistryServer):
    good = serialised(registry, order())
    refund = serialised(registry, MESSAGES["Refund"](id="r"))
    values = pl.Series([good, refund, good[:-1], b"{}", good[:6]], dtype=pl.Binary)
    decoded = decode_values(values, Schema.of({"id": str}), es.Protobuf(Order, registry.url))
    assert decoded.frame["id"].to_list() == ["a1"]
    reasons = decoded.bad["reason"].to_list()
    assert reasons[0] == "it is message [0] of its schema, and shop.Order is [1]"
    assert reasons[1].startswith("it is not a value of shop.Order")
    assert reasons[2].startswith("it does not begin with the number of a schema")
    assert reasons[3] == "it is cut off before the value begins"


def test_a_format_travels_to_another_process(registry: RegistryServer):
    fmt = es.Protobuf(Order, registry.url)
    there = pickle.loads(pickle.dumps(fmt))
    assert there == fmt
    assert decode_value(serialised(registry, order()), Schema.of({"items": int}), there) == {"items": 3}


def test_a_column_that_the_message_lacks_is_refused_where_it_is_declared():
    app = es.Service("shop")
    with pytest.raises(SchemaError, match=r"message shop\.Order has no field 'price'"):
        app.stream("orders", schema={"price": float}, format=es.Protobuf(Order))
    with pytest.raises(SchemaError, match="is not a class of a message"):
        es.Protobuf("orders.proto")


def test_a_field_that_is_not_read_changes_no_fingerprint():
    def digest(message: Any) -> str:
        app = es.Service("shop")
        app.stream("orders", schema={"id": str, "items": int}, format=es.Protobuf(message)).to("copies")
        return print_unit(app.units()[0], policy="skip", settings={}).fingerprint

    later, renumbered = order_file(), order_file()
    later.message_type[1].field.add(name="more", number=20, type=KINDS.TYPE_STRING, label=KINDS.LABEL_OPTIONAL)
    renumbered.message_type[1].field[2].number = 30
    assert digest(classes(later)["Order"]) == digest(Order)
    assert digest(classes(renumbered)["Order"]) != digest(Order)


def test_a_column_that_the_messages_field_cannot_hold_is_refused_where_the_output_is_declared():
    app = es.Service("shop")
    rows = app.stream("rows", schema={"id": int, "state": str, "items": int})
    with pytest.raises(SchemaError, match=r"field 'id' of message shop\.Order cannot hold integer"):
        rows.select("id").to("one", format=es.Protobuf(Order))
    with pytest.raises(SchemaError, match=r"field 'state' of message shop\.Order cannot hold text"):
        rows.select("state").to("two", format=es.Protobuf(Order))
    rows.select("items").to("three", format=es.Protobuf(Order))
