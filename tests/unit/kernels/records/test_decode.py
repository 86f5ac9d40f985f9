"""Whole batches must be decoded exactly as one record at a time is."""

from __future__ import annotations

import json
from dataclasses import field, make_dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from everstate.errors import DecodeError
from everstate.kernels.records import decode, json_lines, python_rows
from everstate.kernels.records.decode import decode_records, decode_values
from everstate.schema.keys import KeySpec
from everstate.schema.record_values import decode_value
from everstate.schema.schema import Schema
from tests.effort import examples

ORDERS = Schema.of({"order_id": str, "customer": str, "amount": int})
ORDER_KEY = KeySpec(("order_id",), (pl.String(),))
GOOD = b'{"order_id": "o1", "customer": "c1", "amount": 12}'

ITEM = {"n": int, "at": datetime | None, "tags": list[str] | None}
WIDE = Schema.of(
    {
        "a": int,
        "f": float,
        "s": str,
        "b": bool | None,
        "u": int | None,
        "l": list[int],
        "o": ITEM | {"inner": {"x": float | None}},
        "li": list[ITEM],
        "d": date | None,
        "t": datetime | None,
        "m": Decimal | None,
        "z": bytes | None,
        "td": timedelta | None,
    }
)
NARROW = Schema.of({"i": pl.Int8, "u": pl.UInt64, "r": pl.Float32, "t": pl.Datetime("ms"), "m": pl.Decimal(5, 2)})
FILLED = Schema.of(
    make_dataclass(
        "Filled",
        [
            ("q", int | None, 7),
            ("a", int, 3),
            ("f", float, float("nan")),
            ("s", str, 'say "s"'),
            ("b", bool | None, True),
            ("l", list[int], field(default_factory=lambda: [1, 2])),
            ("t", datetime, datetime(2024, 5, 1, 12, 30, tzinfo=UTC)),
            ("m", Decimal | None, Decimal("1.25")),
            ("z", bytes, b"xyz"),
        ],
    )
)
LAX = Schema.of({"a": int | None, "f": float | None, "s": str | None, "l": list[int | None] | None})

