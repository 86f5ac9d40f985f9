import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everstate.kernels.pages.addressing import Directory, PagePolicy
from everstate.kernels.pages.grouped_store import WIDE, GroupedStore
from everstate.kernels.pages.page_bytes import decode
from everstate.kernels.pages.page_store import MemoryPages
from tests.effort import examples

TINY = PagePolicy(largest=512, smallest=128, knee=2_048, least_rows=2, bucket=256, slack=3)
PAIR = {"$key": pl.Binary, "$ck": pl.Binary}


def pairs(group, ids):
    return pl.DataFrame({"$key": [b"group-%d" % group] * len(ids), "$ck": [b"row-%d" % i for i in ids]}, schema=PAIR)


def rows(group, ids, value):
    return pairs(group, ids).with_columns(pl.lit(value, pl.Int64).alias("value"))


def groups(*numbers):
    return pl.DataFrame({"$key": [b"group-%d" % number for number in numbers]}, schema={"$key": pl.Binary})


def as_dict(frame):
    assert frame.select("$key", "$ck").n_unique() == frame.height
    values = frame["value"] if "value" in frame.columns else []
    return {(key, ck): value for key, ck, value in zip(frame["$key"], frame["$ck"], values, strict=True)}


def hot_group(count, others=0):
    """A group of many rows, and small ones beside it."""
    pages, directory = MemoryPages(), Directory()
    numbers = np.arange(count + others)
    frame = pl.DataFrame({"$key": pl.Series(np.maximum(numbers - count + 1, 0)), "$ck": numbers, "value": numbers})
    text = [
        pl.format("group-{}", "$key").cast(pl.Binary).alias("$key"),
        pl.format("row-{}", "$ck").cast(pl.Binary).alias("$ck"),
    ]
    store = GroupedStore(pages, 1, directory)
    store.apply(frame.with_columns(text), pairs(0, []))
    store.flush()
    pages.reset_counts()
    return pages, directory


def fan_outs(pages):
    blocks = [block for (store, _), block in pages.blocks.items() if store == 1 + WIDE]
    return {} if not blocks else {key: (fan, count) for key, count, fan in decode(blocks).frame.rows()}


spans = st.tuples(st.integers(0, 80), st.integers(0, 60)).map(lambda span: range(span[0], span[0] + span[1]))
step = st.tuples(
    st.sampled_from(["upsert", "upsert", "delete", "lookup", "rows", "clear"]),
    st.integers(0, 4),
    spans,
    st.integers(0, 5),
)


@settings(max_examples=examples(80), deadline=None)
@given(st.lists(st.lists(step, max_size=4), max_size=8))
def test_grouped_store_random_batches_equal_a_dict(batches):
    pages, directory, model = MemoryPages(), Directory(), {}
    for batch in batches:
        store = GroupedStore(pages, 1, directory, TINY)
        for action, group, span, value in batch:
            touched = set(pairs(group, span).rows())
            if action == "upsert":
                store.apply(rows(group, span, value), pairs(0, []))
                model |= dict.fromkeys(touched, value)
            elif action == "delete":
                store.apply(rows(0, [], 0), pairs(group, span))
                model = {pair: held for pair, held in model.items() if pair not in touched}
            elif action == "clear":
                store.apply(rows(0, [], 0), store.lookup(groups(group)).select("$key", "$ck"))
                model = {pair: held for pair, held in model.items() if pair[0] != b"group-%d" % group}
            elif action == "lookup":
                wanted = {b"group-%d" % group, b"group-0"}
                expected = {pair: held for pair, held in model.items() if pair[0] in wanted}
                assert as_dict(store.lookup(groups(group, 0).unique())) == expected
            else:
                expected = {pair: held for pair, held in model.items() if pair in touched}
                assert as_dict(store.lookup_rows(pairs(group, span))) == expected
            assert store.rows == len(model)
        store.flush()
        directory = Directory.from_json(json.loads(json.dumps(directory.to_json())))
        assert as_dict(GroupedStore(pages, 1, directory, TINY).scan()) == model
        every = GroupedStore(pages, 1, directory, TINY).lookup(groups(*range(5)))
        assert as_dict(every) == model
        for key, (fan, count) in fan_outs(pages).items():
            assert fan > 1
            assert count == sum(pair[0] == key for pair in model)


