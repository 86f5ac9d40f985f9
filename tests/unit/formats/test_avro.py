"""Avro in the registry's wire format: what Confluent's serialisers write is read, what we write is read by them."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pytest
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import given, settings
from hypothesis import strategies as st

import everstate as es
from everstate.errors import DecodeError, LogDeniedError, LogUnavailableError, SchemaError
from everstate.formats import registry as registries
from everstate.formats.avro import schema_text
from everstate.formats.descriptions import Avro
from everstate.formats.framing import framed
from everstate.formats.values import decode_value, encode_value, register
from everstate.kernels.records import avro_blocks, avro_columns
from everstate.kernels.records.decode import decode_values
from everstate.kernels.records.encode import encode_values
from everstate.schema.schema import Field, Schema
from everstate.schema.topic_names import dead_letter_topic
from tests.effort import examples
from tests.registries import RegistryServer, serving

VALUE = SerializationContext("orders", MessageField.VALUE)
FIELDS = [
    {"name": "id", "type": "string"},
    {"name": "amount", "type": "double"},
    {"name": "items", "type": ["null", "int"]},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
    {
        "name": "place",
        "type": ["null", {"type": "record", "name": "Place", "fields": [{"name": "city", "type": "string"}]}],
    },
]
ORDER = {"type": "record", "name": "Order", "fields": FIELDS}
COLUMNS = Schema.of(
    {
        "id": str,
        "amount": float,
        "items": int | None,
        "at": datetime,
        "day": date | None,
        "tags": list[str],
        "place": {"city": str},
    }
)
ROW = {
    "id": "a1",
    "amount": 2.5,
    "items": 3,
    "at": datetime(2024, 5, 1, 10, tzinfo=UTC),
    "day": date(2024, 5, 1),
    "tags": ["new", "é"],
    "place": {"city": "Lyon"},
}


def written(registry: RegistryServer, schema: object, rows: list[object]) -> pl.Series:
    serializer = AvroSerializer(registry.client, json.dumps(schema))
    return pl.Series("value", [serializer(row, VALUE) for row in rows], dtype=pl.Binary)


def test_values_of_confluents_serialiser_are_read_at_once(registry: RegistryServer):
    values = written(registry, ORDER, [ROW, {**ROW, "items": None, "day": None, "tags": []}])
    read, aside = avro_blocks.read(values, COLUMNS, Avro(registry.url))
    assert aside.is_empty()
    assert read.drop("$index").rows(named=True) == [ROW, {**ROW, "items": None, "day": None, "tags": []}]
    assert registry.asked == ["GET /schemas/ids/1"]


def test_values_of_two_versions_are_read_each_with_its_own(registry: RegistryServer):
    later = {"type": "record", "name": "Order", "fields": [{"name": "note", "type": "string"}, *FIELDS[:2]]}
    values = pl.concat(
        [
            written(registry, ORDER, [ROW]),
            written(registry, later, [{"note": "n", "id": "a2", "amount": 4.0}]),
            written(registry, ORDER, [ROW]),
        ]
    )
    schema = Schema.of({"id": str, "amount": float, "note": str | None})
    decoded = decode_values(values, schema, Avro(registry.url))
    assert decoded.bad.is_empty()
    assert decoded.frame.drop("$index").rows() == [("a1", 2.5, None), ("a2", 4.0, "n"), ("a1", 2.5, None)]


def test_damaged_values_among_good_ones_are_named_and_spoil_no_other(registry: RegistryServer):
    good = written(registry, ORDER, [{**ROW, "id": f"a{number}"} for number in range(5)]).to_list()
    damaged = [
        good[0][:9],
        good[0] + b"\0",
        b"\1" + good[0][1:],
        b"",
        framed(77, good[0][5:]),
        good[0][:5] + b"\x04\xff\xfe" + good[0][8:],
    ]
    values = pl.Series("value", [good[1], *damaged, good[2]], dtype=pl.Binary)
    decoded = decode_values(values, COLUMNS, Avro(registry.url))
    assert decoded.frame["id"].to_list() == ["a1", "a2"]
    assert decoded.frame["$index"].to_list() == [0, 7]
    assert decoded.bad["$index"].to_list() == [1, 2, 3, 4, 5, 6]
    reasons = decoded.bad["reason"].to_list()
    assert reasons[0].startswith("it is not a value of schema 1: ")
    assert reasons[1] == "it is not a value of schema 1: 1 bytes follow the value"
    assert reasons[2] == reasons[3]
    assert reasons[2].startswith("it does not begin with the number of a schema")
    assert reasons[4] == "the registry has no schema 77"
    assert "utf-8" in reasons[5]


def test_columns_that_a_writer_lacks_or_has_otherwise_are_named(registry: RegistryServer):
    values = written(registry, {"type": "record", "name": "Order", "fields": FIELDS[:2]}, [{"id": "a", "amount": 1.0}])
    lacking = decode_values(values, Schema.of({"id": str, "country": str}), Avro(registry.url))
    assert lacking.bad["reason"].to_list() == ["field 'country': expected text, it is missing or null"]
    other = decode_values(values, Schema.of({"id": int}), Avro(registry.url))
    assert other.bad["reason"].to_list() == ["field 'id': expected integer, got text 'a'"]


def test_schemas_that_polars_cannot_read_are_read_one_by_one(registry: RegistryServer):
    fields = [
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "counts", "type": {"type": "map", "values": "long"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "either", "type": ["null", "string", "long"]},
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
    ]
    uuid = "12345678-1234-5678-1234-567812345678"
    row = {"kind": "B", "counts": {"x": 1}, "price": Decimal("1.25"), "either": "text", "id": uuid}
    values = written(registry, {"type": "record", "name": "R", "fields": fields}, [row])
    schema = Schema.of({"kind": str, "counts": dict[str, int], "price": Decimal, "either": str | None, "id": str})
    decoded = decode_values(values, schema, Avro(registry.url))
    assert decoded.bad.is_empty()
    assert decode_value(values[0], schema, Avro(registry.url)) == row
    assert decoded.frame.select("kind", "price", "either", "id").row(0) == ("B", Decimal("1.25"), "text", uuid)


def test_a_bare_value_is_a_scalar_schema(registry: RegistryServer):
    values = written(registry, "long", [1, -(2**40)])
    decoded = decode_values(values, Schema.of(int), Avro(registry.url))
    assert decoded.frame["value"].to_list() == [1, -(2**40)]


SCHEMA = Schema.of(
    pa.schema(
        [
            pa.field("text", pa.string(), nullable=False),
            pa.field("small", pa.int16()),
            pa.field("number", pa.int64(), nullable=False),
            pa.field("ratio", pa.float64()),
            pa.field("single", pa.float32()),
            pa.field("flag", pa.bool_()),
            pa.field("raw", pa.binary()),
            pa.field("at", pa.timestamp("us", "UTC")),
            pa.field("local", pa.timestamp("ms")),
            pa.field("day", pa.date32()),
            pa.field("took", pa.duration("us")),
            pa.field("price", pa.decimal128(12, 3)),
            pa.field("list", pa.list_(pa.int64())),
            pa.field("inner", pa.struct([pa.field("x", pa.int64()), pa.field("y", pa.string())])),
        ]
    )
)
TIMES = st.integers(-(2**51), 2**51).map(lambda micros: datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros))
ROWS = st.fixed_dictionaries(
    {
        "text": st.text(st.characters(codec="utf-8"), max_size=5),
        "small": st.none() | st.integers(-(2**15), 2**15 - 1),
        "number": st.integers(-(2**63), 2**63 - 1),
        "ratio": st.none() | st.floats(allow_nan=False),
        "single": st.none() | st.floats(width=32, allow_nan=False),
        "flag": st.none() | st.booleans(),
        "raw": st.none() | st.binary(max_size=5),
        "at": st.none() | TIMES,
        "local": st.none() | TIMES.map(lambda time: time.replace(microsecond=0, tzinfo=None)),
        "day": st.none() | st.dates(),
        "took": st.none() | st.integers(-(2**40), 2**40).map(lambda number: timedelta(microseconds=number)),
        "price": st.none() | st.integers(-(10**9), 10**9).map(lambda number: Decimal(number).scaleb(-3)),
        "list": st.none() | st.lists(st.none() | st.integers(-5, 2**62), max_size=3),
        "inner": st.none() | st.fixed_dictionaries({"x": st.none() | st.integers(0, 9), "y": st.none() | st.just("é")}),
    }
)


@pytest.mark.hypothesis
@settings(max_examples=examples(60))
@given(st.lists(ROWS, max_size=12), st.data())
def test_values_written_are_read_back_by_both_codecs_and_by_confluents(rows, data):
    with serving() as registry:
        fmt = Avro(registry.url, "things-value")
        register(SCHEMA, fmt)
        frame = pl.DataFrame(rows, schema=SCHEMA.polars)
        values = encode_values(frame, SCHEMA, fmt)
        decoded = decode_values(values, SCHEMA, fmt)
        assert decoded.bad.is_empty()
        assert decoded.frame.drop("$index").equals(frame)
        deserializer = AvroDeserializer(registry.client)
        for value, row in zip(values, frame.to_dicts(), strict=True):
            assert decode_value(value, SCHEMA, fmt) == row
            theirs = deserializer(value, VALUE)
            assert {name: theirs[name] for name in ("text", "number", "at", "price")} == {
                name: row[name] for name in ("text", "number", "at", "price")
            }
        if rows:
            value = data.draw(st.sampled_from(list(values)))
            cut = value[: data.draw(st.integers(0, len(value) - 1))]
            both = decode_values(pl.Series([value, cut, value], dtype=pl.Binary), SCHEMA, fmt)
            assert both.bad["$index"].to_list() == [1]


FLAT = Schema(tuple(field for field in SCHEMA.fields if field.name not in ("price", "list", "inner")))
BARE = Schema(tuple(Field(field.name, field.type) for field in FLAT.fields))


@pytest.mark.hypothesis
@settings(max_examples=examples(60))
@given(st.lists(ROWS, max_size=12))
def test_rows_written_together_are_those_written_one_by_one(rows):
    fmt = Avro("mock://flat", "flat-value")
    whole = [row for row in rows if None not in row.values()]
    for schema, chosen in ((FLAT, rows), (BARE, whole)):
        register(schema, fmt)
        assert avro_columns.is_written(schema)
        frame = pl.DataFrame(chosen, schema=SCHEMA.polars)
        together = encode_values(frame, schema, fmt)
        assert together.to_list() == [encode_value(row, schema, fmt) for row in frame.to_dicts()]


def test_an_outputs_schema_is_registered_once_and_refused_when_incompatible(registry: RegistryServer):
    schema, fmt = Schema.of({"total": float | None}), Avro(registry.url, "totals-value")
    register(schema, fmt)
    value = encode_value({"total": 2.5}, schema, fmt)
    assert value[:5] == b"\0\0\0\0\1"
    registry.refuses = True
    with pytest.raises(SchemaError, match="refuses the schema of subject 'totals-value': Schema being registered is"):
        register(Schema.of({"total": str}), fmt)


def test_a_schema_that_was_never_registered_is_not_registered_by_looking_at_results(registry: RegistryServer):
    schema, fmt = Schema.of({"total": float}), Avro(registry.url, "totals-value")
    with registries.trying():
        assert encode_value({"total": 1.0}, schema, fmt)[:5] == bytes(5)
    with pytest.raises(es.EverstateError, match="'totals-value' is no longer in the registry"):
        encode_value({"total": 1.0}, schema, fmt)
    assert not any(asked.endswith("versions") for asked in registry.asked)


def test_a_registry_that_refuses_or_does_not_answer_is_no_fault_of_the_record(registry, monkeypatch):
    values = written(registry, ORDER, [ROW])
    registry.authorization = "Basic YWRhOmxvdmVsYWNl"
    monkeypatch.setenv("EVERSTATE_REGISTRY_USERNAME", "ada")
    monkeypatch.setenv("EVERSTATE_REGISTRY_PASSWORD", "wrong-password")
    with pytest.raises(LogDeniedError, match="401 Unauthorized") as refused:
        decode_values(values, COLUMNS, Avro(registry.url))
    assert "wrong-password" not in str(refused.value)
    monkeypatch.setenv("EVERSTATE_REGISTRY_PASSWORD", "lovelace")
    assert decode_values(values, COLUMNS, Avro(registry.url)).bad.is_empty()
    monkeypatch.setattr(registries, "_PAUSES_S", (0.01,))
    with pytest.raises(LogUnavailableError, match="cannot be queried: "):
        decode_values(values, COLUMNS, Avro("http://127.0.0.1:1"))


def test_an_address_with_a_password_in_it_is_refused():
    with pytest.raises(es.EverstateError) as refused:
        Avro("http://ada:hunter22@registry:8081")
    assert "hunter22" not in str(refused.value)


def test_columns_that_avro_cannot_hold_are_refused_where_the_output_is_declared():
    app = es.Service("shop")
    rows = app.stream("rows", schema=pa.schema([("big", pa.uint64()), ("small number", pa.int64())]))
    with pytest.raises(SchemaError, match="column 'big': Avro has no type for uint64"):
        rows.select("big").to("one", format=es.Avro())
    with pytest.raises(SchemaError, match="column 'small number' has a name that Avro does not allow"):
        rows.select("small number").to("two", format=es.Avro())


def test_where_the_registry_is_changes_no_fingerprint():
    def digest(fmt: object) -> str:
        app = es.Service("shop")
        app.stream("rows", schema={"n": int}, format=fmt).to("copies")
        from everstate.fingerprints.outputs import print_unit

        return print_unit(app.units()[0], policy="skip", settings={}).fingerprint

    assert digest(es.Avro("http://one")) == digest(es.Avro("http://two", "mine"))
    assert digest(es.Avro("http://one")) != digest("json")


def test_the_schema_of_equal_columns_is_one_text():
    assert schema_text(Schema.of({"total": float | None, "n": int}), "totals-value") == (
        '{"type":"record","name":"totals_value","fields":[{"name":"total","type":["null","double"],"default":null},'
        '{"name":"n","type":"long"}]}'
    )


def test_a_service_reads_and_writes_avro_on_the_test_driver():
    app = es.Service("shop")
    orders = app.table(
        "orders", key="id", schema={"id": str, "customer": str, "amount": float}, format=es.Avro("mock://shop")
    )
    totals = orders.group_by("customer").agg(total=es.col("amount").sum())
    totals.to("totals", format=es.Avro("mock://shop"))
    driver = es.testing.Driver(app)
    driver.send("orders", "1", {"customer": "ada", "amount": 2.5})
    driver.send("orders", "2", {"customer": "ada", "amount": 4.0})
    driver.send("orders", "3", b"{}")
    assert driver.table("totals") == {"ada": {"total": 6.5}}
    (letter,) = driver.table(dead_letter_topic("totals")).values()
    assert letter["reason"].startswith("it does not begin with the number of a schema")


def test_reasons_of_one_value_are_those_of_many(registry: RegistryServer):
    with pytest.raises(DecodeError, match="the registry has no schema 9"):
        decode_value(framed(9, b""), COLUMNS, Avro(registry.url))