VALID = {
    "a": ["1", "-1", "0", "9223372036854775807"],
    "i": ["1", "-128", "127"],
    "u": ["0", "1", "18446744073709551615"],
    "f": [
        "1",
        "1.5",
        "-0.0",
        "1e3",
        '"NaN"',
        '"Infinity"',
        '"-Infinity"',
        "0.1",
        "1e-400",
        "123456789012345678901234567890",
    ],
    "r": ["0.1", "16777217", "1e38", '"NaN"', "1.00000005960464488641292746251565404236316680908203125"],
    "s": ['"x"', '""', '"\\u0041"', '"\\ud83d\\ude00"', '"é"', '"a\\u0000b"', '"NaN"', '"} null"', '"\\""', '"]}"'],
    "b": ["true", "false", "null"],
    "l": ["[]", "[1,2]", "[ 1 ]"],
    "o": [
        '{"n":1,"inner":{"x":1}}',
        '{"n":1,"at":"2024-05-01T10:00:00Z","tags":["x"],"inner":{}}',
        '{"n":1,"inner":{"x":"NaN"},"at":"2024-05-01T10:00:00.5+02:00","z":{"n":2}}',
    ],
    "li": ["[]", '[{"n":1},{"n":2,"tags":[],"at":"2024-05-01T10:00:00.123456Z"}]', '[{"n":1,"tags":null}]'],
    "d": ['"2024-02-29"', '"0001-01-01"', '"9999-12-31"', "null"],
    "t": [
        '"2024-05-01T10:00:00Z"',
        '"2024-05-01 10:00:00.123+05:30"',
        '"2024-05-01T10:00Z"',
        '"0001-01-01T00:00:00Z"',
        '"9999-12-31T23:59:59.999999Z"',
        '"2024-05-01T10:00:00"',
        '"2024-05-01T10:00:00.123"',
        '"2024-05-01T10:00:00.123456000Z"',
    ],
    "m": ['"1.5"', '"-0"', '"0.000000000000000001"', '"99999999999999999999"', '"001.50"', '"123.45"', "null"],
    "z": ['""', '"eA=="', '"AAEC"'],
    "td": ["0", "-5", "86400000000"],
    "q": ["null", "1", '{"a":[{"b":1}]}', "[[[]]]", "1" * 5000],
}
WRONG = [
    *("null", "true", "1", "1.0", "1.5", "1e2", "01", "-0", "+1", ".5", "5.", "-", "0x10", "NaN", "-Infinity", "Inf"),
    *("1e400", "-1e400", "9223372036854775808", "-129", "256", "18446744073709551616", "1" * 400, "nan", "tru", "None"),
    *('"x"', '"1"', '"true"', '""', '"\\ud800"', '"\\udc00"', '"\\uD83D\\n"', '"\\x"', '"a\nb"', '"a\tb"', "'x'", '"'),
    *(
        '"2024-13-01"',
        '"2024-02-30"',
        '"0000-01-01"',
        '"2024-1-1"',
        '"20240101"',
        '"2024-W01-1"',
        '"2024-05-01T25:00:00Z"',
    ),
    *('"2024-05-01T10:00:60Z"', '"2024-05-01T24:00:00Z"', '"0000-01-01T00:00:00Z"', '"0001-01-01T00:00:00+01:00"'),
    *(
        '"2024-05-01T10:00:00.1234567Z"',
        '"2024-05-01T10:00:00z"',
        '"2024-05-01T10:00:00+0100"',
        '"2024-05-01T10:00:00.Z"',
    ),
    *(
        '"1e5"',
        '"1."',
        '".5"',
        '"+1"',
        '"1_0"',
        '"\u0661"',
        '"1.0000000000000000001"',
        '"999999999999999999999"',
        '"123.456"',
    ),
    *(
        '"eA"',
        '"eA="',
        '"eB=="',
        '"e A=="',
        '"eA==="',
        '"e_=="',
        "[]",
        "{}",
        "[null]",
        "[1,",
        "[1.5]",
        "[[1]]",
        '["1"]',
    ),
    *(
        '{"n":null}',
        '{"n":"1"}',
        '[{"n":null}]',
        "[{}]",
        '{"n":1,"n":2,"inner":{}}',
        '{"n":1,"inner":null}',
        "/**/1",
        "1//",
    ),
]
WHOLE = [
    *(
        b"",
        b" ",
        b"null",
        b"[]",
        b"1",
        b'"x"',
        b"true",
        b"{",
        b"}",
        b"{}",
        b"{}{}",
        b"{} {}",
        b"{}\n{}",
        b"{}null{}",
        b"{}\r\n",
    ),
    *(
        b"null\n{}",
        b"{},{}",
        b"[{}]",
        b"{}//",
        b"// c\n{}",
        b"\xef\xbb\xbf{}",
        b"\xff",
        b"{}\x00",
        b"\x00{}",
        b"{}\x00{}",
    ),
    *(
        b'{"a":"}',
        b'{"a":"\xff"}',
        b'{"\xff":1}',
        b"{'a':1}",
        b"{a:1}",
        b'{"a":1,}',
        b'{"a" 1}',
        b'{"":1}',
        b'{"a\\u0000":1}',
    ),
    *(b'{"q":' + b"[" * 300 + b"]" * 300 + b"}", b'{"q":' + b"[" * 255 + b"]" * 255 + b"}", b"[" * 100_000),
    *(b'{"q":"' + b"[" * 300 + b'"}', b'{"q":[' + b"[]," * 300 + b"[]]}", b'{"q":NaN}', b'{"q":Inf}', b'{"q":1e999}'),
]


def one_by_one(values: list[bytes], schema: Schema, fmt: str = "json") -> tuple[pl.DataFrame, pl.DataFrame]:
    rows, good, bad, reasons = [], [], [], []
    for place, value in enumerate(values):
        try:
            rows.append(decode_value(value, schema, fmt))
            good.append(place)
        except DecodeError as error:
            bad.append(place)
            reasons.append(error.message)
    frame = python_rows.to_frame(rows, schema).with_columns(pl.Series("$index", good, dtype=pl.UInt32))
    return frame, pl.DataFrame(
        {"$index": pl.Series(bad, dtype=pl.UInt32), "reason": pl.Series(reasons, dtype=pl.String)}
    )


