"""A log of the first format goes on in this one."""

from __future__ import annotations

import shutil
import sqlite3
import tarfile
from pathlib import Path

import pytest

from everstate.errors import LogError, ManifestDamagedError
from everstate.log import Commit, EmbeddedLog, TopicConfig, combined_digest
from everstate.log.embedded.manifest import schema

FIXTURES = Path(__file__).parents[4] / "fixtures"
NOW_MS = 1_700_000_100_000


@pytest.fixture
def old(tmp_path):
    with tarfile.open(FIXTURES / "log_format_1.tar.gz") as archive:
        archive.extractall(tmp_path / "log", filter="data")
    return tmp_path / "log"


def opened(folder):
    return EmbeddedLog(folder, clock=lambda: NOW_MS)


def test_log_of_format_1_keeps_topics_records_commits_and_documents(old):
    log = opened(old)
    assert log.topics() == ["orders", "table"]
    assert log.describe("orders").config == TopicConfig(partitions=2, retention_ms=864_000_000_000)
    assert log.describe("orders").end == {0: 8, 1: 13}
    assert [log.read("orders", partition, 0).height for partition in (0, 1)] == [8, 13]
    assert log.latest("table")["value"].to_list() == [b"0", b"1", b"2", b"2"]
    assert list(log.order("shop", "table", ["orders"])) == [
        {"orders": {0: 2 * number, 1: 3 * number}} for number in (1, 2, 3)
    ]
    assert log.last_commit("shop", "table").batch_id == 2
    assert log.last_commit("shop", "table", "g2").batch_id == 1
    assert log.metas("shop") == {"generations/table": '{"hello": "world"}', "x": "1"}


def test_log_of_format_1_goes_on_where_it_was(old):
    log = opened(old)
    lease = log.acquire("shop", take_over=True)
    assert lease.token == 2
    staged = log.stage_all("table", log.latest("table").head(1).drop("offset", "partition"))
    identity = {"service": "shop", "output": "table", "generation": "g1", "query_id": "q1", "token": lease.token}
    start, end = {"orders": {0: 6, 1: 9}}, {"orders": {0: 8, 1: 12}}
    commit = Commit(**identity, batch_id=3, start=start, end=end, digest=combined_digest(staged))
    assert log.commit(commit, staged).status == "committed"
    assert len(log.order("shop", "table", ["orders"])) == 4
    log.create_topic("new")
    assert "topics/000004-new" in {row.folder for row in topic_rows(log)}  # the number of the deleted topic stays used
    log.close()
    assert opened(old).topics() == ["new", "orders", "table"]


def topic_rows(log):
    from everstate.log.embedded.manifest import catalogue

    with log._store.manifest.reading() as database:
        return [catalogue.topic_named(database, name) for name in catalogue.names(database)]


def test_log_of_format_1_topics_get_ids_that_stay(old):
    log = opened(old)
    ids = log.topic_ids(["orders", "table"])
    assert len(set(ids.values())) == 2
    log.close()
    assert opened(old).topic_ids(["orders", "table"]) == ids


def test_log_of_format_1_that_is_damaged_is_refused_and_left_as_it_is(old):
    path = old / "manifest.db"
    content = bytearray(path.read_bytes())
    content[4096 * 3 : 4096 * 5] = bytes(8192)
    path.write_bytes(content)
    with pytest.raises(ManifestDamagedError):
        opened(old)
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA user_version").fetchone()[0] == 1
    database.close()


def test_log_of_this_format_that_says_it_is_older_is_refused(tmp_path):
    log = opened(tmp_path / "log")
    log.create_topic("orders")
    log.close()
    with sqlite3.connect(tmp_path / "log" / "manifest.db") as database:
        database.execute("PRAGMA user_version=1")
    database.close()
    with pytest.raises(ManifestDamagedError):
        opened(tmp_path / "log")


def test_log_of_a_later_format_is_refused_by_name(old):
    with sqlite3.connect(old / "manifest.db") as database:
        database.execute(f"PRAGMA user_version={schema.FORMAT + 1}")
    database.close()
    with pytest.raises(LogError, match=f"has format {schema.FORMAT + 1}"):
        opened(old)


def test_log_of_format_1_without_its_manifest_is_refused(old):
    (old / "manifest.db").unlink()
    with pytest.raises(ManifestDamagedError, match="has lost its manifest"):
        opened(old)
    shutil.rmtree(old / "topics")
    assert opened(old).topics() == []
