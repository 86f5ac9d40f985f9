from __future__ import annotations

import math
from dataclasses import dataclass, make_dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import polars as pl
import pytest

from everstate.errors import DecodeError, RecordError, SchemaError
from everstate.schema.record_values import check_row, decode_value, encode_value, require_format
from everstate.schema.schema import Schema

LINE = {"n": int, "sku": str | None}
ORDER = Schema.of({"id": str, "amount": float, "note": str | None})
FULL = Schema.of(
    {
        "at": datetime,
        "day": date,
        "price": Decimal,
        "data": bytes,
        "took": timedelta,
        "tags": dict[str, int | None],
        "lines": list[LINE],
    }
)
FULL_BYTES = (
    b'{"at":"2024-05-01T10:00:00.500000Z","day":"2024-05-01","price":"12.5","data":"eA==","took":1500000,'
    b'"tags":{"a":1,"b":null},"lines":[{"n":1,"sku":null}]}'
)
FULL_ROW = {
    "at": datetime(2024, 5, 1, 10, 0, 0, 500_000, tzinfo=UTC),
    "day": date(2024, 5, 1),
    "price": Decimal("12.5"),
    "data": b"x",
    "took": timedelta(seconds=1.5),
    "tags": {"a": 1, "b": None},
    "lines": [{"n": 1, "sku": None}],
}


def test_value_of_every_type_is_written_and_read():
    assert decode_value(FULL_BYTES, FULL, "json") == FULL_ROW
    assert encode_value(FULL_ROW, FULL, "json") == FULL_BYTES


def test_value_integer_becomes_a_float_and_extra_fields_are_ignored():
    row = decode_value(b'{"id":"a","amount":12,"extra":{"x":[1]}}', ORDER, "json")
    assert row == {"id": "a", "amount": 12.0, "note": None}
    assert isinstance(row["amount"], float)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_value_floats_without_a_json_number_are_texts(text):
    schema = Schema.of({"x": float})
    data = f'{{"x":"{text}"}}'.encode()
    row = decode_value(data, schema, "json")
    assert str(row["x"]) in ("nan", "inf", "-inf")
    assert encode_value(row, schema, "json") == data


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"id":"a","amount":"x"}', "field 'amount': expected float, got text 'x'"),
        (b'{"id":"a","amount":true}', "field 'amount': expected float, got true"),
        (b'{"id":"a","amount":1e400}', "field 'amount': the number does not fit into float64"),
        (b'{"id":"a"}', "field 'amount': expected float, it is missing or null"),
        (b'{"id":null,"amount":1}', "field 'id': expected text, it is missing or null"),
        (b'{"id":5,"amount":1}', "field 'id': expected text, got integer 5"),
        (b'{"id":"a","amount":NaN}', "not valid JSON: NaN is not a JSON value"),
        (b'{"id":"\\ud800","amount":1}', "field 'id': the text has half of a surrogate pair, which UTF-8 cannot hold"),
        (b"[]", "expected an object, got a list"),
        (b"null", "expected an object, got null"),
        (b'{"id":"\xff"}', "not valid UTF-8 at byte 7"),
        (b'{"x":' + b"[" * 300 + b"]" * 300 + b"}", "nested deeper than 256 levels"),
    ],
)
def test_value_that_breaks_the_schema_is_refused_with_the_reason(data, reason):
    with pytest.raises(DecodeError) as caught:
        decode_value(data, ORDER, "json")
    assert caught.value.message == reason


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("at", '"2024-05-01T10:00:00"', "it has no offset"),
        ("at", '"2024-05-01"', "is not a valid datetime"),
        ("at", "1714557600000", "expected datetime, got integer 1714557600000"),
        ("at", '"2024-05-01T10:00:00.1234567Z"', "more than microseconds"),
        ("day", '"2024-02-30"', "is not a valid date"),
        ("price", "12.5", "expected decimal, got float 12.5"),
        ("price", '"1e5"', "is not a valid decimal"),
        ("data", '"eA"', "is not a valid bytes"),
        ("took", '"1"', "expected duration, got text '1'"),
        ("tags", '{"a":"x"}', r"field \"tags\['a'\]\": expected integer, got text 'x'"),
        ("lines", '[{"n":1},{"n":1.5}]', r"field 'lines\[1\].n': expected integer, got float 1.5"),
        ("lines", "[null]", r"field 'lines\[0\]': expected"),
    ],
)
def test_value_of_a_special_type_is_strict(field, value, reason):
    fields = {name.strip('"'): text for name, text in (("at", '"2024-05-01T10:00:00Z"'), ("day", '"2024-05-01"'))}
    fields |= {"price": '"1"', "data": '""', "took": "0", "tags": "{}", "lines": "[]", field: value}
    data = "{" + ",".join(f'"{name}":{text}' for name, text in fields.items()) + "}"
    with pytest.raises(DecodeError, match=reason):
        decode_value(data.encode(), FULL, "json")


@pytest.mark.parametrize(("dtype", "low", "high"), [(pl.Int64, -(2**63), 2**63 - 1), (pl.UInt8, 0, 255)])
def test_value_integers_keep_to_their_bounds(dtype, low, high):
    schema = Schema.of({"x": dtype})
    for fits in (low, high):
        assert decode_value(b'{"x":%d}' % fits, schema, "json") == {"x": fits}
    for beyond in (low - 1, high + 1, 10**30):
        with pytest.raises(DecodeError, match="does not fit"):
            decode_value(b'{"x":%d}' % beyond, schema, "json")


