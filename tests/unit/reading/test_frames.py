from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime

import polars as pl
import pytest

import everstate as es
from everstate.errors import ConfigurationError, DecodeError, SchemaError, TopicNotFoundError
from everstate.log import MemoryLog


def service() -> es.Service:
    app = es.Service("shop")
    orders = app.table("orders", key="order_id", schema={"order_id": int, "customer": str, "amount": float})
    totals = orders.group_by("customer", "order_id").agg(total=es.col("amount").sum()).to("totals")
    totals.map(lambda row: row["total"], schema=float).to("bare")
    return app


def test_table_of_a_service_has_its_columns_and_types(log, topic):
    topic("orders", ("7", {"customer": "ada", "amount": 5}), ("12", {"customer": "bob", "amount": 1.5}))
    frame = es.read_table("orders", log=log, service=service())
    assert frame.schema == {"order_id": pl.Int64, "customer": pl.String, "amount": pl.Float64}
    assert frame.rows() == [(7, "ada", 5.0), (12, "bob", 1.5)]


def test_table_of_an_output_decodes_its_composite_key(log, topic):
    topic("totals", ('["ada",12]', {"total": 5.0}), ('["ada",7]', {"total": 2.0}))
    frame = es.read_table("totals", log=log, service=service())
    assert frame.rows(named=True) == [
        {"customer": "ada", "order_id": 7, "total": 2.0},
        {"customer": "ada", "order_id": 12, "total": 5.0},
    ]


def test_table_of_a_scalar_output_is_the_column_value(log, topic):
    topic("bare", ('["ada",12]', 5.5))
    assert es.read_table("bare", log=log, service=service()).rows() == [("ada", 12, 5.5)]


def test_table_is_the_latest_value_of_each_key_without_deleted_ones(log, topic):
    topic("t", ("a", {"n": 1}), ("b", {"n": 1}), ("a", {"n": 2}), ("b", None), ("c", {"n": 3}))
    assert es.read_table("t", log=log).to_dicts() == [{"key": "a", "n": 2}, {"key": "c", "n": 3}]


def test_table_with_metadata_says_where_each_row_is(log, topic):
    topic("t", ("a", {"n": 1}, 1000), ("a", {"n": 2}, 2000))
    row = es.read_table("t", log=log, metadata=True).row(0, named=True)
    assert row == {
        "key": "a",
        "n": 2,
        "$timestamp": datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC),
        "$partition": 0,
        "$offset": 1,
    }


def test_table_of_an_explicit_schema_has_the_key_of_its_type(log, topic):
    topic("t", ("2024-05-01", b"true"), ("2023-01-01", b"false"))
    frame = es.read_table("t", log=log, schema=bool, key="day", key_type=date)
    assert frame.rows(named=True) == [
        {"day": date(2023, 1, 1), "value": False},
        {"day": date(2024, 5, 1), "value": True},
    ]


def test_stream_is_ordered_by_time_partition_and_offset_with_tombstones(log, topic):
    topic("t", ("a", {"n": 1}, 30, 0), ("b", {"n": 2}, 10, 1), ("a", None, 20, 0), ("b", {"n": 4}, 10, 0), partitions=2)
    frame = es.read_stream("t", log=log, metadata=True)
    found = frame.select("key", "n", "$partition", "$offset", "$deleted").rows()
    assert found == [("b", 4, 0, 2, False), ("b", 2, 1, 0, False), ("a", None, 0, 1, True), ("a", 1, 0, 0, False)]
    assert es.read_stream("t", log=log).columns == ["key", "n"]


@pytest.mark.parametrize(
    ("bounds", "numbers"),
    [
        ({"start": "1970-01-01T00:00:02"}, [2, 3, 4]),
        ({"end": datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)}, [0, 1]),
        ({"start": "1970-01-01T00:00:01", "end": "1970-01-01T00:00:03"}, [1, 2]),
        ({"start": 3}, [3, 4]),
        ({"end": {0: 2}}, [0, 1]),
        ({"start": 1, "end": 100}, [1, 2, 3, 4]),
        ({"start": 4, "end": 2}, []),
        ({"limit": 2}, [0, 1]),
        ({"tail": 2}, [3, 4]),
        ({"tail": 2, "end": "1970-01-01T00:00:03"}, [1, 2]),
        ({"limit": 0}, []),
        ({"tail": 0}, []),
        ({"limit": 100}, [0, 1, 2, 3, 4]),
    ],
)
def test_stream_between_bounds_has_only_these_records(log, topic, bounds, numbers):
    topic("t", *(("k", {"n": number}, number * 1000) for number in range(5)))
    frame = es.read_stream("t", log=log, schema={"n": int}, **bounds)
    assert frame["n"].to_list() == numbers
    assert frame.schema == {"key": pl.String, "n": pl.Int64}


