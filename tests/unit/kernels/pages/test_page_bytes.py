import datetime as dt
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

from everstate.kernels.pages.page_bytes import combine, decode, encode, expected_payload

COLUMNS = {
    "$key": ([b"a", b"", b"\xff" * 40], pl.Binary()),
    "text": (["ä", None, ""], pl.String()),
    "whole": ([1, None, -(2**63)], pl.Int64()),
    "huge": ([-(2**127), None, 2**127 - 1], pl.Int128()),
    "float": ([float("nan"), -0.0, None], pl.Float64()),
    "flag": ([True, None, False], pl.Boolean()),
    "decimal": ([Decimal("1.50"), None, Decimal(-2)], pl.Decimal(20, 2)),
    "moment": ([dt.datetime(2024, 1, 1, tzinfo=dt.UTC), None, None], pl.Datetime("us", "UTC")),
    "day": ([dt.date(2024, 1, 1), None, None], pl.Date()),
    "list": ([["x", None], [], None], pl.List(pl.String())),
    "struct": (
        [{"a": 1, "b": [b"x"]}, None, {"a": None, "b": None}],
        pl.Struct({"a": pl.Int64(), "b": pl.List(pl.Binary())}),
    ),
    "colour": (["red", None, "green"], pl.Enum(["red", "green"])),
    "nothing": ([None] * 3, pl.Null()),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_blocks_column_of_any_type_comes_back(name):
    values, kind = COLUMNS[name]
    frame = pl.DataFrame({name: pl.Series(values, dtype=kind), "other": [1, 2, 3]})
    blocks, payloads = encode(frame, [0, 1, 3])
    decoded = decode(blocks)
    assert (decoded.order, decoded.lengths, decoded.payloads) == ([0, 1], [1, 2], payloads)
    assert_frame_equal(decoded.frame, frame)
    assert_frame_equal(decode(blocks[1:]).frame, frame[1:])


def test_blocks_of_several_schemas_are_combined_with_nulls():
    one = encode(pl.DataFrame({"$key": [b"a", b"b"], "x": [1, 2]}), [0, 1, 2])[0]
    two = encode(pl.DataFrame({"$key": [b"c"], "y": [3]}), [0, 1])[0]
    decoded = decode([one[0], two[0], one[1]])
    assert decoded.frame.rows() == [(b"a", 1, None), (b"b", 2, None), (b"c", None, 3)]
    assert (decoded.order, decoded.lengths) == ([0, 2, 1], [1, 1, 1])


def test_expected_payload_is_near_the_payload():
    frame = pl.DataFrame(
        {"$key": [b"%d" % i for i in range(5_000)], "text": ["long text " * (i % 9) for i in range(5_000)]}
    )
    exact = sum(encode(frame, range(0, 5_001, 500))[1])
    assert abs(expected_payload(frame) - exact) < exact * 0.05


def test_blocks_each_is_an_arrow_stream_of_its_own():
    block = encode(pl.DataFrame({"x": [1, 2, 3]}), [0, 2, 3])[0][1]
    assert pa.ipc.open_stream(block).read_all().to_pydict() == {"x": [3]}


def test_payload_leaves_out_schema_and_framing():
    frame = pl.DataFrame({f"column {i}": [1, 2] for i in range(20)})
    (block,), (payload,) = encode(frame, [0, 2])
    assert payload == 20 * 2 * 8
    assert len(block) > 4 * payload


@pytest.mark.parametrize("keep", [0, 3, 20, -1, -200])
def test_decode_truncated_block_is_refused(keep):
    block = encode(pl.DataFrame({"x": list(range(100))}), [0, 100])[0][0]
    with pytest.raises(pa.ArrowInvalid):
        decode([block[:keep]])


def test_encode_no_rows_gives_no_blocks():
    assert encode(pl.DataFrame({"x": [1]}), [0]) == ([], [])


def test_combine_same_columns_in_another_order_goes_by_name():
    assert combine([pl.DataFrame({"a": [1], "b": [2]}), pl.DataFrame({"b": [3], "a": [4]})]).rows() == [(1, 2), (4, 3)]
