from __future__ import annotations

import multiprocessing
import pickle
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from everstate.errors import LogError
from everstate.log import EmbeddedLog
from everstate.log.embedded.manifest import manifest


def test_manifest_every_connection_is_durable_and_waits(log):
    log.topic("orders")
    with log._store.manifest.reading() as database:
        assert database.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert database.execute("PRAGMA synchronous").fetchone()[0] == 2
        assert database.execute("PRAGMA busy_timeout").fetchone()[0] == 30_000
        assert database.execute("PRAGMA foreign_keys").fetchone()[0] == 1


def test_manifest_threads_have_connections_of_their_own(log):
    log.topic("orders")
    threads = [threading.Thread(target=log.send, args=("orders", (b"k", b"v"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log.read("orders", 0, 0)["offset"].to_list() == list(range(8))


def test_manifest_threads_that_have_ended_leave_no_file_open(log):
    log.topic("orders")
    files = []
    for _ in range(20):
        thread = threading.Thread(target=log.topics)
        thread.start()
        thread.join()
        files.append(len(list(Path("/proc/self/fd").iterdir())))
    assert files[-1] <= files[1]


def in_forked_child(function, *arguments):
    """Run something in a fork; not with frames, since Polars' threads do not survive one."""
    process = multiprocessing.get_context("fork").Process(target=function, args=arguments)
    process.start()
    return process


def test_manifest_forked_child_opens_its_own_connection(log):
    log.topic("parent")
    child = in_forked_child(use_and_close, log)
    child.join(60)
    assert child.exitcode == 0
    log.topic("again")
    assert log.topics() == ["again", "child", "parent"]


def use_and_close(log):
    inherited = list(log._store.manifest._open)
    log.create_topic("child")
    assert not set(map(id, log._store.manifest._open)) & set(map(id, inherited))
    log.close()


@pytest.mark.slow
def test_manifest_many_processes_append_at_once_nothing_is_lost(tmp_path, log):
    log.topic("orders", partitions=2)
    code = (
        "import sys, polars as pl\n"
        "from everstate.log import EmbeddedLog\n"
        "log = EmbeddedLog(sys.argv[1])\n"
        "for number in range(20):\n"
        "    keys = [f'{sys.argv[2]}-{number}-{part}'.encode() for part in range(5)]\n"
        "    log.append('orders', pl.DataFrame({'key': keys, 'value': keys}))\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", code, str(log.path), str(number)]) for number in range(3)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0]
    ends = log.end_offsets(["orders"])["orders"]
    assert sum(ends.values()) == 300
    for partition, end in ends.items():
        assert log.read("orders", partition, 0)["offset"].to_list() == list(range(end))
    assert len(log.latest("orders")) == 300


def test_manifest_many_processes_create_the_log_at_once(tmp_path):
    processes = [in_forked_child(create, tmp_path / "new", f"topic-{number}") for number in range(6)]
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 6
    assert len(EmbeddedLog(tmp_path / "new").topics()) == 6


def create(path, topic):
    EmbeddedLog(path).create_topic(topic)


def test_log_pickled_opens_the_same_folder(log):
    log.topic("orders")
    plain = pickle.loads(pickle.dumps(EmbeddedLog(log.path)))
    assert plain.topics() == ["orders"]
    plain.close()


def test_log_closed_opens_again_when_used(log):
    log.topic("orders")
    log.close()
    assert log.topics() == ["orders"]


def test_log_in_a_place_that_cannot_be_written_is_refused_by_name(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LogError, match=r"folder .* cannot be used"):
        EmbeddedLog(tmp_path / "file")


def test_manifest_damaged_database_is_named(log):
    log.topic("orders")
    log.close()
    database = log.path / "manifest.db"
    for side in ("manifest.db-wal", "manifest.db-shm"):
        (log.path / side).unlink(missing_ok=True)
    database.write_bytes(b"this is not a database" * 1000)
    with pytest.raises(LogError, match=r"manifest .*manifest\.db is damaged"):
        EmbeddedLog(log.path).topics()


def test_manifest_of_another_format_is_refused(log):
    log.topic("orders")
    log.close()
    with sqlite3.connect(log.path / "manifest.db") as database:
        database.execute("PRAGMA user_version=99")
    database.close()
    with pytest.raises(LogError, match="has format 99; this version of Everstate reads format"):
        EmbeddedLog(log.path)


def test_manifest_locked_for_too_long_is_named(log, monkeypatch):
    log.topic("orders")
    log.close()
    monkeypatch.setattr(manifest, "BUSY_SECONDS", 0.1)
    other = sqlite3.connect(log.path / "manifest.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LogError, match=r"stayed locked for 0\.1 s"):
        log.send("orders", (b"a", b"1"))
    other.execute("ROLLBACK")
    other.close()
    log.send("orders", (b"a", b"1"))