def assert_same_as_one_by_one(values: list[bytes], schema: Schema, fmt: str = "json") -> None:
    frame, bad = one_by_one(values, schema, fmt)
    decoded = decode_values(pl.Series(values, dtype=pl.Binary), schema, fmt)
    assert_frame_equal(decoded.frame, frame, check_exact=True)
    assert_frame_equal(decoded.bad, bad)


def valid_record(schema: Schema) -> dict[str, str]:
    return {field.name: VALID[field.name][0] for field in schema.fields}


def written(fields: list[tuple[str, str]], space: str = "") -> bytes:
    body = f",{space}".join(f"{json.dumps(name)}:{space}{value}" for name, value in fields)
    return f"{{{body}}}".encode()


@st.composite
def records(draw, schema: Schema):
    kind = draw(st.integers(0, 19))
    if kind == 0:
        return draw(st.sampled_from(WHOLE))
    fields = [(name, draw(st.sampled_from(VALID[name]))) for name in schema.names]
    if kind < 6:
        fields[draw(st.integers(0, len(fields) - 1))] = (
            draw(st.sampled_from(schema.names)),
            draw(st.sampled_from(WRONG)),
        )
    if kind in (6, 7):
        fields.append((draw(st.sampled_from([*schema.names, "q"])), draw(st.sampled_from(VALID["q"] + WRONG))))
    if kind == 8 or (schema is FILLED and kind > 11):
        for _ in range(draw(st.integers(1, len(fields)))):
            fields.pop(draw(st.integers(0, len(fields) - 1)))
    if kind == 9:
        fields = draw(st.permutations(fields))
    data = written(fields, draw(st.sampled_from(["", "", " ", "\n", "\t"])))
    if kind in (10, 11):
        place = draw(st.integers(0, len(data)))
        data = data[:place] + draw(st.sampled_from(MUTATIONS)) + data[place + draw(st.integers(0, 2)) :]
    return data


MUTATIONS = [
    b"",
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b"\\",
    b",",
    b":",
    b"\n",
    b"\x00",
    b"\xff",
    b"0",
    b"-",
    b".",
    b"e",
    b"null",
    b" ",
]


@pytest.mark.parametrize(
    "schema", [ORDERS, WIDE, NARROW, LAX, FILLED], ids=["orders", "wide", "narrow", "lax", "filled"]
)
def test_values_of_every_adverse_kind_among_good_ones_are_decoded_as_one_by_one(schema):
    names = {**VALID, "order_id": ['"o"'], "customer": ['"c"'], "amount": ["1"]}
    good = {name: names[name][0] for name in schema.names}
    if schema is NARROW:
        good["t"] = '"2024-05-01T10:00:00"'
    values = [written(list(good.items()))]
    for name in schema.names:
        values += [written(list({**good, name: value}.items())) for value in [*names[name], *WRONG]]
    values += [value for whole in WHOLE for value in (whole, values[0])]
    assert_same_as_one_by_one(values, schema)


@pytest.mark.parametrize("schema", [WIDE, NARROW, LAX, FILLED], ids=["wide", "narrow", "lax", "filled"])
@given(data=st.data())
@settings(max_examples=examples(40), deadline=None)
def test_values_of_mutated_json_are_decoded_as_one_by_one(schema, data):
    assert_same_as_one_by_one(data.draw(st.lists(records(schema), min_size=1, max_size=40)), schema)


@pytest.mark.long
@pytest.mark.parametrize("schema", [WIDE, NARROW, LAX, FILLED], ids=["wide", "narrow", "lax", "filled"])
@given(data=st.data())
@settings(max_examples=examples(1000), deadline=None)
def test_values_of_much_mutated_json_are_decoded_as_one_by_one(schema, data):
    assert_same_as_one_by_one(data.draw(st.lists(records(schema), min_size=1, max_size=60)), schema)


@pytest.mark.parametrize(
    "kind", [str, int, float, bool, bytes, date, datetime, list[int], dict[str, int], str | None], ids=str
)
def test_scalars_of_every_adverse_kind_are_decoded_as_one_by_one(kind):
    values = [fragment.encode() for fragment in [*(v for values in VALID.values() for v in values), *WRONG]]
    values += [b'1,"x":2', b'"a","value":1', b"1}{", b" 1", b"1 ", b'"a"b"', *WHOLE]
    assert_same_as_one_by_one(values, Schema.of(kind))


