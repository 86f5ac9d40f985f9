from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everstate.errors import ConfigurationError
from everstate.schema.durations import LONGEST_MS, milliseconds, readable


@given(st.integers(0, 10**12))
def test_readable_duration_is_read_back_exactly(length_ms):
    assert milliseconds(readable(length_ms)) == length_ms


@pytest.mark.parametrize("text", ["9223372036854775807ms", "99999999999w", "9" * 5000 + "d"])
def test_milliseconds_of_more_than_can_be_calculated_with_are_refused(text):
    with pytest.raises(ConfigurationError, match="is longer than ten million years") as refused:
        milliseconds(text)
    assert len(str(refused.value)) < 200


def test_milliseconds_of_a_long_time_and_of_leading_zeros_are_exact():
    assert milliseconds("3650000000d") == LONGEST_MS
    assert milliseconds("0" * 5000 + "7d") == 7 * 86_400_000


@pytest.mark.parametrize("text", ["", "7", "d", "7x", "-1d", "1.5h", "7d!", "x7d"])
def test_milliseconds_of_anything_else_is_refused(text):
    with pytest.raises(ConfigurationError, match="is not a duration"):
        milliseconds(text)
