from __future__ import annotations

import pytest

from everstate.errors import OffsetOutOfRangeError, SegmentDamagedError
from everstate.log.archive.files import partition_folder
from everstate.log.archive.reading import Past, load, named, read_split, splits
from everstate.log.records import SCHEMA


@pytest.fixture
def expired(shelf):
    """Offsets 0 to 9 only the archive has, 10 to 14 both, 15 to 19 only the topic."""
    shelf.topic("t")
    shelf.send("t", 10)
    shelf.archive("t", most=4)
    shelf.expire("t")
    shelf.send("t", 5)
    shelf.archive("t", most=4)
    shelf.send("t", 5)
    assert shelf.log.begin_offsets(["t"]) == {"t": {0: 10}}
    return shelf


@pytest.mark.parametrize(("start", "end"), [(0, 20), (3, 4), (7, 17), (10, 20), (19, 20), (0, 10), (5, 5)])
def test_reading_any_range_gives_every_record_once(expired, start, end):
    assert expired.values("t", start, end) == list(range(start, end))


@pytest.mark.parametrize("max_records", [1, 3, 1000])
def test_splits_have_at_most_so_many_records_and_follow_each_other(expired, max_records):
    found = splits(expired.log, expired.past(), "t", 0, 2, 18, max_records=max_records)
    assert all(split.end - split.start <= max_records for split in found)
    assert [split.start for split in found[1:]] == [split.end for split in found[:-1]]
    assert expired.values("t", 2, 18, max_records=max_records) == list(range(2, 18))


def test_records_from_archive_and_topic_have_the_same_columns(expired):
    frames = [read_split(expired.log, s) for s in splits(expired.log, expired.past(), "t", 0, 8, 12, max_records=9)]
    assert {tuple(frame.schema.items()) for frame in frames} == {tuple(SCHEMA.items())}


def test_topic_without_archive_is_read_as_it_is(shelf):
    shelf.topic("t")
    shelf.send("t", 5)
    assert shelf.values("t", 1, 4) == [1, 2, 3]
    shelf.expire("t")
    with pytest.raises(OffsetOutOfRangeError, match="offsets 1 to 3 of topic 't', partition 0 are gone"):
        shelf.values("t", 1, 4)


def test_offsets_beyond_the_end_are_refused_as_ever(expired):
    with pytest.raises(OffsetOutOfRangeError, match="not there yet"):
        expired.values("t", 18, 30)


def test_gap_that_nobody_knows_of_is_an_error_and_a_known_one_is_passed_over(shelf):
    shelf.topic("t")
    shelf.send("t", 5)
    shelf.archive("t")
    shelf.send("t", 5)
    shelf.expire("t")
    shelf.send("t", 5)
    with pytest.raises(OffsetOutOfRangeError, match="offsets 5 to 9"):
        shelf.values("t", 0, 15)
    known = {"t": {0: ((5, 10),)}}
    assert shelf.values("t", 0, 15, missing=known) == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]
    shelf.archive("t")
    assert shelf.values("t", 0, 15, missing=known) == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]
    with pytest.raises(OffsetOutOfRangeError, match="offsets 5 to 9"):
        shelf.values("t", 0, 15, missing={"t": {0: ((5, 9),)}})


def test_compacted_topic_read_whole_has_superseded_records_from_the_archive(shelf):
    shelf.topic("t", compact=True, retention_ms=None)
    shelf.send("t", 6, keys=[b"a", b"b"])
    shelf.archive("t")
    shelf.send("t", 2, keys=[b"a", b"b"])
    shelf.log.compact("t")
    assert shelf.values("t", 0, 8) == [6, 7]
    assert shelf.values("t", 0, 8, whole=("t",)) == [0, 1, 2, 3, 4, 5, 6, 7]


def test_file_that_was_merged_after_a_split_was_made_is_found_again(shelf):
    shelf.topic("t")
    for _ in range(20):
        shelf.send("t", 1)
        shelf.archivist().archive("t")
    shelf.expire("t")
    split = splits(shelf.log, shelf.past(), "t", 0, 17, 18, max_records=9)[0]
    for _ in range(20):
        shelf.send("t", 1)
        shelf.archivist().archive("t")
    assert [file.name for _, file in named(shelf.log, "svc", "t").files] != shelf.files()
    assert read_split(shelf.log, split)["value"].to_list() == [b"17"]


def test_file_with_a_changed_byte_is_named(expired):
    split = splits(expired.log, expired.past(), "t", 0, 0, 2, max_records=9)[0]
    path = partition_folder(expired.home, "t", 0) / named(expired.log, "svc", "t").partition(0).files[0].name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(SegmentDamagedError, match=r"archive of topic 't', partition 0, offsets 0 to 3"):
        read_split(expired.log, split)


def test_file_that_is_gone_is_named_when_read_and_left_out_when_loaded(expired):
    split = splits(expired.log, expired.past(), "t", 0, 0, 2, max_records=9)[0]
    path = partition_folder(expired.home, "t", 0) / named(expired.log, "svc", "t").partition(0).files[0].name
    path.unlink()
    with pytest.raises(SegmentDamagedError, match="the file is missing"):
        read_split(expired.log, split)
    assert load(expired.log, "svc", expired.home, "t").partition(0).begin == 4


def test_past_through_a_document_is_the_same():
    past = Past(service="svc", folder="/x", whole=("a",), missing={"a": {0: ((1, 2), (4, 9))}})
    assert Past.from_document(past.to_document()) == past