@pytest.mark.parametrize(("fmt", "kind"), [("string", str), ("string", int), ("string", float), ("bytes", bytes)])
def test_formats_other_than_json_are_decoded_as_one_by_one(fmt, kind):
    assert_same_as_one_by_one([b"", b"a", b"\xff", b"1", b"01", "é".encode(), b"1.5", b"NaN"], Schema.of(kind), fmt)


def test_values_that_are_good_are_never_decoded_one_by_one(monkeypatch):
    monkeypatch.setattr(decode, "decode_value", None)
    values = [written(list(valid_record(WIDE).items())), b'{"a":2,"f":0,"s":"y","l":[],"o":{"n":1,"inner":{}},"li":[]}']
    assert len(decode_values(pl.Series(values * 100), WIDE, "json").frame) == 200


def test_values_without_fields_that_have_defaults_are_never_decoded_one_by_one(monkeypatch):
    monkeypatch.setattr(decode, "decode_value", None)
    values = [b"{}", b'{"a": 5, "unknown": null}', b'{"s": "q", "m": "2", "l": []}']
    found = decode_values(pl.Series(values * 100), FILLED, "json").frame
    assert found["a"].to_list() == [3, 5, 3] * 100
    assert found["l"].to_list() == [[1, 2], [1, 2], []] * 100
    assert found["q"].to_list() == [7, 7, 7] * 100


def test_bad_values_in_a_large_batch_cost_few_single_decodes(monkeypatch):
    calls = []
    monkeypatch.setattr(decode, "decode_value", lambda *given: calls.append(1) or decode_value(*given))
    values = [GOOD] * 50_000
    values[7] = b'{"order_id": "o1", "customer": 5, "amount": 12}'
    values[41_000] = b'{"order_id": "o1", "customer": "c", "amount": 1.5}'
    decoded = decode_values(pl.Series(values), ORDERS, "json")
    assert decoded.bad["$index"].to_list() == [7, 41_000]
    assert len(decoded.frame) == 49_998
    assert len(calls) < 100


def test_batches_are_cut_by_bytes_and_by_records(monkeypatch):
    monkeypatch.setattr(json_lines, "_BATCH", 3)
    monkeypatch.setattr(json_lines, "_BATCH_BYTES", 120)
    values = [GOOD, b"x", GOOD.replace(b"c1", b"c" * 500), *[GOOD] * 7]
    assert_same_as_one_by_one(values, ORDERS)


def test_values_with_dicts_are_decoded_sorted_by_key():
    decoded = decode_values(
        pl.Series([b'{"m":{"b":1,"a":2}}', b'{"m":{"a":null}}']), Schema.of({"m": dict[str, int]}), "json"
    )
    assert decoded.frame["m"].to_list() == [[{"key": "a", "value": 2}, {"key": "b", "value": 1}]]
    assert decoded.bad["reason"].to_list() == ["field \"m['a']\": expected integer, it is missing or null"]


def batch(*given: tuple[bytes | None, bytes | None]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "key": pl.Series([key for key, _ in given], dtype=pl.Binary),
            "value": pl.Series([value for _, value in given], dtype=pl.Binary),
            "ts": pl.Series(range(1000, 1000 + len(given)), dtype=pl.Int64),
            "offset": pl.Series(range(len(given)), dtype=pl.Int64),
            "$part": pl.Series([3] * len(given), dtype=pl.Int32),
        }
    )


def test_records_of_a_table_fill_the_key_and_keep_time_offset_and_carried_columns():
    found = decode_records(batch((b"o1", GOOD)), key=ORDER_KEY, schema=ORDERS, fmt="json", table=True)
    assert found.rows.to_dicts() == [
        {
            "$key": b"o1",
            "$tombstone": False,
            "$ts": 1000,
            "$off": 0,
            "$part": 3,
            "order_id": "o1",
            "customer": "c1",
            "amount": 12,
        }
    ]
    assert found.bad.is_empty()


def test_records_whose_value_lacks_the_key_take_it_from_the_record():
    found = decode_records(
        batch((b"o9", b'{"customer":"c","amount":1}')), key=ORDER_KEY, schema=ORDERS, fmt="json", table=False
    )
    assert found.rows["order_id"].to_list() == ["o9"]