def test_value_with_thousands_of_digits_in_an_unknown_field_is_read():
    assert decode_value(b'{"id":"a","amount":1,"z":' + b"9" * 6000 + b"}", ORDER, "json")["id"] == "a"


def test_value_dict_is_sorted_by_key():
    row = decode_value(b'{"m":{"b":1,"a":2}}', Schema.of({"m": dict[str, int]}), "json")
    assert list(row["m"]) == ["a", "b"]


def test_value_datetime_with_an_offset_is_read_as_utc():
    row = decode_value(b'{"t":"2024-05-01T10:00:00+02:00"}', Schema.of({"t": datetime}), "json")
    assert row["t"] == datetime(2024, 5, 1, 8, tzinfo=UTC)


def test_value_of_a_scalar_schema_is_bare():
    assert encode_value({"value": "é"}, Schema.of(str), "json") == '"é"'.encode()
    assert decode_value(b"5", Schema.of(int), "json") == {"value": 5}
    assert decode_value(b"[1]", Schema.of(list[int]), "json") == {"value": [1]}
    assert decode_value(b"null", Schema.of(int | None), "json") == {"value": None}
    with pytest.raises(DecodeError, match="expected integer"):
        decode_value(b"null", Schema.of(int), "json")


def test_value_as_string_and_as_bytes():
    assert decode_value("é".encode(), Schema.of(str), "string") == {"value": "é"}
    assert decode_value(b"\xff", Schema.of(bytes), "bytes") == {"value": b"\xff"}
    assert encode_value({"value": 5}, Schema.of(int), "string") == b"5"
    with pytest.raises(DecodeError, match="UTF-8"):
        decode_value(b"\xff", Schema.of(str), "string")


@pytest.mark.parametrize(
    ("spec", "fmt"), [({"a": str}, "string"), (list[int], "string"), (str, "bytes"), (str, "avro")]
)
def test_format_that_cannot_hold_a_schema_is_refused(spec, fmt):
    with pytest.raises(SchemaError):
        require_format(Schema.of(spec), fmt)


def test_format_that_can_hold_a_schema_passes():
    for spec, fmt in [({"a": str}, "json"), (str, "json"), (str, "string"), (int, "string"), (bytes, "bytes")]:
        require_format(Schema.of(spec), fmt)


def test_row_of_a_function_gets_its_missing_nullable_fields():
    assert check_row({"id": "a", "amount": 1}, ORDER) == {"id": "a", "amount": 1.0, "note": None}


def test_value_that_leaves_fields_out_gets_their_defaults_and_null_stays_null():
    line = make_dataclass("Line", [("sku", str), ("pieces", int, 1)])
    schema = Schema.of(make_dataclass("Order", [("lines", list[line]), ("note", str | None, "none"), ("rank", int, 9)]))
    lines = [{"sku": "a", "pieces": 1}, {"sku": "b", "pieces": 2}]
    told = b'{"lines": [{"sku": "a"}, {"sku": "b", "pieces": 2}]}'
    assert decode_value(told, schema, "json") == {"lines": lines, "note": "none", "rank": 9}
    assert decode_value(b'{"lines": [], "note": null}', schema, "json") == {"lines": [], "note": None, "rank": 9}
    assert check_row({"lines": lines, "note": None}, schema) == {"lines": lines, "note": None, "rank": 9}
    with pytest.raises(DecodeError, match="field 'rank': expected integer, it is missing or null"):
        decode_value(b'{"lines": [], "rank": null}', schema, "json")


def test_row_of_a_function_may_be_a_dataclass_instance():
    @dataclass
    class Row:
        id: str
        amount: float
        note: str | None = None

    assert check_row(Row("a", 1.5), ORDER) == {"id": "a", "amount": 1.5, "note": None}


def test_row_of_a_function_keeps_python_values():
    row = {**FULL_ROW, "at": datetime(2024, 5, 1, 12, 0, 0, 500_000, tzinfo=timezone(timedelta(hours=2)))}
    assert check_row(row, FULL) == FULL_ROW
    assert math.isnan(check_row({"id": "a", "amount": math.nan}, ORDER)["amount"])


def test_row_of_a_function_on_a_scalar_schema_is_the_bare_value():
    assert check_row(5, Schema.of(int)) == {"value": 5}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"id": "a", "amount": 1.0, "amont": 2}, "unknown field 'amont'; the schema has: id, amount, note"),
        ({"id": "a", "amount": "1"}, "field 'amount': expected float, got text '1'"),
        ({"id": "a", "amount": True}, "field 'amount': expected float, got true"),
        ({"amount": 1.0}, "field 'id': expected text, it is missing or null"),
        (None, "expected an object, got null"),
        ("a", "expected an object, got text 'a'"),
    ],
)
def test_row_of_a_function_that_does_not_fit_is_refused_with_the_reason(row, reason):
    with pytest.raises(RecordError) as caught:
        check_row(row, ORDER)
    assert caught.value.message == reason


def test_row_of_a_function_with_a_datetime_without_zone_is_refused():
    with pytest.raises(RecordError, match="field 't': datetime 2024-05-01 00:00:00 has no time zone"):
        check_row({"t": datetime(2024, 5, 1)}, Schema.of({"t": datetime}))  # noqa: DTZ001 - the subject
