import json
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everstate.errors import CheckpointDamagedError
from everstate.kernels.pages.addressing import Directory, PagePolicy, address
from everstate.kernels.pages.hashing import murmur2
from everstate.kernels.pages.page_bytes import decode
from everstate.kernels.pages.page_store import KeyedStore, MemoryPages
from tests.effort import examples

NONE = pl.Series("$key", [], dtype=pl.Binary)
TINY = PagePolicy(largest=512, smallest=128, knee=2_048, least_rows=2, slack=3)


class Watched(MemoryPages):
    """Notes every page that is read or written."""

    def __init__(self):
        super().__init__()
        self.touched = Counter()

    def read(self, store, pages):
        self.touched.update(("get", store, page) for page in pages)
        return super().read(store, pages)

    def write(self, store, blocks):
        self.touched.update(("write", store, page) for page in blocks)
        super().write(store, blocks)

    def delete(self, store, pages):
        assert all((store, page) in self.blocks for page in pages)
        self.touched.update(("write", store, page) for page in pages)
        super().delete(store, pages)


def keys(ids):
    return pl.Series("$key", [b"key-%d" % i for i in ids], dtype=pl.Binary)


def rows(ids, value):
    ids = list(ids)
    return pl.DataFrame({"$key": keys(ids), "value": pl.Series([value] * len(ids), dtype=pl.Int64)})


def as_dict(frame):
    assert frame["$key"].n_unique() == frame.height
    values = frame["value"] if "value" in frame.columns else [None] * frame.height
    return dict(zip(frame["$key"], values, strict=True))


def loaded(count, policy=None, pages=None):
    pages, directory = pages or MemoryPages(), Directory()
    store = KeyedStore(pages, 1, directory, *([policy] if policy else []))
    numbers = np.arange(count)
    names = ("key-" + pl.Series("$key", numbers).cast(pl.String)).cast(pl.Binary)
    store.apply(pl.DataFrame({"$key": names, "value": numbers, "other": numbers * 3}), NONE)
    store.flush()
    pages.reset_counts()
    return pages, directory


def check_pages(pages, store, directory):
    held = {page: decode([block]) for (number, page), block in pages.blocks.items() if number == store}
    assert directory.size == sum(decoded.payloads[0] for decoded in held.values())
    assert all(page < directory.pages for page in held)
    assert (directory.pages == 0) == (directory.rows == 0)
    for page, decoded in held.items():
        assert set(address(murmur2(decoded.frame["$key"]), directory.pages).tolist()) == {page}


ids = st.tuples(st.integers(0, 300), st.integers(0, 150)).map(lambda span: range(span[0], span[0] + span[1]))
step = st.tuples(st.sampled_from(["upsert", "delete", "lookup", "same"]), ids, st.integers(0, 5))


@settings(max_examples=examples(80), deadline=None)
@given(st.lists(st.lists(step, max_size=4), max_size=8))
def test_keyed_store_random_batches_equal_a_dict(batches):
    pages, directory, model = Watched(), Directory(), {}
    for batch in batches:
        store = KeyedStore(pages, 1, directory, TINY)
        pages.touched.clear()
        for action, span, value in batch:
            if action == "lookup":
                expected = {key: model[key] for key in keys(span) if key in model}
                assert as_dict(store.lookup(keys(span).to_frame())) == expected
            elif action == "upsert":
                store.apply(rows(span, value), NONE)
                model |= dict.fromkeys(keys(span), value)
            elif action == "delete":
                store.apply(rows([], 0), keys(span))
                model = {key: held for key, held in model.items() if key not in set(keys(span))}
            else:
                store.apply(store.lookup(keys(span).to_frame()), NONE)
            assert store.rows == len(model)
        assert as_dict(store.scan()) == model
        store.flush()
        assert not pages.touched or max(pages.touched.values()) == 1
        directory = Directory.from_json(json.loads(json.dumps(directory.to_json())))
        check_pages(pages, 1, directory)
        assert as_dict(KeyedStore(pages, 1, directory, TINY).scan()) == model


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 5)), min_size=20, max_size=60))
def test_keyed_store_small_batches_split_and_merge_few_pages_each(batches):
    pages, directory = loaded(400, TINY)
    alive = list(range(400))
    before = directory.pages
    for grow, count in batches:
        pages.reset_counts()
        store = KeyedStore(pages, 1, directory, TINY)
        if grow:
            fresh = range(len(alive) + 1_000, len(alive) + 1_000 + count)
            alive.extend(fresh)
            store.apply(rows(fresh, 1).with_columns(other=pl.lit(1, pl.Int64)), NONE)
        else:
            store.apply(rows([], 0), keys(alive[-count:]))
            del alive[-count:]
        store.flush()
        assert abs(directory.pages - before) <= TINY.limit(count)
        assert pages.gets <= count + 2 * TINY.limit(count)
        before = directory.pages
    check_pages(pages, 1, directory)


def test_keyed_store_empty_lookup_has_only_the_key_column():
    pages = MemoryPages()
    found = KeyedStore(pages, 1, Directory()).lookup(keys([1, 2]).to_frame())
    assert found.schema == {"$key": pl.Binary()}
    assert found.is_empty()
    assert pages.gets == 0


