from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl
import pytest

from everstate.errors import DecodeError, RecordError, SchemaError
from everstate.location import Location
from everstate.schema.keys import KeySpec, decode_key, encode_key


def single(dtype: pl.DataType) -> KeySpec:
    return KeySpec(("id",), (dtype,))


PAIR = KeySpec(("region", "id"), (pl.String(), pl.Int64()))


@pytest.mark.parametrize(
    ("dtype", "value", "data"),
    [
        (pl.String(), "é", "é".encode()),
        (pl.String(), "", b""),
        (pl.Int64(), -42, b"-42"),
        (pl.Binary(), b"\xff\x00", b"\xff\x00"),
        (pl.Boolean(), True, b"true"),
        (pl.Float64(), 0.5, b"0.5"),
        (pl.Date(), date(2024, 5, 1), b"2024-05-01"),
        (pl.Datetime("us", "UTC"), datetime(2024, 5, 1, 10, tzinfo=UTC), b"2024-05-01T10:00:00Z"),
        (pl.Decimal(38, 18), Decimal("1.50"), b"1.5"),
    ],
)
def test_key_of_one_column_is_its_text(dtype, value, data):
    assert encode_key(value, single(dtype)) == data
    assert encode_key((value,), single(dtype)) == data
    assert decode_key(data, single(dtype)) == (value,)


def test_key_of_several_columns_is_a_compact_json_array():
    assert encode_key(("eü\n", 42), PAIR) == '["eü\\n",42]'.encode()
    assert decode_key('["eü\\n",42]'.encode(), PAIR) == ("eü\n", 42)


def test_key_negative_zero_is_the_key_zero():
    assert encode_key(-0.0, single(pl.Float64())) == b"0.0"
    assert encode_key((-0.0, 1), KeySpec(("a", "b"), (pl.Float64(), pl.Int64()))) == b"[0.0,1]"


@pytest.mark.parametrize("data", [b" 1", b"+1", b"01", b"-0", b"1.0", b"", b"9223372036854775808", b"\xff"])
def test_key_integer_in_another_spelling_is_refused(data):
    with pytest.raises(DecodeError, match=r"^key"):
        decode_key(data, single(pl.Int64()))


@pytest.mark.parametrize(
    "data", [b'["a", 1]', b'["a"]', b'["a","1"]', b'["\\u0061",1]', b"[null,1]", b"{}", b"a", b"\xff"]
)
def test_key_composite_in_another_spelling_is_refused(data):
    with pytest.raises(DecodeError, match=r"^key"):
        decode_key(data, PAIR)


@pytest.mark.parametrize(("value", "why"), [(5, "expected text, got integer 5"), (None, "expected text, got null")])
def test_key_value_of_another_type_is_refused_with_its_column(value, why):
    with pytest.raises(RecordError, match=f"key 'id': {why}"):
        encode_key(value, single(pl.String()))


def test_key_with_too_few_parts_names_the_columns():
    with pytest.raises(RecordError, match=r"expected 2 parts \(region, id\), got 1"):
        encode_key("eu", PAIR)


def test_key_spec_of_nested_or_doubled_columns_is_refused_at_the_users_line():
    location = Location("orders.py", 3)
    with pytest.raises(SchemaError, match=r"key column 'tags': a list cannot be part of a key \(orders.py:3\)"):
        KeySpec.of({"tags": pl.List(pl.String())}, location=location)
    with pytest.raises(SchemaError, match="at least one column"):
        KeySpec.of({}, location=location)
    with pytest.raises(SchemaError, match="twice"):
        KeySpec(("a", "a"), (pl.String(), pl.String()))


@pytest.mark.parametrize(
    ("dtype", "value", "data"),
    [
        (pl.Int64(), 258, b"\0\0\0\0\0\0\1\2"),
        (pl.Int64(), -1, b"\xff" * 8),
        (pl.Int32(), -(2**31), b"\x80\0\0\0"),
        (pl.Int16(), 7, b"\0\7"),
    ],
)
def test_key_as_a_number_is_what_kafkas_serialisers_write(dtype, value, data):
    spec = KeySpec(("id",), (dtype,), "number")
    assert encode_key(value, spec) == data
    assert decode_key(data, spec) == (value,)
    with pytest.raises(DecodeError, match=rf"key: 3 bytes are no {spec.types[0].name}, which has {len(data)}"):
        decode_key(b"123", spec)
    with pytest.raises(RecordError, match="key 'id'"):
        encode_key(2**63, spec)


@pytest.mark.parametrize("dtype", [pl.String(), pl.Float64(), pl.UInt64(), pl.Int8(), pl.Binary()])
def test_key_as_a_number_of_another_type_is_refused(dtype):
    with pytest.raises(SchemaError, match="key_format='number' cannot hold the key"):
        KeySpec(("id",), (dtype,), "number")
