import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from everstate.kernels.pages.addressing import (
    POLICY,
    Directory,
    PagePolicy,
    address,
    enumerate_each,
    mix,
    moved,
    settle,
)

HASHES = np.random.default_rng(1).integers(0, 2**32, 20_000, dtype=np.uint32)


@given(st.integers(1, 5_000))
def test_address_any_page_count_follows_linear_hashing(pages):
    level = pages.bit_length() - 1
    expected = [low if (low := int(h) % 2 ** (level + 1)) < pages else int(h) % 2**level for h in HASHES[:200]]
    assert address(HASHES[:200], pages).tolist() == expected


@given(st.lists(st.integers(1, 70), min_size=1))
def test_address_page_count_for_each_hash_equals_one_by_one(counts):
    hashes = HASHES[: len(counts)]
    single = [int(address(hashes[i : i + 1], count)[0]) for i, count in enumerate(counts)]
    assert address(hashes, np.array(counts)).tolist() == single


@given(st.integers(1, 300), st.integers(1, 300))
def test_moved_between_page_counts_names_all_pages_that_change(before, after):
    old, new = address(HASHES, before), address(HASHES, after)
    numbers, partners = moved(before, after)
    changed = old != new
    larger, smaller = (new, old) if after > before else (old, new)
    partner = dict(zip(numbers.tolist(), partners.tolist(), strict=True))
    assert set(larger[changed].tolist()) <= partner.keys()
    assert all(partner[high] == low for high, low in zip(larger[changed], smaller[changed], strict=True))


def test_address_many_hashes_fills_pages_evenly():
    counts = np.bincount(address(HASHES, 64), minlength=64)
    assert counts.min() > 200
    assert counts.max() < 430


def test_mix_bucket_zero_is_the_groups_own_hash():
    assert (mix(HASHES, np.zeros(len(HASHES), np.int64)) == HASHES).all()


def test_mix_buckets_of_one_group_spread_over_pages():
    pages = address(mix(np.full(4_096, 77, np.uint32), np.arange(4_096)), 1_000)
    assert np.bincount(pages, minlength=1_000).max() < 16


def test_settle_wanted_within_half_does_not_swing():
    assert int(settle(100, 51, 1_000)) == 100
    assert int(settle(100, 110, 1_000)) == 100
    assert int(settle(1, 2, 1_000)) == 2


def test_settle_small_batch_moves_few_pages():
    assert int(settle(100, 1_000, 5)) == 105
    assert int(settle(100, 10, 5)) == 95


def test_settle_large_batch_reaches_what_is_wanted_at_once():
    assert int(settle(1, 5_000, 1_000_000)) == 5_000
    assert int(settle(5_000, 0, 1_000_000)) == 0


def test_policy_larger_stores_have_smaller_pages_within_limits():
    rows = [10**n for n in range(2, 10)]
    sizes = [50 * n / POLICY.pages(n, 50 * n) for n in rows]
    assert sizes[2:] == sorted(sizes[2:], reverse=True)
    assert sizes[-1] >= POLICY.smallest * 0.99
    assert max(sizes) <= POLICY.largest * 1.5


def test_policy_wide_rows_share_a_page():
    assert PagePolicy(least_rows=4).pages(1_000, 1_000 * 100_000) == 250


def test_policy_no_rows_need_no_page():
    assert POLICY.pages(0, 0) == 0


def test_directory_json_round_trip_keeps_everything():
    directory = Directory(3, 400, 9_000, Directory(1, 2, 80))
    assert Directory.from_json(json.loads(json.dumps(directory.to_json()))) == directory
    assert Directory.from_json(Directory(1, 2, 3).to_json()) == Directory(1, 2, 3)


def test_enumerate_each_without_counts_is_empty():
    assert enumerate_each(np.empty(0, np.int64)).tolist() == []