def test_tail_of_a_compacted_topic_looks_back_over_the_gaps(log, topic):
    topic("t", ("a", 0), ("b", 1), *(("k", number) for number in range(2, 60)))
    compacted = es.read_stream("t", log=log, tail=3)
    assert compacted["value"].to_list() == [57, 58, 59]
    from everstate.log import TopicConfig

    log.create_topic("c", TopicConfig(compact=True))
    log.append("c", pl.DataFrame({"key": [b"a", b"b", *[b"k"] * 58], "value": [b"%d" % n for n in range(60)]}))
    log.compact("c")
    assert es.read_stream("c", log=log, tail=2)["value"].to_list() == [1, 59]


def test_bad_records_are_named_with_their_places(log, topic):
    topic(
        "orders", ("1", {"customer": "a", "amount": "x"}), ("2", {"customer": "b", "amount": 1}), ("x", {"amount": 1})
    )
    for read in (es.read_table, es.read_stream):
        with pytest.raises(DecodeError) as refused:
            read("orders", log=log, service=service())
        assert "2 records of topic 'orders' cannot be decoded" in str(refused.value)
        assert "partition 0, offset 0: field 'amount': expected float, got text 'x'" in str(refused.value)
        assert "partition 0, offset 2: key:" in str(refused.value)


def test_bad_records_that_are_skipped_are_counted(log, topic):
    topic(
        "orders", *((str(n), {"customer": "a", "amount": "x"}) for n in range(8)), ("9", {"customer": "b", "amount": 1})
    )
    with pytest.warns(UserWarning, match=r"8 records of topic 'orders' left out: .*; and 3 more") as told:
        frame = es.read_table("orders", log=log, service=service(), bad="skip")
    assert frame["order_id"].to_list() == [9]
    assert told[0].filename == __file__


def test_dead_letters_of_a_service_are_inferred(log, topic):
    topic("totals.dlq", ('["orders",0,5]', {"reason": "no", "offset": 5}))
    assert es.read_table("totals.dlq", log=log, service=service()).columns == ["key", "reason", "offset"]


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"schema": {"n": int}, "service": service()}, ConfigurationError, "exclude each other"),
        ({"service": es.Service("other")}, ConfigurationError, "neither reads nor writes topic 't'"),
        ({"key": "id"}, ConfigurationError, "belong to a schema"),
        ({"bad": "ignore"}, ConfigurationError, "is not one of error, skip"),
        ({"start": "soon"}, ConfigurationError, "'soon' is not a time"),
        ({"start": {7: 1}}, ConfigurationError, "there is no partition 7"),
        ({"start": 1.5}, ConfigurationError, "neither a time nor an offset"),
        ({"limit": -1}, ConfigurationError, "not a whole number"),
        ({"limit": 1, "tail": 1}, ConfigurationError, "exclude each other"),
        ({"schema": {"n": object}}, SchemaError, "schema"),
    ],
)
def test_arguments_that_cannot_be_are_named(topic, log, given, kind, message):
    topic("t")
    with pytest.raises(kind, match=message) as refused:
        es.read_stream("t", log=log, **given)
    assert refused.value.hint


def test_topic_that_is_not_there_is_named(log):
    log.create_topic("t")
    with pytest.raises(TopicNotFoundError):
        es.read_table("none", log=log)
    with pytest.raises(TopicNotFoundError):
        es.read_stream("none", log=log)


def test_log_that_is_not_there_is_named_and_not_made(tmp_path):
    with pytest.raises(ConfigurationError, match="there is no log at"):
        es.read_table("t", log=tmp_path / "none")
    assert list(tmp_path.iterdir()) == []


def test_log_is_found_by_path_environment_and_service(tmp_path, monkeypatch):
    from everstate.log import open_log

    path = tmp_path / "log"
    open_log(path).create_topic("orders")
    app = es.Service("shop", log=path)
    app.table("orders", key="id", schema={"id": str, "n": int}).to("copy")
    assert es.read_table("orders", log=path).columns == ["key"]
    assert es.read_table("orders", log=str(path)).columns == ["key"]
    assert es.read_table("orders", service=app).columns == ["id", "n"]
    monkeypatch.setenv("EVERSTATE_LOG", str(path))
    assert es.read_stream("orders").columns == ["key"]


def test_reading_loads_neither_spark_nor_polars_with_the_package():
    program = "import sys, everstate; print(sorted(sys.modules.keys() & {'polars', 'pyarrow', 'everstate.reading'}));"
    program += "everstate.read_table; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\nFalse\n"


def test_log_that_was_passed_stays_open():
    log = MemoryLog()
    log.create_topic("t")
    es.read_table("t", log=log)
    assert log.topics() == ["t"]


def test_read_table_with_keys_that_are_numbers_of_fixed_width(log):
    log.create_topic("rooms")
    log.append("rooms", pl.DataFrame({"key": [bytes(7) + b"\7", bytes(8)], "value": [b"1", b"2"]}))
    words = {"log": log, "schema": int, "key": "room", "key_type": int, "key_format": "number"}
    assert es.read_table("rooms", **words).rows() == [(0, 2), (7, 1)]
    assert es.read_stream("rooms", **words)["room"].to_list() == [7, 0]
