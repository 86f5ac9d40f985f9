from __future__ import annotations

import polars as pl

from everstate.log.embedded import segments
from everstate.log.embedded.manifest.catalogue import topic_named
from everstate.log.embedded.upkeep import compaction, merging


def test_merge_many_small_segments_become_one_with_the_same_records(log):
    log.topic("events")
    for number in range(70):
        log.send("events", (b"k", b"%d" % number))
    assert len(log.segments("events")) < 2 * merging.FANOUT
    before = log.read("events", 0, 0)
    assert before["value"].to_list() == [b"%d" % number for number in range(70)]
    log.compact("events")
    assert len(log.segments("events")) == 1
    assert log.read("events", 0, 0).equals(before)
    log.send("events", (b"k", b"last"))
    assert log.read("events", 0, 69)["value"].to_list() == [b"69", b"last"]
    assert not log.maintain("events")


def test_merge_keeps_headers_where_some_records_have_them(log):
    log.topic("events")
    log.send("events", (b"k", b"1"))
    headers = pl.Series([[{"name": "h", "value": b"x"}]])
    log.append("events", pl.DataFrame({"key": [b"k"], "value": [b"2"]}).with_columns(headers=headers))
    log.compact("events")
    assert log.read("events", 0, 0)["headers"].to_list() == [None, [{"name": "h", "value": b"x"}]]


def test_compact_lost_race_leaves_the_winner_and_no_file(log):
    log.topic("orders", compact=True)
    log.send("orders", (b"a", b"1"))
    log.send("orders", (b"a", b"2"))
    with log._store.manifest.reading() as database:
        topic = topic_named(database, "orders")
        stored = compaction._stretches(database, topic, 0)[0]
    frames = compaction._frames(log._store, compaction.Place("orders", 0), stored, compaction._STORED)
    mine = compaction._rewrite(log._store, topic, frames, stored)
    log.compact("orders")
    files = log.files()
    assert not compaction.Swap(topic, 0, stored, mine).apply(log._store)
    assert len(log.files()) == len(files) - 1
    assert log.read("orders", 0, 0)["value"].to_list() == [b"2"]


def test_compact_output_of_bounded_size_goes_on_in_another_segment(log, monkeypatch):
    monkeypatch.setattr(compaction, "_SEGMENT_BYTES", 1)
    for module in (compaction, segments):
        monkeypatch.setattr(module, "BLOCK_RECORDS", 10)
    log.topic("orders", compact=True)
    for _ in range(2):
        log.send("orders", *[(b"%d" % number, b"v") for number in range(25)])
    log.compact("orders")
    assert len(log.segments("orders")) > 1
    assert log.read("orders", 0, 0)["offset"].to_list() == list(range(25, 50))


def test_compact_everything_deleted_long_ago_leaves_an_empty_topic_with_its_offsets(log):
    log.topic("orders", compact=True)
    log.send("orders", (b"a", b"1"), (b"a", None))
    log.now_ms += 86_400_000
    log.compact("orders")
    assert log.describe("orders").records == 0
    assert log.end_offsets(["orders"]) == {"orders": {0: 2}}
    log.send("orders", (b"b", b"1"))
    assert log.read("orders", 0, 0)["offset"].to_list() == [2]


def test_compact_while_a_reader_is_on_its_way_the_reader_finds_its_records(log):
    log.topic("orders", compact=True)
    for number in range(4):
        log.send("orders", (b"%d" % number, b"v"), (b"x", b"%d" % number))
    from everstate.log.embedded.reading import Place, scan

    frames = scan(log._store, Place("orders", 0), 0, 8)
    seen = [next(frames)]
    log.compact("orders")
    log.now_ms += 3_600_000
    log.compact("orders")
    seen += list(frames)
    assert pl.concat(seen)["offset"].to_list() == [0, 1, 2, 4, 6, 7]
