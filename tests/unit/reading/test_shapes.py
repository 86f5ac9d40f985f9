from __future__ import annotations

import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everstate.reading import shapes

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 40), 1 << 40)
    | st.floats(-9, 9)
    | st.sampled_from(["", "a", "2024-05-01"])
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner), max_leaves=5
)
OBJECTS = st.lists(st.dictionaries(st.sampled_from("xyz"), VALUES), min_size=1, max_size=4)


@given(OBJECTS)
def test_objects_at_once_have_the_shapes_of_each_of_them(objects) -> None:
    together = shapes.of_objects(pl.Series([json.dumps(value) for value in objects]))
    if together is None:
        return
    one_by_one: dict[str, shapes.Shape] = {}
    for value in objects:
        fields = {name: shapes.of_value(part) for name, part in value.items()}
        one_by_one = shapes.merged_fields(one_by_one, fields)
    assert together == one_by_one


@pytest.mark.parametrize(
    ("objects", "found"),
    [
        (['{"a": 1}', '{"a": "x"}'], None),
        (['{"a": 9223372036854775808}'], None),
        (['{"a": 1} {"b": 2}'], None),
        (['{"a": 1, "b": "2024-05-01"}', '{"a": 2.5}'], {"a": "float", "b": "text"}),
    ],
)
def test_objects_at_once_that_are_in_doubt_are_left_to_a_closer_look(objects, found) -> None:
    assert shapes.of_objects(pl.Series(objects)) == found