def test_keyed_store_without_changes_writes_nothing():
    pages, directory = loaded(2_000)
    store = KeyedStore(pages, 1, directory)
    store.lookup(keys(range(500)).to_frame())
    store.apply(rows([], 0), keys(range(5_000, 5_100)))
    store.flush()
    assert (pages.puts, pages.deletes) == (0, 0)


def test_keyed_store_deleted_and_added_in_one_call_keeps_the_addition():
    store = KeyedStore(MemoryPages(), 1, Directory())
    store.apply(rows([1, 2], 1), NONE)
    store.apply(rows([1], 9), keys([1, 2]))
    assert as_dict(store.scan()) == {b"key-1": 9}


def test_keyed_store_columns_that_come_later_are_null_before():
    pages, directory = MemoryPages(), Directory()
    for extra in ({"a": [1]}, {"b": [2]}):
        store = KeyedStore(pages, 1, directory)
        store.apply(pl.DataFrame({"$key": [b"k" + next(iter(extra)).encode()], **extra}), NONE)
        store.flush()
    assert sorted(KeyedStore(pages, 1, directory).scan().select("$key", "a", "b").rows()) == [
        (b"ka", 1, None),
        (b"kb", None, 2),
    ]


def test_keyed_store_aligned_has_a_row_for_each_key_in_order():
    pages, directory = loaded(100)
    store = KeyedStore(pages, 1, directory)
    store.apply(rows([], 0), keys([4]))
    found = store.aligned(keys([50, 4, 7, 1_000]).to_frame())
    assert found["$key"].to_list() == keys([50, 4, 7, 1_000]).to_list()
    assert found["value"].to_list() == [50, None, 7, None]


def test_keyed_store_aligned_without_rows_has_only_keys():
    found = KeyedStore(MemoryPages(), 1, Directory()).aligned(keys([1, 2]).to_frame())
    assert found.rows() == [(b"key-1",), (b"key-2",)]


def test_keyed_store_many_keys_are_replaced_as_few_are():
    pages, directory = loaded(120_000)
    store = KeyedStore(pages, 1, directory)
    found = store.lookup(keys(range(60_000, 180_000)).to_frame())
    assert sorted(found["value"]) == list(range(60_000, 120_000))
    store.apply(found.with_columns(-pl.col("value")), NONE)
    store.flush()
    after = KeyedStore(pages, 1, directory).scan()
    assert sorted(after["value"]) == [*range(-119_999, -59_999), *range(60_000)]


@pytest.mark.slow
def test_keyed_store_small_batch_on_large_state_touches_as_many_pages_as_keys():
    touched = {}
    for count in (50_000, 2_000_000):
        pages, directory = loaded(count)
        store = KeyedStore(pages, 1, directory)
        picked = keys(np.random.default_rng(5).choice(count, 500, replace=False)).to_frame()
        found = store.lookup(picked)
        assert found.height == 500
        store.apply(found.with_columns(pl.col("value") + 1), NONE)
        store.flush()
        assert pages.gets <= 510
        assert pages.puts <= 520
        touched[count] = pages.bytes_read + pages.bytes_written
    # So many bytes, compressed, are a fraction of what a micro-batch costs anyway.
    assert touched[2_000_000] < 5 * touched[50_000]


def test_keyed_store_new_keys_on_large_state_split_few_pages():
    pages, directory = loaded(300_000)
    before = directory.pages
    store = KeyedStore(pages, 1, directory)
    store.apply(rows(range(1_000_000, 1_000_500), 1), NONE)
    store.flush()
    assert directory.pages - before < 20
    assert pages.gets < 550


def test_keyed_store_bulk_load_writes_each_page_once_and_reads_none():
    pages = Watched()
    loaded(100_000, pages=pages)
    assert set(pages.touched.values()) == {1}
    assert not [kind for kind, *_ in pages.touched if kind == "get"]


def test_keyed_store_deleting_nine_tenths_shrinks_in_proportion():
    pages, directory = loaded(200_000)
    before, size = directory.pages, pages.size
    store = KeyedStore(pages, 1, directory)
    store.apply(rows([], 0), keys(range(180_000)))
    store.flush()
    assert pages.size < size * 0.12
    assert directory.pages < before * 0.12
    assert directory.rows == KeyedStore(pages, 1, directory).scan().height == 20_000


def test_keyed_store_deleting_all_leaves_nothing():
    pages, directory = loaded(5_000)
    store = KeyedStore(pages, 1, directory)
    store.apply(rows([], 0), keys(range(5_000)))
    store.flush()
    assert pages.blocks == {}
    assert directory == Directory()


def test_keyed_store_damaged_page_is_named():
    pages, directory = loaded(10)
    pages.blocks[1, 0] = pages.blocks[1, 0][:-20]
    with pytest.raises(CheckpointDamagedError, match="store 1 cannot be read"):
        KeyedStore(pages, 1, directory).scan()


def test_keyed_stores_of_one_shard_do_not_meet():
    pages = MemoryPages()
    for number in (1, 2):
        store = KeyedStore(pages, number, Directory())
        store.apply(rows([7], number), NONE)
        store.flush()
    assert {number for number, _ in pages.blocks} == {1, 2}
