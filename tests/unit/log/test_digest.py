from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everstate.log.descriptions import Staged
from everstate.log.digest import _digest_of_many, combined_digest, content_digest

ROWS = st.lists(st.tuples(st.none() | st.binary(max_size=20), st.none() | st.binary(max_size=40)), max_size=20)


def frame(rows):
    return pl.DataFrame(rows, schema={"key": pl.Binary, "value": pl.Binary}, orient="row")


def staged(topic, partition, rows):
    return Staged(topic, partition, len(rows), content_digest(frame(rows)), "")


def as_multiset(rows):
    return sorted(rows, key=repr)


@given(ROWS, st.randoms())
def test_content_digest_shuffled_rows_stay_equal(rows, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert content_digest(frame(rows)) == content_digest(frame(shuffled))


@given(ROWS, ROWS)
def test_content_digest_other_rows_differ(rows, others):
    equal = content_digest(frame(rows)) == content_digest(frame(others))
    assert equal == (as_multiset(rows) == as_multiset(others))


@pytest.mark.slow
def test_content_digest_one_flipped_byte_anywhere_in_a_long_value_differs():
    value = bytes(range(256)) * 8
    digests = {content_digest(frame([(b"k", value)]))}
    for at in range(len(value)):
        flipped = value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]
        digests.add(content_digest(frame([(b"k", flipped)])))
    assert len(digests) == len(value) + 1


def test_content_digest_known_rows_keep_their_digest_for_ever():
    rows = [
        (b"customer-1", b'{"total": 12.5, "orders": 3}'),
        (b"customer-2", None),
        (None, b""),
        (b"long", b"ab" * 400),
    ]
    assert content_digest(frame(rows)) == "2d7890f507139c4de7eec3aeff9f9ca4"


@given(ROWS, st.data())
def test_combined_digest_rows_cut_into_other_parts_stay_equal(rows, data):
    cut = data.draw(st.integers(0, len(rows)))
    parts = [staged("t", 0, rows[cut:]), staged("t", 0, rows[:cut])]
    assert combined_digest(parts) == combined_digest([staged("t", 0, rows)])


def test_combined_digest_same_rows_in_another_partition_or_topic_differ():
    rows = [(b"a", b"1")]
    assert len({combined_digest([staged(*place, rows)]) for place in [("t", 0), ("t", 1), ("u", 0)]}) == 3


SHORT = st.none() | st.binary(max_size=80) | st.binary(min_size=500, max_size=530)


@given(st.lists(st.tuples(SHORT, SHORT), max_size=18))
def test_content_digest_of_a_few_rows_is_that_of_many(rows):
    assert content_digest(frame(rows)) == _digest_of_many(frame(rows))
