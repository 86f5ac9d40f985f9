from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everstate.kernels.positions import Positions, precedes
from everstate.kernels.rows import ORDER, SYSTEM
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
