from __future__ import annotations

import pytest

from everstate.errors import LogError
from everstate.log.archive.archive import FILE_BYTES, Archive, ArchiveFile, PartitionArchive, worth_merging


def file(start, end, records=None, size=1):
    return ArchiveFile(start, end, end - start if records is None else records, size, 0, f"{start}-{end}.1.parquet")


def run(*sizes):
    ends = [sum(sizes[: place + 1]) for place in range(len(sizes))]
    return tuple(file(end - size, end) for size, end in zip(sizes, ends, strict=True))


def test_document_through_json_is_the_same():
    archive = Archive({0: PartitionArchive(run(3, 4), ((2, 3),)), 11: PartitionArchive()})
    assert Archive.from_json(archive.to_json()) == archive


def test_document_of_a_newer_version_is_refused_by_name():
    with pytest.raises(LogError, match="the document of an archive has format 2; this version of Everstate reads") as e:
        Archive.from_json('{"version": 2, "partitions": {}}')
    assert "Use the version of Everstate that wrote it" in str(e.value)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"version": null, "partitions": {}}', '{"version": 1, "partitions": [1]}']
)
def test_document_that_is_damaged_is_refused(text):
    with pytest.raises(LogError, match="damaged"):
        Archive.from_json(text)


def test_gaps_of_an_empty_archive_are_the_whole_range():
    assert PartitionArchive().gaps(3, 5) == ((3, 5),)
    assert PartitionArchive().gaps(5, 5) == ()


def test_adding_after_a_loss_keeps_it():
    part = PartitionArchive(run(5)).adding(file(8, 9), (5, 8)).adding(file(9, 12))
    assert part.gaps(0, 12) == part.lost == ((5, 8),)
    assert (part.begin, part.end, part.records) == (0, 12, 9)


def test_merging_few_small_files_is_not_worth_it():
    assert worth_merging(run(*[1] * 15), most=1000) == ()


def test_merging_takes_the_smallest_neighbours_first():
    files = run(400, *[20] * 3, *[1] * 16)
    assert worth_merging(files, most=1000) == list(files[4:])


def test_merging_small_files_between_larger_ones_is_not_put_off_for_ever():
    files = run(*[1, 30] * 9)
    assert worth_merging(files, most=1000) == list(files)


def test_merging_never_makes_a_file_larger_than_allowed_and_leaves_full_ones_alone():
    assert len(worth_merging(run(*[30] * 40), most=100)) == 2
    assert worth_merging(run(*[60] * 40), most=100) == ()
    heavy = tuple(file(n, n + 1, size=FILE_BYTES // 4) for n in range(40))
    assert len(worth_merging(heavy, most=100)) == 2


def test_merging_does_not_cross_a_gap():
    files = (*run(*[1] * 10), *(file(n, n + 1) for n in range(12, 22)))
    assert worth_merging(files, most=1000) == ()


def test_merging_until_nothing_is_left_to_do_rewrites_a_record_only_a_few_times():
    part, written = PartitionArchive(), 0
    for number in range(5_000):
        part = part.adding(file(number, number + 1))
        while merged := worth_merging(part.files, most=1024):
            part = part.replacing(merged, file(merged[0].start, merged[-1].end))
            written += merged[-1].end - merged[0].start
    assert part.gaps(0, 5_000) == ()
    assert len(part.files) < 50
    assert written < 5_000 * 4
