from __future__ import annotations

import polars as pl

from everstate.engine.query import packing
from everstate.engine.query.packing import merged, pack, to_arrow
from everstate.engine.query.shard_numbers import shard_ids
from everstate.kernels.parcel import COUNTS, MARKS, OUT, Parcel


def rows(count):
    return pl.DataFrame({"$key": [f"k{n}".encode() for n in range(count)], "n": range(count)})


def marks(*partitions):
    return pl.DataFrame({"$part": partitions})


def test_pack_sends_every_row_to_one_shard():
    packed = list(pack([Parcel(1, 4, 0, rows(100))], shards=3, sender=0))
    assert {item.shard for item in packed} == set(shard_ids(3))
    found = pl.concat([item.parcel().frame for item in packed]).sort("n")
    assert found.equals(rows(100))


def test_pack_rows_of_one_key_go_to_the_same_shard_from_every_sender():
    def places(sender):
        packed = pack([Parcel(1, 4, 0, rows(50))], shards=4, sender=sender)
        return {key: item.shard for item in packed for key in item.parcel().frame["$key"]}

    assert places(0) == places(7)


def test_pack_marks_of_a_reading_task_go_to_every_shard():
    packed = list(pack([Parcel(1, MARKS, 0, marks(0))], shards=3, sender=0))
    assert [item.shard for item in packed] == list(shard_ids(3))


def test_pack_marks_of_a_shard_stay_with_it_and_are_not_multiplied():
    packed = list(pack([Parcel(2, MARKS, 0, marks(0, 1)), Parcel(2, MARKS, 0, marks(1))], shards=3, sender=1, home=1))
    assert [(item.shard, item.parcel().frame.height) for item in packed] == [(shard_ids(3)[1], 2)]


def test_pack_what_leaves_the_unit_stays_whole():
    packed = list(pack([Parcel(OUT, 9, COUNTS, pl.DataFrame({"name": ["dead"], "count": [3]}))], shards=3, sender=2))
    assert [(item.shard, item.stage) for item in packed] == [(shard_ids(3)[0], OUT)]


def test_pack_numbers_parcels_by_sender_then_sequence():
    first = [item.origin for item in pack([Parcel(1, 4, 0, rows(20))], shards=2, sender=0)]
    second = [item.origin for item in pack([Parcel(1, 4, 0, rows(20))], shards=2, sender=1)]
    assert first == sorted(first)
    assert max(first) < min(second)


def test_pack_large_frames_are_cut_into_blocks(monkeypatch):
    monkeypatch.setattr(packing, "BLOCK_BYTES", 1_000)
    packed = list(pack([Parcel(1, 4, 0, rows(1_000))], shards=1, sender=0))
    assert len(packed) > 5
    assert pl.concat([item.parcel().frame for item in packed]).equals(rows(1_000))


def test_merged_parcels_of_one_address_become_one():
    together = merged([Parcel(1, 4, 0, rows(2)), Parcel(1, 5, 0, rows(1)), Parcel(1, 4, 0, rows(3))])
    assert [(parcel.node, parcel.frame.height) for parcel in together] == [(4, 5), (5, 1)]


def test_to_arrow_has_the_columns_that_spark_expects():
    (batch,) = to_arrow(pack([Parcel(1, 4, 0, rows(2))], shards=1, sender=0))
    assert batch.schema == packing.ARROW
    assert batch.num_rows == 1
