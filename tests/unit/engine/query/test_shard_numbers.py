from __future__ import annotations

import pytest

from everstate.engine.query.shard_numbers import murmur3, shard_ids, spark_partition, stage_groups


def test_murmur3_known_values_are_those_of_spark():
    # SELECT hash(0), hash(1), hash(-1), hash(1000000)
    signed = [value - (1 << 32) if value >> 31 else value for value in map(murmur3, (0, 1, -1, 1_000_000))]
    assert signed == [933211791, -559580957, -1604776387, -2101434080]


@pytest.mark.parametrize("shards", [1, 2, 3, 7, 16, 64])
def test_shard_ids_each_go_to_a_partition_of_their_own(shards):
    assert [spark_partition(number, shards) for number in shard_ids(shards)] == list(range(shards))


def test_stage_groups_with_one_shard_share_a_step():
    assert stage_groups(4, 1) == [(1, 2, 3, 4)]
    assert stage_groups(2, 2) == [(1,), (2,)]
