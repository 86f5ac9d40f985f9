"""What was encoded decodes to itself."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime

import polars as pl
import pytest
from google.protobuf.empty_pb2 import Empty
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import everstate as es
from everstate.kernels.records import encode, python_rows
from everstate.kernels.records.decode import decode_values
from everstate.kernels.records.encode import encode_values
from everstate.schema import scalars, types
from everstate.schema.record_values import decode_value, encode_value
from everstate.schema.schema import Schema
from everstate.schema.types import DataType, Field
from tests.effort import examples

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=4).filter(
    lambda name: name[0] != "$"
)

#: Types, each with the values it can have.
SCALARS = [
    (types.TEXT, TEXT),
    (types.INTEGER, st.integers(-(2**63), 2**63 - 1)),
    (types.FLOAT, st.floats()),
    (types.BOOL, st.booleans()),
    (types.BYTES, st.binary(max_size=8)),
    (types.DATETIME, st.datetimes(timezones=st.just(UTC))),
    (types.DATE, st.dates()),
    (types.DURATION, st.timedeltas(-scalars.LONGEST, scalars.LONGEST)),
    (DataType("decimal", precision=38, scale=18), st.decimals(-(10**19), 10**19, places=18)),
    (DataType("decimal", precision=9, scale=0), st.decimals(-999_999_999, 999_999_999, places=0)),
    (DataType("uint64"), st.integers(0, 2**64 - 1)),
    (DataType("int8"), st.integers(-128, 127)),
    (DataType("float32"), st.floats(width=32)),
    (DataType("datetime", unit="us"), st.datetimes()),
    (
        DataType("datetime", unit="ms"),
        st.datetimes().map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)),
    ),
]


@st.composite
def typed(draw, depth: int = 2):
    """A type, nested perhaps, and the values it can have; whatever is inside may be null."""
    kind = draw(st.integers(0, 5 if depth else 2))
    if kind <= 2:
        return draw(st.sampled_from(SCALARS))
    if kind == 3:
        inner, values = draw(typed(depth - 1))
        return types.list_of(inner, nullable=True), st.lists(st.none() | values, max_size=3)
    if kind == 4:
        inner, values = draw(typed(depth - 1))
        pairs = st.dictionaries(TEXT, st.none() | values, max_size=3)
        return types.map_of(inner, nullable=True), pairs.map(lambda found: dict(sorted(found.items())))
    fields = draw(st.dictionaries(NAMES, typed(depth - 1), min_size=1, max_size=3))
    made = types.struct_of([Field(name, inner, nullable=True) for name, (inner, _) in fields.items()])
    return made, st.fixed_dictionaries({name: st.none() | values for name, (_, values) in fields.items()})


@st.composite
def tables(draw):
    """A schema and rows of it."""
    columns = draw(st.dictionaries(NAMES, typed(), min_size=1, max_size=4))
    schema = Schema(tuple(Field(name, type_, nullable=True) for name, (type_, _) in columns.items()))
    row = st.fixed_dictionaries({name: st.none() | values for name, (_, values) in columns.items()})
    return schema, draw(st.lists(row, min_size=1, max_size=6))


@given(tables())
@settings(max_examples=examples(100), deadline=None)
def test_rows_of_any_schema_decode_to_themselves(table):
    schema, rows = table
    frame = python_rows.to_frame(rows, schema)
    decoded = decode_values(encode_values(frame, schema, "json"), schema, "json")
    assert decoded.bad.is_empty(), decoded.bad["reason"].to_list()
    assert_frame_equal(decoded.frame.drop("$index"), frame, check_exact=True)


@given(tables())
@settings(max_examples=examples(50), deadline=None)
def test_rows_of_any_schema_mean_the_same_as_one_by_one(table):
    schema, rows = table
    fast = encode_values(python_rows.to_frame(rows, schema), schema, "json")
    for row, value in zip(rows, fast, strict=True):
        assert json.loads(encode_value(row, schema, "json")) == json.loads(value)


@given(tables())
@settings(max_examples=examples(50), deadline=None)
def test_python_rows_survive_a_frame(table):
    schema, rows = table
    for row, found in zip(rows, python_rows.to_rows(python_rows.to_frame(rows, schema), schema), strict=True):
        assert encode_value(row, schema, "json") == encode_value(found, schema, "json")


@pytest.mark.parametrize(
    ("type_", "values"), SCALARS, ids=lambda given: str(given) if isinstance(given, DataType) else ""
)
@given(data=st.data())
@settings(max_examples=examples(8), deadline=None)
def test_scalars_decode_to_themselves_in_json_and_as_text(type_, values, data):
    schema = Schema((Field("value", type_),), scalar=True)
    frame = python_rows.to_frame([{"value": value} for value in data.draw(st.lists(values, min_size=1))], schema)
    for fmt in ("json", "bytes" if type_.name == "bytes" else "string"):
        decoded = decode_values(encode_values(frame, schema, fmt), schema, fmt)
        assert_frame_equal(decoded.frame.drop("$index"), frame, check_exact=True)


def test_scalars_in_json_are_bare():
    frame = pl.DataFrame({"value": ["a}", "{"]})
    assert encode_values(frame, Schema.of(str), "json").to_list() == [b'"a}"', b'"{"']


def test_floats_without_a_json_number_are_written_as_text_and_only_their_rows_slowly(monkeypatch):
    calls = []
    monkeypatch.setattr(encode, "encode_value", lambda *given: calls.append(1) or encode_value(*given))
    frame = pl.DataFrame({"x": [1.0, math.nan, -math.inf, None], "l": [[0.5], [], [None], [math.inf]]})
    written = encode_values(frame, Schema.of({"x": float | None, "l": list[float | None]}), "json").to_list()
    assert written == [
        b'{"x":1.0,"l":[0.5]}',
        b'{"x":"NaN","l":[]}',
        b'{"x":"-Infinity","l":[null]}',
        b'{"x":null,"l":["Infinity"]}',
    ]
    assert len(calls) == 3


def test_columns_that_the_schema_does_not_name_are_left_out():
    frame = pl.DataFrame({"$key": [b"k"], "b": [1], "a": ["x"]})
    assert encode_values(frame, Schema.of({"a": str, "b": int}), "json").to_list() == [b'{"a":"x","b":1}']


def test_rows_without_columns_are_empty_objects():
    schema = Schema(())
    assert encode_values(pl.DataFrame({"$key": [b"k", b"l"]}), schema, "json").to_list() == [b"{}", b"{}"]
    assert len(decode_values(pl.Series([b"{}", b'{"a":1}']), schema, "json").frame) == 2


def test_special_types_are_written_as_documented():
    schema = Schema.of(
        {"t": datetime, "d": types.DATE, "m": types.DataType("decimal", precision=9, scale=2), "b": bytes}
    )
    row = {"t": datetime(2024, 5, 1, 10, tzinfo=UTC), "d": datetime(2024, 5, 1).date(), "m": "1.50", "b": b"x"}  # noqa: DTZ001
    frame = pl.DataFrame(
        {**{name: [value] for name, value in row.items()}}, schema_overrides={"t": pl.Datetime("us", "UTC")}
    )
    frame = frame.with_columns(pl.col("m").str.to_decimal(scale=2).cast(pl.Decimal(9, 2)))
    expected = b'{"t":"2024-05-01T10:00:00Z","d":"2024-05-01","m":"1.5","b":"eA=="}'
    assert encode_values(frame, schema, "json").to_list() == [expected]
    assert encode_value(decode_value(expected, schema, "json"), schema, "json") == expected


@pytest.mark.parametrize("format_", ["json", es.Avro("mock://columns"), es.Protobuf(Empty, "mock://columns")])
def test_rows_that_are_nothing_but_their_key_are_written_in_every_format_and_read_back(format_):
    app = es.Service("sets")
    members = app.table("members", key="id", schema={"id": str})
    members.to("copied", format=format_)
    driver = es.testing.Driver(app)
    with driver.batch():
        for key in ("a", "b", "c"):
            driver.send("members", key, {})
    driver.tombstone("members", "b")
    assert driver.table("copied") == {"a": {}, "c": {}}
