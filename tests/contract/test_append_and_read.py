from __future__ import annotations

import polars as pl
import pytest

from everstate.errors import LogError, OffsetOutOfRangeError
from everstate.log.records import SCHEMA
from everstate.schema.partitioner import partition_of


def test_append_records_come_back_in_order_with_offsets(bench):
    bench.topic("orders")
    bench.send("orders", ("a", "1", 5), ("b", None, 6))
    bench.send("orders", ("a", "", 4))
    found = bench.records("orders")
    assert [(r.key, r.value, r.ts) for r in found] == [(b"a", b"1", 5), (b"b", None, 6), (b"a", b"", 4)]
    assert [r.offset for r in found] == sorted({r.offset for r in found})
    assert found[0].offset == 0
    assert found[-1].offset < bench.log.end_offsets(["orders"])["orders"][0]


@pytest.mark.needs("dense")
def test_append_offsets_follow_each_other(bench):
    bench.topic("orders")
    bench.send("orders", ("a", "1"), ("b", None))
    bench.send("orders", ("a", ""))
    assert bench.offsets("orders") == [0, 1, 2]
    assert bench.log.end_offsets(["orders"]) == {"orders": {0: 3}}


def test_append_null_value_and_empty_value_stay_apart(bench):
    bench.topic("orders")
    bench.send("orders", ("k", None), ("k", ""))
    assert bench.values("orders") == [("k", None), ("k", "")]


def test_append_without_timestamp_takes_the_time_of_the_log(bench):
    bench.topic("orders")
    before = bench.clock()
    bench.send("orders", ("a", "1"))
    assert before <= bench.records("orders")[0].ts <= bench.clock()


def test_append_headers_come_back_as_they_were(bench):
    bench.topic("orders")
    headers = [[{"name": "x", "value": b"\xff"}, {"name": "x", "value": None}], None, []]
    bench.log.append("orders", pl.DataFrame({"key": [b"a", b"b", b"c"], "value": [b"1"] * 3, "headers": headers}))
    assert [record.headers for record in bench.records("orders")] == [(("x", b"\xff"), ("x", None)), (), ()]


def test_append_no_records_changes_nothing(bench):
    bench.topic("orders")
    bench.send("orders")
    assert bench.log.describe("orders").end == {0: 0}


def test_append_keyed_records_go_where_kafka_would_put_them(bench):
    bench.topic("orders", partitions=5)
    keys = [f"key-{number}" for number in range(100)]
    bench.send("orders", *[(key, key) for key in keys])
    chosen = partition_of(pl.Series([key.encode() for key in keys], dtype=pl.Binary), 5).to_list()
    for partition in range(5):
        expected = [(key, key) for key, place in zip(keys, chosen, strict=True) if place == partition]
        assert bench.values("orders", partition) == expected


@pytest.mark.needs("dense")
def test_append_records_without_key_go_round_over_several_calls(bench):
    bench.topic("events", partitions=3)
    for number in range(9):
        bench.send("events", (None, str(number)))
    assert bench.log.end_offsets(["events"]) == {"events": {0: 3, 1: 3, 2: 3}}


def test_append_records_without_key_of_one_call_are_spread_evenly(bench):
    bench.topic("events", partitions=3)
    bench.send("events", *[(None, str(number)) for number in range(9)])
    assert [len(bench.records("events", number)) for number in range(3)] == [3, 3, 3]


def test_append_named_partition_is_obeyed(bench):
    bench.topic("orders", partitions=3)
    bench.send("orders", ("a", "1"), ("a", "2"), partition=[2, 0])
    assert [bench.values("orders", number) for number in range(3)] == [[("a", "2")], [], [("a", "1")]]


def test_append_unknown_partition_is_refused_and_nothing_written(bench):
    bench.topic("orders", partitions=2)
    with pytest.raises(LogError, match="there is no partition 2"):
        bench.send("orders", ("a", "1"), ("b", "2"), partition=[0, 2])
    assert bench.count("orders") == 0


def test_append_record_without_key_to_a_compacted_topic_is_refused(bench):
    bench.topic("orders", compact=True)
    with pytest.raises(LogError, match="needs a key; 1 have none"):
        bench.send("orders", ("a", "1"), (None, "2"))
    assert bench.count("orders") == 0


def test_append_unknown_column_is_refused(bench):
    bench.topic("orders")
    with pytest.raises(LogError, match="records have no column colour"):
        bench.log.append("orders", bench.frame(("a", "1")).with_columns(colour=pl.lit(1)))


def test_read_frame_has_the_columns_of_records(bench):
    bench.topic("orders")
    assert bench.log.read("orders", 0, 0).schema == SCHEMA
    bench.send("orders", ("a", "1"))
    assert bench.log.read("orders", 0, 0).schema == SCHEMA


