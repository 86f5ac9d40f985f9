from __future__ import annotations

import polars as pl
import pytest

from everstate.errors import LogError
from everstate.log import Commit, combined_digest
from everstate.log.embedded.upkeep import garbage

HOUR_MS = 3_600_000
RECORDS = pl.DataFrame({"key": [b"a"], "value": [b"1"]})


def test_collect_staged_file_goes_when_it_is_a_day_old(log):
    log.topic("orders")
    log.stage_all("orders", RECORDS)
    [file] = log.files()
    log.now_ms += 23 * HOUR_MS
    garbage.collect(log._store)
    assert log.files() == [file]
    log.now_ms += 2 * HOUR_MS
    garbage.collect(log._store)
    assert log.files() == []


def test_collect_file_that_the_manifest_has_never_noted_stays(log):
    log.topic("orders")
    log.send("orders", (b"a", b"1"))
    foreign = log.files()[0].with_name("0" * 32 + ".arrows")
    foreign.write_bytes(b"records of a manifest that was lost")
    log.now_ms += 1000 * HOUR_MS
    log.delete_topic("orders")
    log.topic("orders")
    garbage.collect(log._store)
    assert log.files() == [foreign]


def test_collect_file_that_the_manifest_names_stays_whatever_its_age(log):
    log.topic("orders")
    log.send("orders", (b"a", b"1"))
    log.now_ms += 1000 * HOUR_MS
    garbage.collect(log._store)
    assert len(log.read("orders", 0, 0)) == 1


def test_collect_staged_file_that_went_cannot_be_committed(log):
    log.topic("orders")
    staged = log.stage_all("orders", RECORDS)
    log.now_ms += 25 * HOUR_MS
    garbage.collect(log._store)
    lease = log.acquire("s")
    batch = Commit(
        service="s",
        output="o",
        generation="g",
        query_id="q",
        batch_id=0,
        start={},
        end={},
        digest=combined_digest(staged),
        token=lease.token,
    )
    with pytest.raises(LogError, match="is gone, or its length"):
        log.commit(batch, staged)
    assert log.last_commit("s", "o") is None


def test_collect_replaced_files_stay_for_readers_on_their_way(log):
    log.topic("orders", compact=True)
    log.send("orders", (b"a", b"1"))
    log.send("orders", (b"a", b"2"))
    log.compact("orders")
    assert len(log.files()) == 3
    log.now_ms += garbage.RETIRED_GRACE_MS
    garbage.collect(log._store)
    assert len(log.files()) == 1


def test_collect_shared_file_stays_while_one_partition_uses_it(log):
    log.topic("orders", compact=True, partitions=2)
    log.append("orders", pl.DataFrame({"key": [b"a", b"b"], "value": [b"1", b"1"], "partition": [0, 1]}))
    log.append("orders", pl.DataFrame({"key": [b"a"], "value": [b"2"], "partition": [0]}))
    log.compact("orders")
    log.now_ms += garbage.RETIRED_GRACE_MS
    garbage.collect(log._store)
    assert dict(log.latest("orders").select("key", "value").iter_rows()) == {b"a": b"2", b"b": b"1"}
    assert len(log.files()) == 2


def test_delete_topic_files_and_folder_go_at_once(log):
    log.topic("orders")
    log.send("orders", (b"a", b"1"))
    log.delete_topic("orders")
    assert log.files() == []
    assert list((log.path / "topics").iterdir()) == []


def test_append_files_of_expired_records_go_from_a_topic_that_has_nothing_to_merge(log):
    log.topic("nightly", retention_ms=72 * HOUR_MS)
    for _ in range(40):
        log.send("nightly", (b"a", b"1"))
        log.now_ms += 12 * HOUR_MS
        log.maintain("nightly")  # as a service that reads it does
        log.now_ms += 12 * HOUR_MS
    assert log.begin_offsets(["nightly"])["nightly"][0] > 30
    assert len(log.files()) < 8


def test_delete_topic_of_very_many_files_leaves_none(log, monkeypatch):
    monkeypatch.setattr(garbage, "_FILES_A_TRANSACTION", 1)
    log.topic("orders")
    with log._store.manifest.writing() as database:
        database.executemany(
            "INSERT INTO retired_files (file, retired_ms) VALUES (?, 0)", [(f"topics/gone/{n}",) for n in range(1100)]
        )
    garbage.collect(log._store)
    with log._store.manifest.reading() as database:
        assert database.execute("SELECT count(*) FROM retired_files").fetchone()[0] == 0
