from __future__ import annotations

import os
import subprocess
import sys

import polars as pl
import pytest

from everstate.errors import LogBusyError, TopicRecreatedError
from everstate.log import Commit, combined_digest, upkeep
from everstate.log.embedded import publishing
from everstate.log.embedded.upkeep import compaction, garbage, merging, tending

pytestmark = pytest.mark.slow

HOUR_MS = 3_600_000
DAY_MS = 86_400_000


def tiers(log, topic):
    return [merging.tier_of(segment.records, segment.size) for segment in log.segments(topic)]


def test_append_many_times_leaves_few_segments_and_files(log):
    log.topic("events", partitions=2)
    written = 0
    for number in range(300):
        rows = [{"key": b"k%d" % i, "value": b"%d" % number, "partition": i % 2} for i in range(1 + number % 3)]
        log.append("events", pl.DataFrame(rows, schema_overrides={"partition": pl.Int32}))
        written += len(rows)
        log.now_ms += 60_000
    assert len(log.segments("events")) < 2 * 3 * merging.FANOUT
    retired = garbage.RETIRED_GRACE_MS // 60_000
    assert len(log.files()) < len(log.segments("events")) + 2 * retired + 2 * merging.FANOUT
    found = [log.read("events", partition, 0) for partition in (0, 1)]
    assert sum(map(len, found)) == written
    for frame in found:
        assert frame["offset"].to_list() == list(range(len(frame)))


def test_append_a_record_is_rewritten_once_per_tier(log, monkeypatch):
    log.topic("events")
    rewritten = []
    original = compaction._rewrite

    def counting(store, topic, frames, replaced):
        rewritten.append(sum(item.segment.records for item in replaced))
        return original(store, topic, frames, replaced)

    monkeypatch.setattr(compaction, "_rewrite", counting)
    for number in range(600):
        log.send("events", (b"k", b"%d" % number))
    assert sum(rewritten) <= 2 * 600 + 600
    assert max(tiers(log, "events")) == 2


def test_runs_large_values_count_by_their_bytes(log):
    log.topic("events")
    for number in range(20):
        log.send("events", (b"%d" % number, os.urandom(1 << 20)))
    assert max(segment.size for segment in log.segments("events")) < 20 << 20
    assert log.read("events", 0, 0)["key"].to_list() == [b"%d" % number for number in range(20)]


def test_merge_spans_no_more_than_a_share_of_the_retention(log):
    log.topic("events", retention_ms=8 * HOUR_MS)
    for number in range(400):
        log.send("events", (b"k", b"%d" % number))
        log.now_ms += HOUR_MS // 20
    begin = log.begin_offsets(["events"])["events"][0]
    assert 400 - 20 * 8 - 20 * 2 <= begin <= 400 - 20 * 8 + 1
    assert len(log.segments("events")) < 8 * merging.FANOUT


def test_append_to_a_table_compacts_it_beside_the_appends(log, monkeypatch):
    monkeypatch.setattr(upkeep, "MIN_DIRTY_RECORDS", 50)
    log.topic("table", compact=True)
    for number in range(100):
        log.send("table", *[(b"%d" % key, b"%d" % number) for key in range(5)])
    log._tender.finish()
    assert log.describe("table").records < 250
    assert dict(log.latest("table").select("key", "value").iter_rows()) == {b"%d" % key: b"99" for key in range(5)}


def test_maintain_of_a_topic_that_has_many_new_segments_at_every_look_merges_those_of_all_tiers(log):
    log.topic("events")
    for number in range(400):
        # As a service commits: whoever appends would tend the topic itself.
        publishing.append(log._store, "events", pl.DataFrame({"key": [b"k"], "value": [b"%d" % number]}))
        if number % 20 == 19:
            log.maintain("events")
    assert len(log.segments("events")) <= merging.FANOUT
    assert log.read("events", 0, 0)["value"].to_list() == [b"%d" % number for number in range(400)]


def test_append_behind_the_last_batch_of_an_output_leaves_few_segments(log):
    log.topic("totals", compact=True)
    lease = log.acquire("retired")
    frame = pl.DataFrame({"key": [b"k"], "value": [b"v"], "ts": [5]})
    for number in range(2):
        staged = log.stage_all("totals", frame)
        batch = Commit(
            service="retired",
            output="totals",
            generation="1",
            query_id="q",
            batch_id=number,
            start={"orders": {0: number}},
            end={"orders": {0: number + 1}},
            digest=combined_digest(staged),
            token=lease.token,
        )
        log.commit(batch, staged)
    for number in range(100):
        log.send("totals", (b"%d" % (number % 3), b"%d" % number))
    assert len(log.segments("totals")) < 2 * merging.FANOUT
    assert log.commit(batch, log.stage_all("totals", frame)).status == "skipped"
    assert log.read("totals", 0, 0).height == 102


