from __future__ import annotations

import polars as pl
import pytest

from everstate.errors import SegmentDamagedError
from everstate.log.embedded import segments
from everstate.log.embedded.segments import Segment


@pytest.fixture
def orders(log):
    log.topic("orders")
    log.send("orders", (b"a", b"1"))
    log.send("orders", (b"b", b"2"), (b"c", b"3"))
    return log


def last_file(log):
    return log.path / log.segments("orders")[-1].file


def test_segment_any_flipped_byte_is_found_and_named(orders):
    file = last_file(orders)
    whole = file.read_bytes()
    for at in range(len(whole)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0x20]) + whole[at + 1 :])
        with pytest.raises(SegmentDamagedError, match="do not match their checksum"):
            orders.read("orders", 0, 1)
    file.write_bytes(whole)
    assert len(orders.read("orders", 0, 0)) == 3


def test_segment_any_truncation_is_found(orders):
    file = last_file(orders)
    whole = file.read_bytes()
    for length in (0, 1, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        with pytest.raises(SegmentDamagedError, match=f"the file has {length} bytes instead of {len(whole)}"):
            orders.read("orders", 0, 1)


def test_segment_with_bytes_too_many_is_found(orders):
    file = last_file(orders)
    file.write_bytes(file.read_bytes() + b"\0")
    with pytest.raises(SegmentDamagedError):
        orders.read("orders", 0, 1)


def test_segment_zeroed_by_a_torn_write_is_found(orders):
    file = last_file(orders)
    file.write_bytes(b"\0" * file.stat().st_size)
    with pytest.raises(SegmentDamagedError):
        orders.read("orders", 0, 1)


def test_segment_missing_file_is_named(orders):
    last_file(orders).unlink()
    with pytest.raises(SegmentDamagedError, match="the file is missing"):
        orders.read("orders", 0, 0)


def test_segment_damage_message_names_file_topic_offsets_and_cure(orders):
    file = last_file(orders)
    file.write_bytes(b"x" * file.stat().st_size)
    with pytest.raises(SegmentDamagedError) as caught:
        orders.read("orders", 0, 0)
    message = str(caught.value)
    for part in (str(file), "topic 'orders', partition 0, offsets 1 to 2", "Restore this file from a backup"):
        assert part in message


@pytest.mark.parametrize(
    "operation",
    [
        lambda log: log.latest("orders"),
        lambda log: log.read("orders", 0, 0),
        lambda log: [log.read_split(part) for part in log.splits("orders", 0, 0, 3, max_records=10)],
        lambda log: log.compact("orders"),
    ],
)
def test_segment_damaged_every_way_of_reading_refuses(log, operation):
    log.topic("orders", compact=True)
    log.send("orders", (b"a", b"1"))
    log.send("orders", (b"a", b"2"), (b"b", b"2"))
    file = last_file(log)
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    with pytest.raises(SegmentDamagedError):
        operation(log)
    assert file.exists()


def test_segment_damage_in_one_block_leaves_the_others_readable(log, monkeypatch):
    monkeypatch.setattr(segments, "BLOCK_RECORDS", 10)
    log.topic("orders")
    log.send("orders", *[(b"k", b"%d" % number) for number in range(30)])
    segment = log.segments("orders")[0]
    file, block = log.path / segment.file, segment.blocks[1]
    content = bytearray(file.read_bytes())
    content[block.position + 5] ^= 1
    file.write_bytes(content)
    parts = log.splits("orders", 0, 0, 30, max_records=10)
    assert log.read_split(parts[0])["offset"].to_list() == list(range(10))
    assert log.read_split(parts[2])["offset"].to_list() == list(range(20, 30))
    with pytest.raises(SegmentDamagedError, match="offsets 10 to 19"):
        log.read_split(parts[1])


def test_segment_large_append_is_cut_into_blocks_that_splits_read_apart(log, monkeypatch):
    monkeypatch.setattr(segments, "BLOCK_RECORDS", 100)
    log.topic("orders")
    log.send("orders", *[(b"k", b"%d" % number) for number in range(1000)])
    parts = log.splits("orders", 0, 0, 1000, max_records=250)
    assert len(log.files()) == 1
    assert [len(Segment.from_json(part.location.partition(":")[2]).blocks) for part in parts] == [2, 2, 2, 2, 2]
    found = pl.concat([log.read_split(part) for part in parts])
    assert found["value"].to_list() == [b"%d" % number for number in range(1000)]


def test_segment_large_records_make_smaller_blocks(log, monkeypatch):
    monkeypatch.setattr(segments, "BLOCK_BYTES", 1000)
    log.topic("orders")
    log.send("orders", *[(b"k", bytes(199)) for _ in range(20)])
    assert [block.records for block in log.segments("orders")[0].blocks] == [5, 5, 5, 5]


def test_segment_partitions_of_one_append_share_a_file(log):
    log.topic("orders", partitions=8)
    log.send("orders", *[(b"%d" % number, b"v") for number in range(50)])
    assert len(log.files()) == 1
    assert len(log.segments("orders")) == 8


def test_segment_json_gives_the_same_segment_back(orders):
    segment = orders.segments("orders")[-1]
    assert Segment.from_json(segment.to_json()) == segment
