from __future__ import annotations

import pytest

DAY_MS = 86_400_000
pytestmark = pytest.mark.needs("clock", "compact", "count")


def test_compact_superseded_records_go_and_offsets_stay(bench):
    bench.topic("orders", compact=True)
    bench.send("orders", ("a", "1"), ("b", "1"), ("a", "2"))
    bench.send("orders", ("c", "1"), ("b", "2"))
    bench.log.compact("orders")
    assert bench.values("orders") == [("a", "2"), ("c", "1"), ("b", "2")]
    assert bench.offsets("orders") == [2, 3, 4]
    assert bench.log.end_offsets(["orders"]) == {"orders": {0: 5}}
    assert bench.log.describe("orders").records == 3


def test_compact_reading_from_a_dropped_offset_goes_on_with_the_next(bench):
    bench.topic("orders", compact=True)
    bench.send("orders", ("a", "1"), ("a", "2"), ("a", "3"), ("b", "1"))
    bench.log.compact("orders")
    assert bench.log.read("orders", 0, 1, limit=1)["offset"].to_list() == [2]


def test_compact_young_tombstone_stays_and_old_one_goes(bench):
    bench.topic("orders", compact=True, delete_retention_ms=DAY_MS)
    bench.send("orders", ("a", "1"), ("b", "1"), ("a", None))
    bench.clock.advance(DAY_MS - 1)
    bench.log.compact("orders")
    assert bench.values("orders") == [("b", "1"), ("a", None)]
    bench.clock.advance(1)
    bench.log.compact("orders")
    assert bench.values("orders") == [("b", "1")]


def test_compact_tombstone_with_an_old_timestamp_counts_from_its_arrival(bench):
    bench.topic("orders", compact=True)
    bench.send("orders", ("a", "1", 0), ("a", None, 1))
    bench.log.compact("orders")
    assert bench.values("orders") == [("a", None)]


def test_compact_tombstone_that_was_compacted_with_younger_records_keeps_its_age(bench):
    bench.topic("orders", compact=True)
    bench.send("orders", ("a", "1"), ("a", None))
    bench.clock.advance(DAY_MS - 1)
    bench.send("orders", ("b", "1"))
    bench.log.compact("orders")
    bench.clock.advance(1)
    bench.log.compact("orders")
    assert bench.values("orders") == [("b", "1")]


def test_compact_twice_changes_nothing_the_second_time(bench):
    bench.topic("orders", compact=True)
    bench.send("orders", ("a", "1"), ("a", "2"))
    bench.log.compact("orders")
    before = (bench.log.describe("orders"), bench.records("orders"))
    bench.log.compact("orders")
    assert (bench.log.describe("orders"), bench.records("orders")) == before


def test_compact_stream_topic_keeps_every_record(bench):
    bench.topic("events")
    for number in range(5):
        bench.send("events", ("a", str(number), number))
    before = bench.records("events")
    bench.log.compact("events")
    assert bench.records("events") == before


def test_compact_many_partitions_each_keep_their_keys(bench):
    bench.topic("orders", partitions=4, compact=True)
    for value in ("1", "2"):
        bench.send("orders", *[(f"k{number}", value) for number in range(20)])
    bench.log.compact("orders")
    assert bench.table("orders") == {f"k{number}": "2" for number in range(20)}
    assert bench.log.describe("orders").records == 20


def test_compact_last_batch_and_what_was_before_it_stay_for_its_correction(bench):
    bench.topic("totals", compact=True)
    bench.publish({"totals": [("a", "1")]}, 0)
    bench.publish({"totals": [("a", "2")]}, 1)
    bench.log.compact("totals")
    assert bench.publish({"totals": []}, 1).status == "corrected"
    assert bench.table("totals") == {"a": "1"}


def test_compact_what_came_after_a_last_batch_is_compacted_too(bench):
    bench.topic("totals", compact=True)
    bench.send("totals", ("a", "0"), ("b", "0"))
    bench.publish({"totals": [("a", "1")]}, 0)
    bench.send("totals", ("a", "2"), ("b", "1"), ("c", "1"), ("a", "3"), ("b", None))
    bench.clock.advance(DAY_MS)
    bench.log.compact("totals")
    assert bench.values("totals") == [("a", "0"), ("b", "0"), ("a", "1"), ("c", "1"), ("a", "3"), ("b", None)]
    assert bench.table("totals") == {"a": "3", "c": "1"}
    assert bench.publish({"totals": []}, 0).status == "corrected"
    assert bench.values("totals")[-1] == ("a", "0")


def test_maintain_mostly_superseded_topic_is_compacted(bench):
    bench.topic("orders", compact=True)
    for _ in range(3):
        bench.send("orders", *[(f"k{number}", "v") for number in range(40_000)])
    assert bench.log.maintain("orders")
    assert bench.log.describe("orders").records == 40_000
    assert not bench.log.maintain("orders")


def test_maintain_few_records_are_left_alone(bench):
    bench.topic("orders", compact=True)
    bench.send("orders", ("a", "1"), ("a", "2"))
    assert not bench.log.maintain("orders")


def test_tombstones_dropped_consumer_that_was_away_too_long_is_told(bench):
    bench.topic("orders", compact=True, partitions=2)
    bench.send("orders", ("a", "1"), ("b", "1"), partition=[0, 1])
    away_since = bench.clock()
    bench.send("orders", ("a", None), partition=[0])
    bench.clock.advance(DAY_MS)
    bench.log.compact("orders")
    assert bench.log.tombstones_dropped({"orders": {0: 1, 1: 1}}, since_ms=away_since) == {"orders": {0: 2}}


def test_tombstones_dropped_consumer_that_has_read_them_or_starts_anew_is_not_told(bench):
    bench.topic("orders", compact=True)
    bench.send("orders", ("a", "1"), ("a", None), ("b", "1"))
    bench.clock.advance(DAY_MS)
    bench.log.compact("orders")
    assert bench.log.tombstones_dropped({"orders": {0: 2}}, since_ms=0) == {}
    assert bench.log.tombstones_dropped({"orders": {0: 0}}, since_ms=0) == {}
    assert bench.log.tombstones_dropped({"orders": {0: 1}}, since_ms=bench.clock()) == {}
