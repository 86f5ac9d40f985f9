from __future__ import annotations

from decimal import Decimal, localcontext

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everstate.errors import NumberOverflowError
from everstate.kernels.operations.aggregate import exact
from everstate.kernels.operations.aggregate.decimals import decimal_limbs, decimal_total
from tests.effort import examples

SCALE = 6


def total(units: list[int | None], signs: list[int] | None) -> Decimal:
    values = [None if unit is None else Decimal(unit).scaleb(-SCALE) for unit in units]
    series = pl.Series(values, dtype=pl.Decimal(38, SCALE))
    limbs = decimal_limbs(series, None if signs is None else pl.Series(signs, dtype=pl.Int8), "d")
    frame = pl.DataFrame({"$key": [b"g"] * len(units)}).with_columns(limbs)
    groups = frame.group_by("$key").agg(pl.all().exclude("$key").sum())
    return decimal_total(exact.normalise(groups, "d"), "d", SCALE)[0]


units = st.none() | st.integers(-(10**36), 10**36) | st.integers(-1000, 1000)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(units, st.sampled_from([1, -1])), min_size=1, max_size=30))
def test_decimal_sum_random_signs_is_exact(rows):
    with localcontext(prec=60):
        found = total([unit for unit, _ in rows], [sign for _, sign in rows])
        assert found == Decimal(sum((unit or 0) * sign for unit, sign in rows)).scaleb(-SCALE)


def test_decimal_sum_that_overflows_on_the_way_only_is_exact():
    largest = 10**38 - 1
    with localcontext(prec=60):
        assert total([largest, largest, -largest], None) == Decimal(largest).scaleb(-SCALE)


@pytest.mark.parametrize("sign", [1, -1])
def test_decimal_sum_of_39_digits_names_its_group(sign):
    with localcontext(prec=60), pytest.raises(NumberOverflowError, match="group 'g'"):
        total([sign * (10**38 - 1), sign], None)
