from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl
import pytest

from everstate.errors import ConfigurationError, DecodeError, TopicNotFoundError
from everstate.log import TopicConfig, open_log

SERVICE = """
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
import everstate as es

app = es.Service("shop")
app.table("orders", key="id", schema={
    "id": int, "amount": float, "day": date, "at": datetime, "price": Decimal, "raw": bytes, "tags": list[str],
    "counts": dict[str, int], "note": str | None}).to("copy")
"""
ROWS = [
    {
        "amount": 5,
        "day": "2024-05-01",
        "at": "2024-05-01T10:00:00Z",
        "price": "12.50",
        "raw": "/wA=",
        "tags": ["a", 'b"c'],
        "counts": {"x": 1},
        "note": "one, two",
    },
    {
        "amount": 2.5,
        "day": "2024-05-02",
        "at": "2024-05-01T12:00:00+02:00",
        "price": "1",
        "raw": "",
        "tags": [],
        "counts": {},
        "note": None,
    },
]


@pytest.fixture
def orders(everstate):
    """A topic of typed records, and the service that declares it."""
    log = open_log(everstate.path / "log")
    log.create_topic("orders", TopicConfig(partitions=2))
    values = [*(json.dumps(row).encode() for row in ROWS), None]
    log.append(
        "orders",
        pl.DataFrame(
            {"key": [b"1", b"2", b"2"], "value": values, "ts": [1000, 2000, 3000], "partition": [0, 1, 1]},
            schema_overrides={"value": pl.Binary, "partition": pl.Int32},
        ),
    )
    (everstate.path / "shop.py").write_text(SERVICE)

    def run(name: str, *options: str):
        file = everstate.path / name
        result = everstate("export", "orders", str(file), "--service", str(everstate.path / "shop.py"), *options)
        return file, result

    return run


READERS = {"parquet": pl.read_parquet, "arrow": pl.read_ipc}


@pytest.mark.parametrize("kind", READERS)
def test_export_columnar_file_has_the_types_of_the_service(orders, kind):
    file, result = orders(f"orders.{kind}")
    frame = READERS[kind](file)
    assert frame.row(0, named=True) == {
        "id": 1,
        "amount": 5.0,
        "day": date(2024, 5, 1),
        "at": datetime(2024, 5, 1, 10, tzinfo=UTC),
        "price": Decimal("12.5"),
        "raw": b"\xff\x00",
        "tags": ["a", 'b"c'],
        "counts": [{"key": "x", "value": 1}],
        "note": "one, two",
    }
    assert frame["id"].to_list() == [1, 2, 2]
    assert frame["amount"].to_list() == [5.0, 2.5, None]
    assert f"orders.{kind}: 3 rows, " in result.stdout


def test_export_csv_has_nested_values_as_json(orders):
    file, _ = orders("orders.csv")
    assert file.read_text().splitlines() == [
        "id,amount,day,at,price,raw,tags,counts,note",
        '1,5.0,2024-05-01,2024-05-01T10:00:00Z,12.5,/wA=,"[""a"",""b\\""c""]","{""x"":1}","one, two"',
        '2,2.5,2024-05-02,2024-05-01T10:00:00Z,1,"",[],{},',
        "2,,,,,,,,",
    ]


def test_export_json_lines_are_those_that_a_record_has(orders):
    file, _ = orders("orders.jsonl", "--latest")
    (row,) = [json.loads(line) for line in file.read_text().splitlines()]
    assert row == {"id": 1, **ROWS[0], "amount": 5.0, "price": "12.5"}


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (["--from", "1970-01-01T00:00:02"], [2, 2]),
        (["--to", "1970-01-01T00:00:02"], [1]),
        (["--latest"], [1]),
        (["--latest", "--from", "1970-01-01T00:00:02"], []),
    ],
)
def test_export_between_times_has_only_these_records(orders, options, ids):
    file, _ = orders("orders.parquet", *options)
    assert pl.read_parquet(file)["id"].to_list() == ids


def test_export_with_metadata_says_where_each_row_was(orders):
    file, _ = orders("orders.parquet", "--metadata")
    frame = pl.read_parquet(file)
    assert frame.columns[-4:] == ["$timestamp", "$partition", "$offset", "$deleted"]
    assert frame.select("$partition", "$offset", "$deleted").rows() == [(0, 0, False), (1, 0, False), (1, 1, True)]


def test_export_without_a_service_infers_the_columns(everstate):
    everstate("topic", "create", "t")
    everstate("produce", "t", "--key", "k", stdin='{"n": 1}\n{"n": 2.5, "m": [1]}\n')
    file = everstate.path / "t.parquet"
    everstate("export", "t", str(file))
    assert pl.read_parquet(file).to_dicts() == [{"key": "k", "n": 1.0, "m": None}, {"key": "k", "n": 2.5, "m": [1]}]


def test_export_more_than_is_held_at_once_is_one_file(everstate, monkeypatch):
    monkeypatch.setattr("everstate.reading.spans.RECORDS_AT_A_TIME", 7)
    everstate("topic", "create", "t", "--partitions", "3")
    everstate("produce", "t", "--key-field", "n", stdin="".join(f'{{"n": {n}}}\n' for n in range(100)))
    for kind in ("parquet", "arrow", "csv", "jsonl"):
        file = everstate.path / f"t.{kind}"
        everstate("export", "t", str(file))
        read = {**READERS, "csv": pl.read_csv, "jsonl": pl.read_ndjson}[kind]
        assert sorted(read(file)["n"].to_list()) == list(range(100))


def test_export_bad_record_is_named_and_no_file_is_made(everstate):
    everstate("topic", "create", "t")
    everstate("produce", "t", stdin='{"n": 1}\n5\n')
    file = everstate.path / "t.csv"
    file.write_text("as it was")
    with pytest.raises(DecodeError, match=r"1 record of topic 't' cannot be decoded\. partition 0, offset 1"):
        everstate("export", "t", str(file))
    assert file.read_text() == "as it was"
    assert sorted(path.name for path in everstate.path.iterdir()) == ["log", "t.csv"]
    result = everstate("export", "t", str(file), "--skip-bad")
    assert "1 record of topic 't' left out. partition 0, offset 1" in result.stderr
    assert pl.read_csv(file)["n"].to_list() == [1]


@pytest.mark.parametrize("name", ["t", "t.xlsx", "t.parqet", "none/t.csv", "folder.csv"])
def test_export_file_that_cannot_be_written_is_named(everstate, name):
    everstate("topic", "create", "t")
    (everstate.path / "folder.csv").mkdir()
    with pytest.raises(ConfigurationError) as refused:
        everstate("export", "t", str(everstate.path / name))
    assert refused.value.hint


def test_export_what_cannot_be_is_named(everstate):
    everstate("topic", "create", "t")
    with pytest.raises(TopicNotFoundError):
        everstate("export", "none", str(everstate.path / "t.csv"))
    with pytest.raises(ConfigurationError, match="cannot end at a time"):
        everstate("export", "t", str(everstate.path / "t.csv"), "--latest", "--to", "2024-05-01")
    with pytest.raises(ConfigurationError, match="'soon' is not a time"):
        everstate("export", "t", str(everstate.path / "t.csv"), "--from", "soon")
