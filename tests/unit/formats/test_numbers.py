"""Numbers as the serialisers that come with Kafka write them."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest
from confluent_kafka.serialization import DoubleSerializer, IntegerSerializer

import everstate as es
from everstate.errors import SchemaError
from everstate.formats.values import encode_value
from everstate.kernels.records.decode import decode_values
from everstate.kernels.records.encode import encode_values
from everstate.schema.schema import Schema


@pytest.mark.parametrize(
    ("schema", "numbers"),
    [
        (pa.int16(), [0, -1, 2**15 - 1]),
        (pa.int32(), [0, -1, 2**31 - 1]),
        (int, [0, -1, -(2**63)]),
        (pa.float32(), [0.5, -1.0]),
        (float, [0.1, float("inf")]),
    ],
)
def test_numbers_are_written_and_read_back(schema, numbers):
    columns = Schema.of(schema)
    frame = pl.DataFrame({"value": numbers}, schema=columns.polars)
    values = encode_values(frame, columns, "number")
    assert list(values) == [encode_value({"value": number}, columns, "number") for number in numbers]
    assert decode_values(values, columns, "number").frame["value"].to_list() == numbers


def test_numbers_of_confluents_serialisers_are_read():
    integers = pl.Series([IntegerSerializer()(number) for number in (7, -7)], dtype=pl.Binary)
    assert decode_values(integers, Schema.of(pa.int32()), "number").frame["value"].to_list() == [7, -7]
    doubles = pl.Series([DoubleSerializer()(0.1)], dtype=pl.Binary)
    assert decode_values(doubles, Schema.of(float), "number").frame["value"].to_list() == [0.1]


def test_a_number_of_another_width_is_named():
    values = pl.Series([b"\0\0\0\7", bytes(8)], dtype=pl.Binary)
    decoded = decode_values(values, Schema.of(int), "number")
    assert decoded.frame.rows() == [(0, 1)]
    assert decoded.bad.rows() == [(0, "expected the 8 bytes of int64, there are 4")]


def test_a_schema_that_is_no_number_is_refused():
    with pytest.raises(SchemaError, match="format 'number' cannot hold"):
        es.Service("shop").stream("rows", schema={"n": int}, format="number")


def test_a_service_reads_and_writes_numbers_on_the_test_driver():
    app = es.Service("shop")
    app.table("counts", schema=int, format="number").to("copies", format="number")
    driver = es.testing.Driver(app)
    driver.send("counts", "a", 7)
    driver.send("counts", "a", 8)
    driver.send("counts", "b", 9)
    driver.tombstone("counts", "b")
    assert driver.table("copies") == {"a": 8}
