from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everstate.errors import ConfigurationError
from everstate.schema.durations import milliseconds, readable


@given(st.integers(0, 10**12))
def test_readable_duration_is_read_back_exactly(length_ms):
    assert milliseconds(readable(length_ms)) == length_ms


@pytest.mark.parametrize("text", ["", "7", "d", "7x", "-1d", "1.5h", "7d!", "x7d"])
def test_milliseconds_of_anything_else_is_refused(text):
    with pytest.raises(ConfigurationError, match="is not a duration"):
        milliseconds(text)
