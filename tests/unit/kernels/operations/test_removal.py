from __future__ import annotations

import polars as pl

from bench.tracked_keys import measure
from everstate.generations.removals import removal_service
from everstate.kernels.pages.page_store import MemoryPages
from everstate.kernels.parcel import OUT, RECORDS, SIDES
from everstate.kernels.pipeline import ShardStages, ingested, run_stages
from everstate.log.records import SCHEMA


class Service:
    """The kernels of the tombstone service, fed by hand."""

    def __init__(self, after="10ms"):
        (self.unit,) = removal_service("t", after).units()
        self.pages = MemoryPages()
        self.stages = ShardStages(self.unit, self.pages, policy="skip")
        self.offsets = {}

    def take(self, *records, partitions=1):
        """Records of (key, value, ts, partition); returns removals and tombstones."""
        pieces = []
        for partition in range(partitions):
            rows = [record for record in records if record[3] == partition]
            first = self.offsets.get(partition, 0)
            self.offsets[partition] = first + len(rows)
            columns = {
                "key": [row[0] for row in rows],
                "value": [row[1] for row in rows],
                "ts": [row[2] for row in rows],
                "headers": [None] * len(rows),
                "offset": list(range(first, first + len(rows))),
                "partition": [partition] * len(rows),
            }
            pieces.append(("t", partition, pl.DataFrame(columns, schema=SCHEMA)))
        sent = run_stages([self.stages], range(1, self.unit.depth + 1), ingested(self.unit, pieces, "skip"))
        out = [parcel for parcel in sent if parcel.stage == OUT and parcel.frame.height]
        removals = [row for p in out if p.port == RECORDS for row in p.frame.select("key", "value").rows()]
        tombstones = [row for p in out if p.port == SIDES for row in p.frame.drop("value").rows()]
        return removals, tombstones


def test_removal_of_a_key_that_is_no_text_keeps_its_bytes_and_names_its_record():
    service = Service()
    assert service.take((b"\xff\x00", b"1", 0, 0), (b"b", b"1", 9, 0)) == ([], [])
    removals, tombstones = service.take((b"b", b"2", 10, 0))
    assert removals == [(b"\xff\x00", b'{"partition":0,"offset":0}')]
    assert tombstones == [(b"\xff\x00", 0, 0, 0)]


def test_removal_of_a_key_in_two_partitions_goes_by_its_youngest_record_and_leaves_none():
    service = Service()
    service.take((b"a", b"1", 0, 0), (b"a", b"2", 5, 1), partitions=2)
    assert service.take((b"z", b"1", 12, 0), (b"z", b"1", 12, 1), partitions=2) == ([], [])
    removals, tombstones = service.take((b"z", b"1", 15, 0), (b"z", b"1", 15, 1), partitions=2)
    assert removals == [(b"a", b'{"partition":1,"offset":0}')]
    assert tombstones == [(b"a", 0, 0, 0), (b"a", 5, 1, 0)]


def test_removal_of_a_key_whose_time_is_beyond_all_numbers_never_comes():
    service = Service("7d")
    service.take((b"a", b"1", 2**63 - 1, 0), (b"b", b"1", 2**63 - 2, 1), partitions=2)
    assert service.take((b"c", b"1", 2**63 - 2, 1), partitions=2) == ([], [])


def test_removal_waits_for_a_partition_that_had_no_record():
    service = Service()
    service.take((b"a", b"1", 0, 0), partitions=2)
    assert service.take((b"b", b"1", 1000, 0), partitions=2) == ([], [])
    assert [key for key, _ in service.take((b"c", b"1", 1000, 1), partitions=2)[0]] == [b"a"]


def test_removal_never_follows_a_tombstone_and_counts_none_as_a_sign_of_life():
    service = Service()
    service.take((b"a", b"1", 0, 0), (b"b", b"1", 0, 0))
    service.take((b"a", None, 9, 0), (b"c", None, 9, 0))
    removals, _ = service.take((b"d", b"1", 30, 0))
    assert [key for key, _ in removals] == [b"b"]
    assert service.take((b"d", b"1", 39, 0)) == ([], [])


def test_removal_of_a_key_that_came_back_names_the_new_record():
    service = Service()
    service.take((b"a", b"1", 0, 0))
    assert service.take((b"b", b"1", 10, 0))[1] == [(b"a", 0, 0, 0)]
    service.take((b"a", None, 0, 0), (b"a", b"2", 11, 0))
    assert service.take((b"b", b"1", 21, 0))[1] == [(b"a", 11, 0, 3), (b"b", 21, 0, 4)][:1]


def test_state_of_a_key_has_neither_its_value_nor_more_than_the_guide_says():
    service = Service()
    service.take((b"a", b"a secret", 0, 0))
    assert not any(b"a secret" in block for block in service.pages.blocks.values())
    size, _ = measure(20_000, 16, batches=4)
    assert size < 95
