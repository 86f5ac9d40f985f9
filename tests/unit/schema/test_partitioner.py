from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everstate.schema.partitioner import murmur2, partition_of, partition_of_key

KAFKA_VECTORS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


def binary(*keys: bytes | None) -> pl.Series:
    return pl.Series("key", list(keys), dtype=pl.Binary)


def one_by_one(key: bytes) -> int:
    """The same hash, written as a loop over one key."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    value = 0x9747B28C ^ len(key)
    whole = len(key) // 4 * 4
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * m & mask
        word = (word ^ word >> 24) * m & mask
        value = (value * m & mask) ^ word
    if key[whole:]:
        value = (value ^ int.from_bytes(key[whole:], "little")) * m & mask
    value = (value ^ value >> 13) * m & mask
    return value ^ value >> 15


def test_murmur2_known_keys_equal_kafka():
    assert murmur2(binary(*KAFKA_VECTORS)).astype(np.int32).tolist() == list(KAFKA_VECTORS.values())


@given(st.lists(st.binary(max_size=40)))
def test_murmur2_any_keys_equal_the_hash_of_each_alone(keys):
    assert murmur2(binary(*keys)).tolist() == [one_by_one(key) for key in keys]


@given(st.lists(st.binary(max_size=40)), st.integers(1, 100))
def test_partition_of_one_key_is_the_one_that_it_has_among_others(keys, partitions):
    assert [partition_of_key(key, partitions) for key in keys] == partition_of(binary(*keys), partitions).to_list()


@given(st.lists(st.binary(max_size=12), min_size=1), st.data())
def test_murmur2_sliced_and_chunked_series_equal_the_whole(keys, data):
    cut = data.draw(st.integers(0, len(keys)))
    series = binary(*keys)
    assert murmur2(series[cut:]).tolist() == murmur2(series).tolist()[cut:]
    assert murmur2(pl.concat([series[:cut], series[cut:]], rechunk=False)).tolist() == murmur2(series).tolist()


def test_murmur2_a_few_very_long_keys_among_short_ones_equal_the_hash_of_each_alone():
    keys = [b"k%d" % number * (number % 7) for number in range(40)] + [bytes(range(256)) * 400, b"x" * 100_001]
    assert murmur2(binary(*keys)).tolist() == [one_by_one(key) for key in keys]


def test_murmur2_null_hashes_like_an_empty_key():
    assert murmur2(binary(b"a", None, b"")).tolist() == [one_by_one(b"a"), one_by_one(b""), one_by_one(b"")]


def test_murmur2_no_keys_gives_no_hashes():
    assert murmur2(binary()).tolist() == []


@pytest.mark.parametrize("partitions", [1, 2, 7, 100])
def test_partition_of_known_keys_equals_kafkas_positive_remainder(partitions):
    expected = [(value & 0x7FFFFFFF) % partitions for value in KAFKA_VECTORS.values()]
    result = partition_of(binary(*KAFKA_VECTORS), partitions)
    assert result.to_list() == expected
    assert result.dtype == pl.Int32


def test_partition_of_null_key_is_null():
    assert partition_of(binary(None, b"a"), 3).is_null().to_list() == [True, False]


def test_partition_of_no_partitions_is_refused():
    with pytest.raises(ValueError, match="at least one partition"):
        partition_of(binary(b"a"), 0)


@given(st.lists(st.none() | st.binary(max_size=40) | st.binary(min_size=1_000, max_size=1_100), max_size=18))
def test_partition_of_few_or_many_keys_goes_by_the_hash_of_each(keys):
    expected = [None if key is None else (one_by_one(key) & 0x7FFFFFFF) % 7 for key in keys]
    assert partition_of(binary(*keys), 7).to_list() == expected