def test_maintain_a_table_of_new_keys_alone_is_looked_through_once(log, monkeypatch):
    monkeypatch.setattr(upkeep, "MIN_DIRTY_RECORDS", 50)
    log.topic("table", compact=True)
    log.append("table", pl.DataFrame({"key": [b"%d" % n for n in range(100)], "value": [b"v"] * 100}))
    looked = []
    original = compaction._key_frames
    monkeypatch.setattr(compaction, "_key_frames", lambda *given: looked.append(given) or original(*given))
    for _ in range(3):
        log.maintain("table")
    assert len(looked) <= 1


def test_append_upkeep_that_fails_is_told_and_the_records_stay(log, caplog):
    log.topic("events")
    log.send("events", (b"k", b"0"))
    log.files()[0].write_bytes(b"damaged")
    for number in range(1, 40):
        log.send("events", (b"k", b"%d" % number))
    assert "could not be tidied up" in caplog.text
    assert log.read("events", 0, 1)["value"].to_list() == [b"%d" % number for number in range(1, 40)]


def test_tender_looks_at_the_first_append_of_a_process(log):
    log.topic("events")
    for number in range(40):
        log._tender = tending.Tender(log._store)
        log.send("events", (b"k", b"%d" % number))
    assert len(log.segments("events")) < merging.FANOUT * 2


def test_split_whose_file_was_merged_away_is_found_again(log):
    log.topic("events")
    for number in range(10):
        log.send("events", (b"k", b"%d" % number))
    splits = log.splits("events", 0, 0, 10, max_records=3)
    log.compact("events")
    log.now_ms += garbage.RETIRED_GRACE_MS
    garbage.collect(log._store)
    assert len(log.files()) == 1
    assert [value for split in splits for value in log.read_split(split)["value"]] == [b"%d" % n for n in range(10)]


def test_split_whose_tombstones_were_dropped_before_it_was_read_is_refused(log):
    log.topic("orders", compact=True)
    log.send("orders", (b"a", b"1"), (b"b", b"1"))
    log.send("orders", (b"a", None))
    first, second = log.splits("orders", 0, 0, 3, max_records=2)
    assert log.read_split(first)["key"].to_list() == [b"a", b"b"]
    for _ in range(2):  # the second time the files of the first are old enough to go
        log.now_ms += DAY_MS + garbage.RETIRED_GRACE_MS
        log.compact("orders")
    with pytest.raises(LogBusyError, match=r"'orders', partition 0 was compacted .* offsets 2 to 2"):
        log.read_split(second)


def test_split_of_a_topic_that_was_created_again_is_refused(log):
    log.topic("events")
    log.send("events", (b"k", b"old"))
    [split] = log.splits("events", 0, 0, 1, max_records=10)
    log.delete_topic("events")
    log.topic("events")
    log.send("events", (b"k", b"new"))
    with pytest.raises(TopicRecreatedError, match="'events' was deleted and created again"):
        log.read_split(split)


def test_processes_that_append_and_tend_at_once_lose_nothing(log):
    log.topic("events", partitions=2)
    code = (
        "import sys, polars as pl\n"
        "from everstate.log import EmbeddedLog\n"
        "log = EmbeddedLog(sys.argv[1])\n"
        "for number in range(60):\n"
        "    keys = [f'{sys.argv[2]}-{number}-{part}'.encode() for part in range(3)]\n"
        "    log.append('events', pl.DataFrame({'key': keys, 'value': keys}))\n"
        "    if number % 20 == 19: log.compact('events')\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", code, str(log.path), str(number)]) for number in range(2)]
    seen = 0
    while any(process.poll() is None for process in processes):
        for partition in (0, 1):
            offsets = log.read("events", partition, 0)["offset"].to_list()
            assert offsets == list(range(len(offsets)))
            seen += 1
    assert [process.returncode for process in processes] == [0, 0]
    keys = [key for partition in (0, 1) for key in log.read("events", partition, 0)["key"]]
    assert len(keys) == len(set(keys)) == 360
    assert len(log.segments("events")) < 4 * merging.FANOUT
    assert seen
