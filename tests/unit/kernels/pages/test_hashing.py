from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from everstate.kernels.pages.hashing import murmur2, shard_of


def test_shard_of_many_keys_fills_every_shard_evenly():
    keys = pl.Series([f"customer-{number}".encode() for number in range(20_000)], dtype=pl.Binary)
    counts = np.bincount(shard_of(murmur2(keys), 7), minlength=7)
    assert counts.min() > 20_000 / 7 * 0.9
    assert counts.max() < 20_000 / 7 * 1.1


def test_shard_of_one_shard_low_bits_of_the_hash_stay_free():
    keys = pl.Series([str(number).encode() for number in range(20_000)], dtype=pl.Binary)
    hashes = murmur2(keys)
    first = hashes[shard_of(hashes, 4) == 0]
    assert np.bincount(first & np.uint32(15), minlength=16).min() > 0


def test_shard_of_no_shards_is_refused():
    with pytest.raises(ValueError, match="at least one shard"):
        shard_of(np.zeros(1, np.uint32), 0)
