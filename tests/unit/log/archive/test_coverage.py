from __future__ import annotations

import pytest

from everstate.generations.state.past import covered
from everstate.log.archive.files import partition_folder
from everstate.log.archive.reading import load


def coverage(shelf, topic="t"):
    return covered(shelf.log, shelf.log.describe(topic), load(shelf.log, "svc", shelf.home, topic))


def test_topic_without_archive_misses_what_has_expired(shelf):
    shelf.topic("t", partitions=2)
    shelf.send("t", 7)
    shelf.expire("t")
    shelf.send("t", 3)
    found = coverage(shelf)
    assert (found.start, found.missing, found.records, found.archived) == ({0: 7, 1: 0}, 7, 3, 0)


def test_archive_fills_in_what_has_expired(shelf):
    shelf.topic("t", partitions=2)
    shelf.send("t", 7)
    shelf.send("t", 2, partition=1)
    shelf.archive("t")
    shelf.expire("t")
    shelf.send("t", 3)
    found = coverage(shelf)
    assert (found.start, found.missing, found.records, found.archived) == ({0: 0, 1: 0}, 0, 12, 9)


def test_archive_that_began_late_misses_what_was_before_it(shelf):
    shelf.topic("t")
    shelf.send("t", 7)
    shelf.expire("t")
    shelf.send("t", 3)
    shelf.archive("t")
    shelf.expire("t")
    found = coverage(shelf)
    assert (found.start, found.missing, found.records, found.archived) == ({0: 7}, 7, 3, 3)


@pytest.mark.parametrize("noticed", [False, True])
def test_gap_between_archive_and_topic_is_missing(shelf, noticed):
    shelf.topic("t")
    shelf.send("t", 7)
    shelf.archive("t")
    shelf.send("t", 4)
    shelf.expire("t")
    shelf.send("t", 3)
    if noticed:
        shelf.archive("t")
    found = coverage(shelf)
    assert (found.start, found.missing, found.gaps) == ({0: 0}, 4, {0: ((7, 11),)})
    assert (found.records, found.archived) == (10, 7)


def test_archive_files_that_are_gone_are_missing(shelf):
    shelf.topic("t")
    shelf.send("t", 9)
    shelf.archive("t", most=3)
    shelf.expire("t")
    names = [file.name for file in load(shelf.log, "svc", shelf.home, "t").partition(0).files]
    (partition_folder(shelf.home, "t", 0) / names[1]).unlink()
    assert coverage(shelf).gaps == {0: ((3, 6),)}
    (partition_folder(shelf.home, "t", 0) / names[0]).unlink()
    assert (coverage(shelf).start, coverage(shelf).missing) == ({0: 6}, 6)


def test_compacted_topic_whose_archive_has_all_lacks_no_superseded_record(shelf):
    shelf.topic("t", compact=True, retention_ms=None)
    shelf.send("t", 6, keys=[b"a", b"b"])
    shelf.archive("t")
    shelf.send("t", 2, keys=[b"a", b"b"])
    shelf.log.compact("t")
    found = coverage(shelf)
    assert (found.records, found.archived, found.kept, found.missing) == (2, 0, 6, 0)
    assert found.superseded == 0


def test_compacted_topic_that_lost_records_before_they_were_archived_says_so(shelf):
    shelf.topic("t", compact=True, retention_ms=None)
    shelf.send("t", 6, keys=[b"a", b"b"])
    shelf.log.compact("t")
    shelf.archive("t")
    assert coverage(shelf).superseded == 4
    shelf.send("t", 6, keys=[b"a", b"b"])
    shelf.log.compact("t")
    found = coverage(shelf)
    assert (found.superseded, found.records, found.kept) == (8, 2, 2)


def test_compacted_topic_with_retention_needs_an_archive_that_knows_all_deletions(shelf):
    """A key of the archive that was deleted while nobody archived must not come back to life."""
    shelf.topic("t", compact=True, delete_retention_ms=0)
    shelf.send("t", 2, keys=[b"a", b"b"])
    shelf.archive("t")
    assert coverage(shelf).missing == 0
    tombstone(shelf, b"a")
    shelf.now_ms += 1
    shelf.log.compact("t")
    shelf.archive("t")
    assert coverage(shelf).missing == 0  # the topic itself has all that is needed
    shelf.expire("t")
    shelf.send("t", 1, keys=[b"c"])
    assert coverage(shelf).missing == 1


def tombstone(shelf, key):
    import polars as pl

    shelf.log.append("t", pl.DataFrame({"key": [key], "value": [None], "ts": [shelf.now_ms]}))
