from __future__ import annotations

import polars as pl
import pytest

from everstate.errors import FencedError, LogError
from everstate.generations.deploy.leases import Leases
from everstate.generations.state.archiving import Archiving, Archivist
from everstate.log import EmbeddedLog
from everstate.log.archive.files import FOLDER, partition_folder
from everstate.log.archive.reading import named
from tests.unit.log.archive.conftest import Shelf


@pytest.fixture
def shelf(tmp_path):
    shelf = Shelf(tmp_path)
    yield shelf
    shelf.log.close()


def archived(shelf, topic="t", partition=0):
    """All that the archive's files hold, as they are read by whoever knows Parquet."""
    part = named(shelf.log, "svc", topic).partition(partition)
    folder = partition_folder(shelf.home, topic, partition)
    return pl.concat([pl.read_parquet(folder / file.name) for file in part.files])


def test_archive_has_every_record_once_with_all_that_the_log_knows(shelf):
    shelf.topic("t", partitions=2)
    headers = [[{"name": "h", "value": b"1"}]]
    frame = pl.DataFrame({"key": [b"k"], "value": [b"v"], "ts": [7], "headers": headers, "partition": [1]})
    shelf.log.append("t", frame)
    shelf.archive("t")
    found = archived(shelf, partition=1)
    assert found.columns == ["key", "value", "ts", "headers", "offset", "appended"]
    assert found.row(0) == (b"k", b"v", 7, headers[0], 0, shelf.now_ms)


def test_archive_in_small_files_has_every_record_once(shelf):
    shelf.topic("t", partitions=2)
    shelf.send("t", 10)
    shelf.send("t", 3, partition=1)
    shelf.archive("t", most=4)
    shelf.send("t", 5)
    shelf.archive("t", most=4)
    shelf.archive("t", most=4)
    assert archived(shelf)["offset"].to_list() == list(range(15))
    assert archived(shelf, partition=1)["offset"].to_list() == [0, 1, 2]
    assert len(shelf.files()) == len(named(shelf.log, "svc", "t").files)


def test_archive_of_a_compacted_topic_covers_offsets_that_are_gone(shelf):
    shelf.topic("t", compact=True, retention_ms=None)
    shelf.send("t", 9, keys=[b"a"])
    shelf.log.compact("t")
    shelf.archive("t")
    part = named(shelf.log, "svc", "t").partition(0)
    assert (part.begin, part.end, part.records, part.lost) == (0, 9, 1, ())
    shelf.archive("t")
    assert named(shelf.log, "svc", "t").partition(0) == part


def test_archive_after_a_loss_goes_on_and_remembers_it(shelf):
    shelf.topic("t")
    shelf.send("t", 4)
    shelf.archive("t")
    shelf.send("t", 4)
    shelf.expire("t")
    shelf.send("t", 4)
    shelf.archive("t")
    part = named(shelf.log, "svc", "t").partition(0)
    assert part.lost == part.gaps(0, 12) == ((4, 8),)
    assert archived(shelf)["offset"].to_list() == [0, 1, 2, 3, 8, 9, 10, 11]


@pytest.mark.slow
def test_archive_merges_small_files_and_loses_nothing(shelf):
    shelf.topic("t")
    for _ in range(100):
        shelf.send("t", 1)
        shelf.archive("t")
    assert archived(shelf)["offset"].to_list() == list(range(100))
    assert len(shelf.files()) == len(named(shelf.log, "svc", "t").files) < 25


def test_archivist_that_was_replaced_changes_nothing(shelf):
    shelf.topic("t")
    shelf.send("t", 4)
    shelf.archive("t")
    shelf.send("t", 4)
    late = shelf.archivist()
    shelf.lease = shelf.log.acquire("svc", take_over=True)
    before = shelf.files()
    with pytest.raises(FencedError):
        late.archive("t")
    assert shelf.files() == before
    shelf.archive("t")
    assert archived(shelf)["offset"].to_list() == list(range(8))


