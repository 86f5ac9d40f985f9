"""Which of Spark's columns are those of a topic: records to Spark's types and back, without Spark itself."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType, IntegerType, NullType, StructType

import everstate as es
from everstate.engine.spark_io.columns import delivered_schema, fed_columns
from everstate.engine.spark_io.tasks import Ends, to_records, to_table
from everstate.errors import SchemaError
from everstate.kernels.records.typed_rows import DeclaredForm
from everstate.log import MemoryLog
from everstate.log.descriptions import TopicConfig

EVERYTHING = {
    "id": int,
    "text": str,
    "small": pa.uint8(),
    "large": pa.uint64(),
    "share": float,
    "sure": bool,
    "raw": bytes,
    "at": datetime,
    "day": date,
    "took": timedelta,
    "price": pa.decimal128(10, 2),
    "tags": list[str],
    "counts": dict[str, int],
    "place": {"street": str, "number": int},
}
VALUES = {
    "id": 7,
    "text": "grün",
    "small": 255,
    "large": 2**64 - 1,
    "share": 0.5,
    "sure": True,
    "raw": b"\x00\xff",
    "at": datetime(2024, 2, 29, 12, 0, 0, 5, tzinfo=UTC),
    "day": date(2024, 2, 29),
    "took": timedelta(seconds=1, microseconds=1),
    "price": Decimal("12.50"),
    "tags": ["a", "b"],
    "counts": {"x": 1, "y": 2},
    "place": {"street": "Hauptstraße", "number": 1},
}


def feed_of(schema, *, table=False, key="id"):
    app = es.Service("shop")
    source = (app.table if table else app.stream)("orders", key=key, schema=schema).from_spark(lambda spark: spark)
    feed = source.service.spark_steps.feeds["orders"]
    return feed, DeclaredForm(feed.key, feed.schema, feed.format)


def test_every_type_goes_to_spark_and_back():
    _, form = feed_of(EVERYTHING)
    schema, spark = delivered_schema(form)
    assert from_arrow_schema(schema, prefer_timestamp_ntz=True) == spark
    log = MemoryLog()
    log.create_topic("orders", TopicConfig(partitions=3))
    rows = pl.DataFrame(
        [
            pl.Series(name, [VALUES[name]], form.types[name].polars, strict=False)
            for name in form.types
            if name != "counts"
        ]
    )
    rows = rows.with_columns(
        pl.Series("counts", [[{"key": "x", "value": 1}, {"key": "y", "value": 2}]], form.types["counts"].polars)
    )
    ends = Ends(b"", "orders", form, 3)
    records = to_records(rows, ends, 1000)
    log.append("orders", records)
    (place,) = records["partition"].unique().to_list()
    decoded = form.rows(log.read("orders", place, 0))
    assert decoded.bad.is_empty()
    (row,) = to_table(decoded.frame, schema).to_pylist()
    assert row.pop("$deleted") is False
    assert row.pop("$timestamp") == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert (row.pop("$partition"), row.pop("$offset")) == (place, 0)
    assert {**row, "counts": dict(row["counts"]), "large": int(row["large"])} == VALUES


def test_row_without_a_key_lies_where_it_lies_when_it_is_read_again():
    _, form = feed_of({"word": str}, key="key")
    rows = pl.DataFrame(
        {"key": [None] * 20, "word": [f"w{n}" for n in range(20)]}, schema={"key": pl.String, "word": pl.String}
    )
    ends = Ends(b"", "orders", form, 3)
    first = to_records(rows, ends, 0)
    again = to_records(rows.reverse(), ends, 0).reverse()
    assert first["partition"].to_list() == again["partition"].to_list()
    assert first["partition"].n_unique() == 3
    assert first["key"].null_count() == 20


def test_tombstones_and_times_come_from_their_columns():
    _, form = feed_of({"id": str, "n": int}, table=True)
    rows = pl.DataFrame(
        {
            "id": ["a", "b"],
            "n": [1, None],
            "$timestamp": [datetime(2024, 1, 1, tzinfo=UTC), None],
            "$deleted": [None, True],
        },
        schema_overrides={"n": pl.Int64},
    )
    records = to_records(rows, Ends(b"", "orders", form, 1), 5)
    assert records["value"].to_list() == [b'{"id":"a","n":1}', None]
    assert records["ts"].to_list() == [1_704_067_200_000, 5]


FITTING = {
    "the same": ({"id": "string", "n": "long"}, {"id": str, "n": int}, ["id", "n"]),
    "a smaller integer": ({"id": "string", "n": "integer"}, {"id": str, "n": int}, ["id", "n"]),
    "an integer as a float": ({"id": "string", "n": "integer"}, {"id": str, "n": float}, ["id", "n"]),
    "one column too many": ({"id": "string", "n": "long", "more": "string"}, {"id": str, "n": int}, ["id", "n"]),
    "one that may be missing": ({"id": "string"}, {"id": str, "n": int | None}, ["id"]),
    "a time": ({"id": "string", "$timestamp": "timestamp"}, {"id": str}, ["id", "$timestamp"]),
    "lists": ({"id": "string", "n": ArrayType(IntegerType())}, {"id": str, "n": list[int]}, ["id", "n"]),
}
WRONG = {
    "a missing column": ({"id": "string"}, {"id": str, "n": int}, "gives no column 'n'"),
    "the key": ({"n": "long"}, {"id": str, "n": int}, "gives no column 'id'"),
    "text for a number": ({"id": "string", "n": "string"}, {"id": str, "n": int}, "'n' as text, but the source"),
    "a larger integer": ({"id": "string", "n": "long"}, {"id": str, "n": pa.int32()}, "as integer, but"),
    "no time zone": ({"id": "string", "at": "timestamp_ntz"}, {"id": str, "at": datetime}, "column 'at'"),
    "a tombstone on a stream": ({"id": "string", "$deleted": "boolean"}, {"id": str}, "is a stream"),
    "a type that records do not have": ({"id": "string", "n": NullType()}, {"id": str, "n": int}, "column 'n' as null"),
}


def spark_type(columns):
    made = StructType()
    for name, type_ in columns.items():
        made.add(name, type_)
    return made


@pytest.mark.parametrize("name", FITTING)
def test_fitting_columns_are_taken(name):
    given, schema, columns = FITTING[name]
    feed, form = feed_of(schema)
    assert fed_columns(spark_type(given), feed, form) == columns


@pytest.mark.parametrize("name", WRONG)
def test_columns_that_do_not_fit_are_refused_with_the_line_of_the_function(name):
    given, schema, message = WRONG[name]
    feed, form = feed_of(schema)
    with pytest.raises(SchemaError, match=message) as refused:
        fed_columns(spark_type(given), feed, form)
    assert refused.value.location.file == __file__
    assert refused.value.hint