@pytest.mark.parametrize("schema", [ORDERS, ORDERS.without(["order_id"])])
def test_records_whose_value_has_another_key_are_bad(schema):
    found = decode_records(batch((b"o2", GOOD), (b"o1", GOOD)), key=ORDER_KEY, schema=schema, fmt="json", table=False)
    assert found.bad["reason"].to_list() == ["field 'order_id' is 'o1', the record's key is 'o2'"]
    assert found.bad.select("$part", "offset", "ts", "key", "value").row(0) == (3, 0, 1000, b"o2", GOOD)
    assert found.rows["$off"].to_list() == [1]
    assert found.rows["order_id"].to_list() == ["o1"]


def test_bad_records_of_a_table_delete_their_key_in_order():
    found = decode_records(
        batch((b"a", None), (None, GOOD), (b"b", b"{"), (b"o1", GOOD), (b"c", GOOD), (b"\xff", GOOD), (b"\xff", None)),
        key=ORDER_KEY,
        schema=ORDERS,
        fmt="json",
        table=True,
    )
    assert found.rows.select("$off", "$tombstone", "order_id", "amount").rows() == [
        (0, True, "a", None),
        (2, True, "b", None),
        (3, False, "o1", 12),
        (4, True, "c", None),
    ]
    assert found.bad["offset"].to_list() == [1, 2, 4, 5, 6]
    assert found.bad["reason"][0] == "the record has no key, and this is a table"
    assert found.bad["reason"][3] == "key: it is not valid UTF-8"
    assert found.dropped == 0


def test_records_of_a_stream_may_lack_the_key_and_are_dropped_without_a_value():
    found = decode_records(
        batch((None, GOOD), (b"o1", None), (None, None), (None, b'{"customer":"c","amount":1}'), (b"x", b"{")),
        key=ORDER_KEY,
        schema=ORDERS,
        fmt="json",
        table=False,
    )
    assert found.rows.select("$key", "$off", "order_id").rows() == [(None, 0, "o1"), (None, 3, None)]
    assert found.dropped == 2
    assert found.bad["offset"].to_list() == [4]


def test_records_of_a_scalar_schema_have_the_key_as_a_column_of_its_own():
    key = KeySpec(("a", "b"), (pl.String(), pl.Int64()))
    found = decode_records(
        batch((b'["x",1]', b"5"), (b'["x",2]', None)), key=key, schema=Schema.of(int), fmt="json", table=True
    )
    assert found.rows.select("$tombstone", "a", "b", "value").rows() == [(False, "x", 1, 5), (True, "x", 2, None)]


def test_records_of_an_empty_batch_have_all_columns():
    found = decode_records(batch(), key=ORDER_KEY, schema=ORDERS, fmt="json", table=True)
    assert found.rows.schema == {
        "$key": pl.Binary,
        "$tombstone": pl.Boolean,
        "$ts": pl.Int64,
        "$off": pl.Int64,
        "$part": pl.Int32,
        "order_id": pl.String,
        "customer": pl.String,
        "amount": pl.Int64,
    }


@given(
    given=st.lists(
        st.tuples(
            st.sampled_from([None, b"o1", b"o2", b"\xff", b""]),
            st.sampled_from(
                [None, GOOD, b"{", b'{"customer":"c","amount":1}', b'{"order_id":5,"customer":"c","amount":1}']
            ),
        ),
        max_size=12,
    ),
    table=st.booleans(),
)
@settings(max_examples=examples(60), deadline=None)
def test_records_in_one_batch_come_out_as_they_would_alone(given, table):
    whole = decode_records(batch(*given), key=ORDER_KEY, schema=ORDERS, fmt="json", table=table)
    alone = [
        decode_records(batch(*given)[place : place + 1], key=ORDER_KEY, schema=ORDERS, fmt="json", table=table)
        for place in range(len(given))
    ]
    if alone:
        assert_frame_equal(whole.rows, pl.concat([each.rows for each in alone]))
        assert_frame_equal(whole.bad, pl.concat([each.bad for each in alone]))
    assert whole.dropped == sum(each.dropped for each in alone)
