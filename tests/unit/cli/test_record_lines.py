from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everstate.cli.record_lines import from_document, is_record, to_line
from everstate.errors import DecodeError
from everstate.log import Record

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
VALUES = st.none() | st.binary() | st.text().map(str.encode) | JSON_VALUES.map(lambda v: json.dumps(v).encode())
HEADERS = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.none() | st.binary(max_size=4)), max_size=3)


def document(key=b"k", value=b"1", headers=()):
    return json.loads(to_line(Record("orders", 2, 7, key, value, 1000, tuple(headers))))


def same_content(stored, again):
    if stored == again:
        return True
    return json.loads(stored) == json.loads(again)


@settings(deadline=None)
@given(st.none() | st.binary() | st.text().map(str.encode), VALUES, HEADERS)
def test_line_of_any_record_can_be_produced_again(key, value, headers):
    found = from_document(document(key, value, headers))
    assert found["key"] == key
    assert found["ts"] == 1000
    assert (found["value"] is None) == (value is None)
    assert value is None or same_content(value, found["value"])
    by_name = [(h["name"], h["value"]) for h in found["headers"] or []]
    assert by_name == sorted(headers, key=lambda h: [name for name, _ in headers].index(h[0]))


def test_to_line_has_the_documented_fields():
    assert document(b"o1", b'{"amount": 5}', [("es-service", b"customers")]) == {
        "topic": "orders",
        "partition": 2,
        "offset": 7,
        "key": "o1",
        "value": {"amount": 5},
        "timestamp": 1000,
        "headers": {"es-service": "customers"},
    }


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (b"null", {"$bytes": "bnVsbA=="}),
        (b'"text"', "text"),
        (b"not json", "not json"),
        (b"NaN", "NaN"),
        (b"\xff", {"$bytes": "/w=="}),
        (b"[1, 2.5]", [1, 2.5]),
        (b"", ""),
    ],
)
def test_to_line_value_is_json_else_text_else_marked_bytes(value, shown):
    assert document(value=value)["value"] == shown


def test_is_record_value_that_has_other_fields_stays_a_value():
    assert is_record({"key": "a", "value": 1}, keyed_otherwise=False)
    assert not is_record({"key": "a", "value": 1, "colour": 2}, keyed_otherwise=False)
    assert not is_record({"key": "a", "value": 1}, keyed_otherwise=True)
    assert is_record(document(), keyed_otherwise=True)
    assert not is_record([1], keyed_otherwise=False)


@pytest.mark.parametrize(
    ("field", "content", "reason"),
    [
        ("key", {"$bytes": "?"}, "not base64"),
        ("key", {"a": 1}, "an object cannot be a key"),
        ("timestamp", "yesterday", "not milliseconds"),
        ("headers", [1], "not an object"),
    ],
)
def test_from_document_wrong_field_is_named(field, content, reason):
    with pytest.raises(DecodeError, match=reason):
        from_document({**document(), field: content})
