"""Keys of whole frames are byte for byte those of `topology.keys`."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everstate.errors import DecodeError
from everstate.kernels.records.keys import decode_keys, encode_keys
from everstate.schema.keys import KeySpec, decode_key, encode_key
from tests.effort import examples

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
PARTS = [
    (pl.String(), TEXT),
    (pl.Int64(), st.integers(-(2**63), 2**63 - 1)),
    (pl.UInt64(), st.integers(0, 2**64 - 1)),
    (pl.Int8(), st.integers(-128, 127)),
    (pl.Binary(), st.binary(max_size=4)),
    (pl.Boolean(), st.booleans()),
    (pl.Float64(), st.floats()),
    (pl.Float32(), st.floats(width=32)),
    (pl.Date(), st.dates()),
    (pl.Datetime("us", "UTC"), st.datetimes(timezones=st.just(UTC))),
    (pl.Datetime("ms"), st.datetimes().map(lambda at: at.replace(microsecond=0))),
    (pl.Duration("us"), st.timedeltas()),
    (pl.Decimal(20, 6), st.decimals(-(10**13), 10**13, places=6)),
]
#: Bytes that are nearly keys.
NEARLY = [
    *(
        b"",
        b" 1",
        b"+1",
        b"01",
        b"-0",
        b"1",
        b"-1",
        b"1.0",
        b"1e3",
        b"1000.0",
        b"NaN",
        b"nan",
        b"-0.0",
        b"9" * 30,
        b"\xff",
    ),
    *(
        b"true",
        b"True",
        b"2024-05-01",
        b"2024-5-1",
        b"2024-05-01T10:00:00Z",
        b"2024-05-01T10:00:00.000Z",
        b"1.50",
        b"1.5",
    ),
    *(b"2024-05-01T10:00:00+00:00", b"2024-05-01T10:00:00.500000Z", b"2024-05-01T10:00:00.5Z", b"0000-01-01", b"-1.5"),
    *(
        b'["a",1]',
        b'["a", 1]',
        b'["a",1,2]',
        b'["a"]',
        b'["a",01]',
        b'["a","1"]',
        b'["\\u0061",1]',
        b'["\\n",1]',
        b"[null,1]",
    ),
    *(
        b'["a\nb",1]',
        b'["a",1]\n',
        b'["\\ud800",1]',
        b'["a",true]',
        b'[1,"a"]',
        b'["a",9223372036854775808]',
        b"null",
        b"[]",
    ),
    *("é".encode(), '["é",1]'.encode(), b'["\\u00e9",1]', b'["\\"",1]', b'["a",1.0]', b'["a",-0]', b"[" * 2000),
]


def assert_same_as_one_by_one(keys: list[bytes | None], spec: KeySpec) -> None:
    columns, bad = decode_keys(pl.Series("k", keys, dtype=pl.Binary), spec)
    assert [columns[name].dtype for name in spec.names] == list(spec.dtypes)
    for place, key in enumerate(keys):
        found = tuple(columns[name][place] for name in spec.names)
        if key is None:
            assert not bad[place]
            assert found == (None,) * len(found)
            continue
        try:
            expected = decode_key(key, spec)
        except DecodeError:
            assert bad[place], key
            assert found == (None,) * len(found)
        else:
            assert not bad[place], key
            assert encode_key(found, spec) == encode_key(expected, spec) == key


@given(data=st.data())
@settings(max_examples=examples(150), deadline=None)
def test_keys_of_any_type_are_encoded_as_one_by_one_and_come_back(data):
    parts = data.draw(st.lists(st.sampled_from(PARTS), min_size=1, max_size=3))
    spec = KeySpec(tuple("abc"[: len(parts)]), tuple(dtype for dtype, _ in parts))
    rows = data.draw(st.lists(st.tuples(*(st.none() | values for _, values in parts)), min_size=1, max_size=6))
    frame = pl.DataFrame(rows, schema=dict(zip(spec.names, spec.dtypes, strict=True)), orient="row")
    keys = encode_keys(frame, spec)
    assert keys.dtype == pl.Binary
    assert keys.to_list() == [None if None in row else encode_key(row, spec) for row in rows]
    assert_same_as_one_by_one(keys.to_list(), spec)


@pytest.mark.parametrize("dtype", [dtype for dtype, _ in PARTS], ids=str)
def test_bytes_that_are_nearly_keys_are_decoded_as_one_by_one(dtype):
    assert_same_as_one_by_one([*NEARLY, None], KeySpec(("a",), (dtype,)))


@pytest.mark.parametrize("second", [dtype for dtype, _ in PARTS], ids=str)
def test_bytes_that_are_nearly_composite_keys_are_decoded_as_one_by_one(second):
    assert_same_as_one_by_one([*NEARLY, None], KeySpec(("a", "b"), (pl.String(), second)))


def test_keys_of_an_empty_frame_are_empty():
    spec = KeySpec(("a", "b"), (pl.String(), pl.Int64()))
    assert encode_keys(pl.DataFrame(schema={"a": pl.String, "b": pl.Int64}), spec).to_list() == []
    columns, bad = decode_keys(pl.Series([], dtype=pl.Binary), spec)
    assert columns["b"].dtype == pl.Int64
    assert bad.is_empty()


def test_keys_of_moments_that_come_again_are_those_of_each_alone():
    spec = KeySpec(("name", "at"), (pl.String(), pl.Datetime("us", "UTC")))
    times = [datetime(2026, 5, 1, 10, minute, tzinfo=UTC) for minute in range(3)]
    frame = pl.DataFrame(
        {"name": [f"n{n}" for n in range(3000)], "at": times * 1000},
        schema=dict(zip(spec.names, spec.dtypes, strict=True)),
    )
    alone = [encode_key(row, spec) for row in frame.iter_rows()]
    assert encode_keys(frame, spec).to_list() == alone


@pytest.mark.parametrize("dtype", [pl.Int16(), pl.Int32(), pl.Int64()])
@settings(max_examples=examples(50))
@given(data=st.data())
def test_keys_as_numbers_are_those_of_single_keys(dtype, data):
    spec = KeySpec(("id",), (dtype,), "number")
    size = {pl.Int16(): 16, pl.Int32(): 32, pl.Int64(): 64}[dtype]
    values = data.draw(st.lists(st.none() | st.integers(-(2 ** (size - 1)), 2 ** (size - 1) - 1), max_size=6))
    keys = encode_keys(pl.DataFrame({"id": pl.Series(values, dtype=dtype)}), spec)
    assert keys.to_list() == [None if value is None else encode_key(value, spec) for value in values]
    given_keys = data.draw(st.lists(st.none() | st.sampled_from(NEARLY) | st.binary(max_size=9), max_size=6))
    columns, bad = decode_keys(pl.Series([*keys, *given_keys], dtype=pl.Binary), spec)
    for key, value, is_bad in zip([*keys, *given_keys], columns["id"], bad, strict=True):
        if key is None:
            assert (value, is_bad) == (None, False)
            continue
        try:
            assert ((value,), is_bad) == (decode_key(key, spec), False)
        except DecodeError:
            assert (value, is_bad) == (None, True)
