from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everstate.kernels.positions import Positions, position_names, precedes
from everstate.kernels.rows import CONTRIBUTION, ORDER, SYSTEM
from tests.effort import examples

SCHEMA = {name: SYSTEM[name] for name in ORDER}

narrow = st.tuples(st.integers(-5, 5), st.integers(0, 3), st.integers(0, 3), st.integers(0, 50))
wide = st.tuples(st.integers(-(2**62), 2**62), st.integers(0, 65535), st.integers(0, 2**31 - 1), st.integers(0, 2**62))


@pytest.mark.parametrize("places", [narrow, wide, narrow | wide])
def test_positions_packed_keep_their_order_and_unpack_to_themselves(places):
    @settings(max_examples=examples(50), deadline=None)
    @given(st.lists(places, min_size=1, max_size=20))
    def check(rows):
        frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
        positions = Positions(frame)
        assert frame.with_columns(positions.packed).sort("$at").select(ORDER).rows() == sorted(rows)
        assert pl.DataFrame(positions.unpacked(positions.packed)).rows() == rows

    check()


def test_positions_of_no_rows_are_none():
    positions = Positions(pl.DataFrame(schema=SCHEMA))
    assert pl.DataFrame(positions.unpacked(positions.packed)).schema == SCHEMA


def test_positions_null_unpacks_to_null():
    positions = Positions(pl.DataFrame([(1, 0, 0, 7)], schema=SCHEMA, orient="row"))
    assert pl.DataFrame(positions.unpacked(pl.Series([None], dtype=pl.Int64))).rows() == [(None,) * 4]


@given(st.tuples(st.integers(0, 2), st.integers(0, 2)), st.tuples(st.integers(0, 2), st.integers(0, 2)))
def test_precedes_compares_as_tuples_do(left, right):
    found = pl.select(precedes([pl.lit(part) for part in left], [pl.lit(part) for part in right])).item()
    assert found == (left < right)


def placed(*rows: tuple[bytes, int]) -> pl.DataFrame:
    """Rows by key and offset."""
    frame = pl.DataFrame([(key, 1, 0, 0, 0, offset, 1) for key, offset in rows], schema=SYSTEM, orient="row")
    return frame.with_columns(pl.lit(None, pl.Binary).alias(CONTRIBUTION))


def test_position_names_go_on_after_those_of_rows_that_are_held():
    rows, held = placed((b"a", 1), (b"a", 2), (b"b", 1)), placed()
    for _ in range(3):
        rows = rows.with_columns(position_names(rows, held).alias(CONTRIBUTION))
        held = pl.concat([held, rows])
    assert held.n_unique() == held.height
    fewer = held.filter(pl.col(CONTRIBUTION) != pl.lit(b"0/0/1/000001"))
    named = rows.with_columns(position_names(rows, fewer).alias(CONTRIBUTION))
    assert named.join(held, on=["$key", CONTRIBUTION], how="semi").is_empty()


def test_position_names_of_many_rows_from_one_record_sort_as_the_rows_do():
    names = position_names(placed(*[(b"a", 1)] * 12), placed()).to_list()
    assert names == sorted(names)
    assert len(set(names)) == 12
