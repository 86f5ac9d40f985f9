from __future__ import annotations

import polars as pl
import pytest

import everstate as es
from everstate.errors import DecodeError

DAY = 86_400_000


@pytest.mark.parametrize(
    ("values", "column", "kind", "found"),
    [
        ([{"x": 1}, {"x": 2}], "x", pl.Int64, [1, 2]),
        ([{"x": 1}, {"x": 2.5}], "x", pl.Float64, [1.0, 2.5]),
        ([{"x": None}, {"x": True}, {}], "x", pl.Boolean, [None, True, None]),
        ([{"x": "a"}, {"x": None}], "x", pl.String, ["a", None]),
        ([{"x": 1}, {"x": "a"}, {"x": None}, {"x": [1]}], "x", pl.String, ["1", '"a"', None, "[1]"]),
        ([{"x": 1 << 70}, {"x": 1}], "x", pl.String, [str(1 << 70), "1"]),
        ([{"x": [1, 2.5]}, {"x": []}], "x", pl.List(pl.Float64), [[1.0, 2.5], []]),
        ([{"x": {"a": 1}}, {"x": {"b": "c"}}], "x", None, [{"a": 1, "b": None}, {"a": None, "b": "c"}]),
        ([{"x": {"a": 1}}, {"x": {"a": "b"}}], "x", None, [{"a": "1"}, {"a": '"b"'}]),
        ([{"x": {}}], "x", pl.String, ["{}"]),
        ([{"x": None}], "x", pl.String, [None]),
        ([{"$offset": 5}], "value.$offset", pl.Int64, [5]),
        ([1, 2], "value", pl.Int64, [1, 2]),
        ([1, 2.5], "value", pl.Float64, [1.0, 2.5]),
        (["a", None], "value", pl.String, ["a", None]),
        ([[1], [2]], "value", pl.List(pl.Int64), [[1], [2]]),
        ([b"plain", b"text"], "value", pl.String, ["plain", "text"]),
        ([b"plain", 5], "value", pl.String, ["plain", "5"]),
        ([b"\xff", 5], "value", pl.Binary, [b"\xff", b"5"]),
    ],
)
def test_inference_gives_each_column_the_type_of_all_its_values(log, topic, values, column, kind, found):
    written = [b"null" if value is None else value for value in values]
    topic("t", *((str(place), value) for place, value in enumerate(written)))
    frame = es.read_stream("t", log=log)
    assert frame[column].to_list() == found
    assert kind is None or frame.schema[column] == kind


def test_inference_key_is_text_or_else_bytes(log, topic):
    topic("text", ("7", {"n": 1}), (None, {"n": 2}))
    topic("bytes", (b"\xff", {"n": 1}), ("a", {"n": 2}))
    assert es.read_stream("text", log=log)["key"].to_list() == ["7", None]
    assert es.read_stream("bytes", log=log)["key"].to_list() == [b"\xff", b"a"]


def test_inference_value_with_a_field_key_keeps_it(log, topic):
    topic("t", ("a", {"key": 5}))
    assert es.read_table("t", log=log).to_dicts() == [{"$key": "a", "key": 5}]


@pytest.mark.parametrize("broken", [b"{not json", b"5", b"\xff", b'{"n": NaN}'])
@pytest.mark.parametrize("other", [{"n": 1}, {"n": 1, "m": [1, "a"]}])
def test_inference_record_among_objects_that_is_none_is_named(log, topic, broken, other):
    topic("t", ("a", other), ("b", broken))
    with pytest.raises(DecodeError, match="partition 0, offset 1"):
        es.read_table("t", log=log)
    with pytest.warns(UserWarning, match="1 record of topic 't' left out"):
        assert es.read_stream("t", log=log, bad="skip")["key"].to_list() == ["a"]


def test_inference_of_no_records_is_an_empty_frame_with_a_key(log, topic):
    topic("empty")
    topic("deleted", ("a", None))
    assert es.read_table("empty", log=log).schema == {"key": pl.String}
    assert es.read_stream("deleted", log=log).to_dicts() == [{"key": "a"}]