def test_grouped_store_small_batches_grow_and_shrink_a_group():
    pages, directory = MemoryPages(), Directory()
    for begin in range(0, 600, 20):
        store = GroupedStore(pages, 1, directory, TINY)
        store.apply(rows(0, range(begin, begin + 20), 1), pairs(0, []))
        store.flush()
    (fan, count) = fan_outs(pages)[b"group-0"]
    assert fan > 20
    assert count == 600
    for begin in range(0, 600, 20):
        assert GroupedStore(pages, 1, directory, TINY).lookup(groups(0)).height == 600 - begin
        store = GroupedStore(pages, 1, directory, TINY)
        store.apply(rows(0, [], 0), pairs(0, range(begin, begin + 20)))
        store.flush()
    assert pages.blocks == {}
    assert directory == Directory(wide=Directory())


@pytest.mark.slow
def test_grouped_store_one_change_in_a_group_of_a_million_rows_touches_few_pages():
    pages, directory = hot_group(1_000_000, others=20_000)
    store = GroupedStore(pages, 1, directory)
    assert store.lookup_rows(pairs(0, [123_456])).rows() == [(b"group-0", b"row-123456", 123_456)]
    store.apply(rows(0, [123_456, 5_000_000], 7), pairs(0, [654_321]))
    store.flush()
    assert pages.gets <= 20
    assert pages.puts <= 20
    assert pages.bytes_read + pages.bytes_written < 1_000_000
    assert GroupedStore(pages, 1, directory).lookup_rows(pairs(0, [123_456, 654_321])).rows() == [
        (b"group-0", b"row-123456", 7)
    ]
    pages.reset_counts()
    assert GroupedStore(pages, 1, directory).lookup(groups(17)).height == 1
    assert pages.gets <= 2


def test_grouped_store_hot_group_lies_in_pages_of_ordinary_size():
    pages, _ = hot_group(200_000, others=5_000)
    assert max(map(len, pages.blocks.values())) < 150_000
    assert list(fan_outs(pages)) == [b"group-0"]


def test_grouped_store_hot_group_is_found_whole():
    pages, directory = hot_group(100_000, others=1_000)
    found = GroupedStore(pages, 1, directory).lookup(groups(0, 5))
    assert found.height == 100_001
    assert found["value"].n_unique() == 100_001


def test_grouped_store_deleting_most_of_a_hot_group_shrinks_in_proportion():
    pages, directory = hot_group(100_000)
    size = pages.size
    store = GroupedStore(pages, 1, directory)
    store.apply(rows(0, [], 0), pairs(0, range(99_900)))
    store.flush()
    assert fan_outs(pages) == {}
    assert pages.size < size * 0.02
    assert GroupedStore(pages, 1, directory).lookup(groups(0)).height == 100


def test_grouped_store_small_groups_have_no_fan_out():
    pages, directory = hot_group(1, others=10_000)
    assert fan_outs(pages) == {}
    assert GroupedStore(pages, 1, directory).lookup(groups(3, 4)).height == 2
    assert pages.gets <= 2


def test_grouped_store_empty_lookups_have_only_the_key_columns():
    store = GroupedStore(MemoryPages(), 1, Directory())
    assert store.lookup(groups(1)).schema == PAIR
    assert store.lookup_rows(pairs(1, [1])).schema == PAIR
    assert store.scan().schema == PAIR


def test_grouped_store_looking_up_a_hot_group_writes_nothing():
    pages, directory = hot_group(20_000, others=500)
    store = GroupedStore(pages, 1, directory)
    store.lookup(groups(0))
    store.apply(rows(0, [], 0), pairs(0, [1_000_000]))
    store.flush()
    assert (pages.puts, pages.deletes) == (0, 0)
