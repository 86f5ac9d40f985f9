from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from everstate.errors import DecodeError
from everstate.kernels.output import places
from everstate.kernels.records.keys import decode_keys, encode_keys
from everstate.schema.keys import KeySpec, decode_key, encode_key
from everstate.schema.partitioner import partition_of
from everstate.schema.windowed_keys import WindowedKeys

MOMENT = pl.Datetime("us", "UTC")
START = datetime(2026, 5, 1, 10, tzinfo=UTC)
NAMES = ("user", "window_start", "window_end")
TIMES = KeySpec(NAMES, (pl.String(), MOMENT, MOMENT), windows=WindowedKeys(300_000))
SESSIONS = KeySpec(NAMES, (pl.String(), MOMENT, MOMENT), windows=WindowedKeys(None))
TWO = KeySpec(("country", *NAMES), (pl.String(), pl.Int64(), MOMENT, MOMENT), windows=WindowedKeys(1000))


def bounds(minutes, start=START):
    return (start, start + timedelta(minutes=minutes))


@pytest.mark.parametrize(
    ("key", "spec", "written"),
    [
        (("ada", *bounds(5)), TIMES, "616461" + "0000019de2fb1900"),
        (("ada", *bounds(7)), SESSIONS, "616461" + "0000019de30181a0" + "0000019de2fb1900"),
        (("", *bounds(0)), SESSIONS, "0000019de2fb1900" * 2),
        (("pt", 7, START, START + timedelta(seconds=1)), TWO, b'["pt",7]'.hex() + "0000019de2fb1900"),
    ],
)
def test_windowed_key_is_the_group_and_the_bounds(key, spec, written):
    assert encode_key(key, spec).hex() == written
    assert decode_key(bytes.fromhex(written), spec) == key
    frame = pl.DataFrame([key], schema=dict(zip(spec.names, spec.dtypes, strict=True)), orient="row")
    keys = encode_keys(frame, spec)
    assert keys.to_list() == [bytes.fromhex(written)]
    columns, bad = decode_keys(keys, spec)
    assert pl.DataFrame(columns).rows() == [key]
    assert not bad.any()


@pytest.mark.parametrize(
    ("data", "spec", "why"),
    [
        (b"ada", TIMES, "3 bytes are too few"),
        (b"ada" + bytes(8), SESSIONS, "11 bytes are too few"),
        (b"ada" + b"\x7f" * 8, TIMES, "outside of the years"),
        (b"\xff" + bytes(8), TIMES, "not valid UTF-8"),
    ],
)
def test_windowed_key_of_other_bytes_is_refused(data, spec, why):
    with pytest.raises(DecodeError, match=why):
        decode_key(data, spec)
    keys = pl.Series([data, None, encode_key(("ada", *bounds(5)), spec)], dtype=pl.Binary)
    columns, bad = decode_keys(keys, spec)
    assert bad.to_list() == [True, False, False]
    assert columns["user"].to_list() == [None, None, "ada"]


def test_windowed_keys_of_one_group_lie_in_the_partition_of_the_group():
    keys = pl.Series([encode_key((user, *bounds(5 * n)), SESSIONS) for user in "abcdef" for n in range(9)])
    found = places(keys, 7, SESSIONS.windows).to_list()
    assert found == [place for place in partition_of(pl.Series([*"abcdef"]).cast(pl.Binary), 7) for _ in range(9)]