def test_read_from_the_middle_with_limit_gives_that_part(bench):
    bench.topic("orders")
    for number in range(0, 10, 2):
        bench.send("orders", ("k", str(number)), ("k", str(number + 1)))
    offsets, end = bench.offsets("orders"), bench.log.end_offsets(["orders"])["orders"][0]
    assert bench.log.read("orders", 0, offsets[3], limit=4)["offset"].to_list() == offsets[3:7]
    assert bench.log.read("orders", 0, offsets[3], limit=0)["offset"].to_list() == []
    assert bench.log.read("orders", 0, end)["offset"].to_list() == []


def test_read_beyond_the_end_is_refused(bench):
    bench.topic("orders")
    with pytest.raises(OffsetOutOfRangeError, match="offset 1 of topic 'orders', partition 0 is not there yet"):
        bench.log.read("orders", 0, 1)


def test_read_unknown_partition_is_refused(bench):
    bench.topic("orders")
    with pytest.raises(LogError, match="topic 'orders' has no partition 1"):
        bench.log.read("orders", 1, 0)


@pytest.mark.parametrize("max_records", [1, 3, 4, 1000])
def test_splits_any_size_cover_the_range_once_in_order(bench, max_records):
    bench.topic("orders")
    for size in (1, 7, 4):
        bench.send("orders", *[("k", "v")] * size)
    offsets = bench.offsets("orders")
    first, last = offsets[2], offsets[10]
    parts = bench.log.splits("orders", 0, first, last + 1, max_records=max_records)
    frames = [bench.log.read_split(part) for part in parts]
    assert all(len(found) <= max_records for found in frames)
    assert pl.concat(frames)["offset"].to_list() == offsets[2:11]
    assert [part.start for part in parts[1:]] == [part.end for part in parts[:-1]]
    assert (parts[0].start, parts[-1].end) == (first, last + 1)


def test_splits_empty_range_gives_none(bench):
    bench.topic("orders")
    bench.send("orders", ("k", "v"))
    assert bench.log.splits("orders", 0, 1, 1, max_records=5) == []


def test_splits_beyond_the_end_are_refused(bench):
    bench.topic("orders")
    with pytest.raises(OffsetOutOfRangeError, match="the next record will get offset 0"):
        bench.log.splits("orders", 0, 0, 3, max_records=5)


@pytest.mark.needs("clock", "compact")
def test_read_split_after_a_compaction_gives_what_is_left_of_its_range(bench):
    bench.topic("orders", compact=True)
    bench.send("orders", ("a", "1"), ("b", "1"))
    bench.send("orders", ("a", "2"))
    parts = bench.log.splits("orders", 0, 0, 3, max_records=1)
    bench.log.compact("orders")
    bench.clock.advance(86_400_000)
    bench.log.compact("orders")
    assert pl.concat([bench.log.read_split(part) for part in parts])["offset"].to_list() == [1, 2]


def test_latest_gives_the_last_value_of_each_key_without_tombstones(bench):
    bench.topic("orders", partitions=2)
    bench.send("orders", ("a", "1"), ("b", "1"), ("c", "1"), (None, "x"))
    bench.send("orders", ("a", "2"), ("b", None))
    assert bench.table("orders") == {"a": "2", "c": "1"}


def test_latest_goes_by_offset_not_by_timestamp(bench):
    bench.topic("orders")
    bench.send("orders", ("a", "old", 2000), ("a", "new", 1000))
    assert bench.table("orders") == {"a": "new"}


def test_latest_empty_topic_gives_an_empty_frame(bench):
    bench.topic("orders")
    assert bench.log.latest("orders").schema == SCHEMA
    assert bench.table("orders") == {}


@pytest.mark.needs("clock", "compact")
def test_retention_old_records_go_and_readers_are_told(bench):
    bench.topic("events", retention_ms=3_600_000)
    bench.send("events", ("a", "1"), ("b", "2"))
    bench.clock.advance(2 * 3_600_000)
    bench.send("events", ("c", "3"))
    assert bench.log.begin_offsets(["events"]) == {"events": {0: 2}}
    assert bench.values("events") == [("c", "3")]
    with pytest.raises(OffsetOutOfRangeError, match="retention has deleted everything before offset 2"):
        bench.log.read("events", 0, 1)


@pytest.mark.needs("clock", "compact")
def test_retention_everything_old_leaves_an_empty_topic_that_goes_on_counting(bench):
    bench.topic("events", retention_ms=1)
    bench.send("events", ("a", "1"))
    bench.clock.advance(3_600_000)
    bench.log.compact("events")
    assert bench.log.describe("events").start == bench.log.describe("events").end == {0: 1}


@pytest.mark.needs("clock", "compact")
def test_retention_record_with_an_old_timestamp_is_seen_before_it_goes(bench):
    bench.topic("events", retention_ms=1000)
    bench.send("events", ("a", "1", bench.clock() - 3_600_000))
    assert bench.values("events") == [("a", "1")]
    bench.clock.advance(600_000)
    bench.log.compact("events")
    assert bench.values("events") == []