def test_tidy_removes_what_nobody_names_but_nothing_of_a_successor(shelf):
    shelf.topic("t")
    shelf.send("t", 4)
    shelf.archive("t")
    folder = partition_folder(shelf.home, "t", 0)
    token = shelf.lease.token
    for name in (f"4-9.{token}.parquet", f"4-9.{token}.parquet.partial", f"4-9.{token + 1}.parquet", "notes.txt"):
        (folder / name).touch()
    shelf.archivist().tidy("t")
    kept = [f"{FOLDER}/t/0/{name}" for name in (f"0-4.{token}.parquet", f"4-9.{token + 1}.parquet", "notes.txt")]
    assert shelf.files() == sorted(kept)


@pytest.mark.parametrize("records", [2, 20])
def test_topic_that_was_made_anew_is_not_mixed_with_the_old_one(shelf, records):
    shelf.topic("t")
    shelf.send("t", 9)
    shelf.archive("t")
    shelf.log.delete_topic("t")
    shelf.topic("t")
    shelf.send("t", records)
    with pytest.raises(LogError, match="created again") as caught:
        shelf.archive("t")
    assert f"delete {shelf.home / FOLDER / 't'}" in caught.value.hint
    for path in partition_folder(shelf.home, "t", 0).iterdir():
        path.unlink()
    shelf.archive("t")
    assert archived(shelf)["offset"].to_list() == list(range(records))


def test_archiving_thread_archives_at_start_and_at_its_stop(shelf):
    shelf.topic("t")
    shelf.send("t", 4)
    thread = Archiving(shelf.archivist(), ["missing", "t"], seconds=3600)
    thread.start()
    thread.stop()
    shelf.send("t", 2)
    thread = Archiving(shelf.archivist(), ["t"], seconds=0.01)
    thread.start()
    shelf.send("t", 2)
    thread.stop()
    assert archived(shelf)["offset"].to_list() == list(range(8))


def test_archiving_thread_that_was_replaced_ends_without_a_word(shelf, caplog):
    shelf.topic("t")
    shelf.send("t", 4)
    thread = Archiving(shelf.archivist(), ["t"], seconds=0.01)
    shelf.log.acquire("svc", take_over=True)
    thread.start()
    thread.stop()
    assert not named(shelf.log, "svc", "t").files
    assert not caplog.records


def test_archiving_thread_says_what_went_wrong_and_goes_on_with_the_others(shelf, caplog):
    for topic in ("a", "b"):
        shelf.topic(topic)
        shelf.send(topic, 3)
    shelf.home.mkdir(parents=True)
    (shelf.home / FOLDER).mkdir()
    (shelf.home / FOLDER / "a").write_text("in the way")
    thread = Archiving(shelf.archivist(), ["a", "b"], seconds=3600)
    thread.start()
    thread.stop()
    assert "Topic a could not be archived" in caplog.text
    assert archived(shelf, "b")["offset"].to_list() == [0, 1, 2]


def test_archivist_goes_by_the_services_own_lease(tmp_path):
    log = EmbeddedLog(tmp_path / "log")
    lease = log.acquire("svc")
    log.create_topic("t")
    log.append("t", pl.DataFrame({"value": [b"x"], "ts": [0]}))
    Archivist(log, lease, tmp_path / "state").archive("t")
    assert named(log, "svc", "t").files
    assert not named(log, "other", "t").files
    log.close()


def test_leases_archive_while_they_are_held(shelf):
    shelf.log.release(shelf.lease)
    shelf.topic("t")
    shelf.send("t", 2)
    leases = Leases(
        shelf.log,
        "svc",
        60,
        lambda error: None,
        [],
        lambda lease: Archiving(Archivist(shelf.log, lease, shelf.home), ["t"], seconds=3600),
    )
    leases.take_building()
    leases.give_building_back()
    assert not shelf.files()
    leases.take_publishing()
    shelf.send("t", 2)
    leases.release()
    assert archived(shelf)["offset"].to_list() == [0, 1, 2, 3]
