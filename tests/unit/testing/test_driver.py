from __future__ import annotations

import pytest

import everstate as es
from everstate import col
from everstate.topology.errors import ConfigurationError, RecordError, TopicNotFoundError


def totals(**options: object) -> es.Service:
    app = es.Service("s", **options)
    orders = app.table("orders", key="id", schema={"id": str, "customer": str, "amount": int})
    orders.group_by("customer").agg(total=col("amount").sum()).to("totals")
    return app


def test_driver_batch_publishes_one_record_a_key() -> None:
    driver = es.testing.Driver(totals())
    with driver.batch():
        driver.send("orders", "1", {"customer": "ada", "amount": 1})
        driver.send("orders", "2", {"customer": "ada", "amount": 2})
    assert [(r.key, r.value) for r in driver.records("totals")] == [("ada", {"total": 3})]


def test_driver_output_without_columns_publishes_empty_objects_and_tombstones() -> None:
    app = es.Service("s")
    app.table("in", schema={"x": int}).drop("x").to("keys")
    driver = es.testing.Driver(app)
    driver.send("in", "a", {"x": 1})
    driver.tombstone("in", "a")
    assert [record.value for record in driver.records("keys")] == [{}, None]


def test_driver_record_carries_timestamp_partition_and_service() -> None:
    driver = es.testing.Driver(totals(), partitions=3)
    driver.send("orders", "1", {"customer": "ada", "amount": 1}, ts=5)
    (record,) = driver.records("totals")
    assert (record.ts, record.headers) == (5, {"es-service": b"s"})


def test_driver_unknown_topic_is_named() -> None:
    with pytest.raises(TopicNotFoundError, match="'nope'"):
        es.testing.Driver(totals()).send("nope", "k", {})


def test_driver_without_partitions_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        es.testing.Driver(totals(), partitions=0)


def test_driver_policy_fail_raises_with_the_place_and_publishes_nothing() -> None:
    driver = es.testing.Driver(totals(on_error="fail"))
    with pytest.raises(RecordError, match="orders/0 offset 0"):
        driver.send("orders", "1", {"customer": "ada", "amount": "x"})
    assert driver.records("totals") == []


def test_driver_policy_skip_only_counts() -> None:
    driver = es.testing.Driver(totals(on_error="skip"))
    driver.send("orders", "1", {"customer": "ada", "amount": "x"})
    assert driver.records("totals.dlq") == []
    assert driver.counts("totals") == {"dead": 1}
