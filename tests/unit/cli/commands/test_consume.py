from __future__ import annotations

import json
import threading

import pytest
from rich.cells import cell_len

from everstate.errors import ConfigurationError, TopicNotFoundError


@pytest.fixture
def orders(everstate):
    everstate("topic", "create", "orders", "--compact")
    lines = [("a", 1), ("b", 1), ("a", 2)]
    for key, value in lines:
        everstate("produce", "orders", "--key", key, stdin=f"{value}\n")
    everstate("produce", "orders", "--key", "b", "--tombstone")
    return everstate


def test_consume_prints_every_record(orders):
    found = [(record["offset"], record["key"], record["value"]) for record in orders.records("orders")]
    assert found == [(0, "a", 1), (1, "b", 1), (2, "a", 2), (3, "b", None)]
    assert orders.records("orders", "--from-beginning") == orders.records("orders")


def test_consume_latest_prints_the_table(orders):
    assert [(record["key"], record["value"]) for record in orders.records("orders", "--latest")] == [("a", 2)]


def test_consume_max_stops_early(orders):
    assert [record["offset"] for record in orders.records("orders", "--max", "2")] == [0, 1]


def test_consume_readable_lines_show_place_key_and_value(orders):
    lines = orders("consume", "orders").stdout.splitlines()
    assert lines[0].split()[2:] == ["0:0", "a", "1"]
    assert lines[3].split()[2:] == ["0:3", "b", "(deleted)"]


def test_consume_follow_shows_what_comes_next(orders):
    later = threading.Timer(0.5, lambda: _produce(orders))
    later.start()
    found = orders.records("orders", "--follow", "--max", "2")
    later.join()
    assert [(record["key"], record["value"]) for record in found] == [("c", 7), ("c", 8)]


def _produce(orders):
    import polars as pl

    from everstate.log import open_log
    from everstate.log.records import CONTENT

    rows = [{"key": b"c", "value": value} for value in (b"7", b"8")]
    open_log(orders.path / "log").append(
        "orders", pl.DataFrame(rows, schema={name: CONTENT[name] for name in ("key", "value")})
    )


def test_consume_unknown_topic_says_how_to_create_it(orders):
    with pytest.raises(TopicNotFoundError, match="everstate topic create none"):
        orders("consume", "none")


@pytest.fixture
def sales(everstate):
    everstate("topic", "create", "sales", "--partitions", "2")
    lines = [
        {"key": key, "value": value, "timestamp": 1_714_557_600_000 + 1000 * place}
        for place, (key, value) in enumerate(
            [
                ("o1", {"customer": "ada", "amount": 5, "note": None}),
                ("o2", {"customer": "bob", "amount": 120.5, "tags": ["new", "rush"]}),
                ("o1", {"customer": "ada", "amount": 200, "note": "x" * 60}),
                ("o3", {"customer": "日本の客", "amount": 7}),
                ("o2", None),
            ]
        )
    ]
    everstate("produce", "sales", stdin="".join(json.dumps(line) + "\n" for line in lines))
    return everstate


def amounts_by_key(records):
    return sorted(((record["key"], record["value"] and record["value"]["amount"]) for record in records), key=str)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--key", "o1"], [("o1", 5), ("o1", 200)]),
        (["--key", "none"], []),
        (["--where", "amount > 100"], [("o1", 200), ("o2", 120.5)]),
        (["--where", "amount > 100 AND customer = 'ada'"], [("o1", 200)]),
        (["--where", "customer LIKE '%客'"], [("o3", 7)]),
        (["--where", "key = 'o3'"], [("o3", 7)]),
        (["--where", "note IS NOT NULL"], [("o1", 200)]),
        (["--latest", "--where", "amount > 100"], [("o1", 200)]),
        (["--key", "o1", "--where", "amount < 100"], [("o1", 5)]),
        (["--tail", "2"], [("o2", None), ("o3", 7)]),
        (["--tail", "1", "--where", "customer = 'ada'"], [("o1", 200)]),
        (["--tail", "1", "--latest"], [("o3", 7)]),
        (["--tail", "100"], [("o1", 5), ("o1", 200), ("o2", None), ("o2", 120.5), ("o3", 7)]),
    ],
)
def test_consume_shows_only_what_is_asked_for(sales, options, found):
    assert amounts_by_key(sales.records("sales", *options)) == sorted(found, key=str)


def test_consume_where_record_that_cannot_be_compared_is_told(sales):
    sales("produce", "sales", "--key", "bad", stdin="5\n")
    result = sales("consume", "sales", "--where", "amount > 100", "--json")
    assert len(result.stdout.splitlines()) == 2
    assert "1 record of topic 'sales' could not be compared. partition" in result.stderr


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("amuont > 5", "no record of topic 'sales' has the field 'amuont'"),
        ("amount >", "is not a condition"),
        ("amount + 1", "is neither true nor false"),
        ("amount > 'x' || 5", "cannot be evaluated|neither"),
        ("amount IN (SELECT 1)", "is not a condition|cannot be evaluated"),
        ("read_csv('/etc/passwd')", "is not a condition"),
    ],
)
def test_consume_where_that_is_no_condition_is_named(sales, condition, message):
    with pytest.raises(ConfigurationError, match=message) as refused:
        sales("consume", "sales", "--where", condition)
    assert refused.value.hint


def test_consume_where_number_meets_a_field_that_is_text_is_told_in_words(sales):
    sales("produce", "sales", "--key", "o9", stdin='{"amount": "much"}\n')
    with pytest.raises(ConfigurationError, match="cannot compare string with numeric type") as refused:
        sales("consume", "sales", "--where", "amount > 100")
    assert "col(" not in str(refused.value)
    assert refused.value.hint.startswith("amount is text here, since not all values are numbers. Write it as in SQL")


def test_consume_fields_are_those_of_the_values(sales):
    result = sales("consume", "sales", "--fields", "amount, wrong", "--json", "--key", "o1")
    assert [json.loads(line)["value"] for line in result.stdout.splitlines()] == [{"amount": 5}, {"amount": 200}]
    assert "No record has the field 'wrong'" in result.stderr


def shown(sales, monkeypatch, width: int, *options: str) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = sales("consume", "sales", "--table", *options).stdout.splitlines()
    assert all(cell_len(line) <= width for line in lines)
    return lines


def test_consume_table_at_80_columns_keeps_time_and_place_and_cuts_what_is_long(sales, monkeypatch):
    lines = shown(sales, monkeypatch, 80, "--key", "o1")
    assert lines[0].split() == ["time", "at", "key", "customer", "amount", "note"]
    assert lines[1].split()[:6] == ["2024-05-01", "10:00:00", lines[1].split()[2], "o1", "ada", "5"]
    assert lines[2].endswith("xxx…")
    assert len(lines) == 3


def test_consume_table_too_narrow_says_what_is_not_shown(sales, monkeypatch):
    lines = shown(sales, monkeypatch, 60)
    assert lines[0].split() == ["time", "at", "key", "customer", "amount", "tags"]
    assert lines[1] == "(--fields chooses; no room for: note)"
    chosen = shown(sales, monkeypatch, 60, "--fields", "tags")
    assert chosen[0].split() == ["time", "at", "key", "tags"]


def test_consume_table_at_140_columns_shows_every_field(sales, monkeypatch):
    lines = shown(sales, monkeypatch, 140)
    assert lines[0].split() == ["time", "at", "key", "customer", "amount", "tags", "note"]
    assert any('["new", "rush"]' in line for line in lines)
    assert any(line.endswith("(deleted)") for line in lines)


def test_consume_table_of_bare_values_has_one_column(everstate):
    everstate("produce", "words", "--create", stdin='"hello"\n7\n')
    lines = everstate("consume", "words", "--table").stdout.splitlines()
    assert [line.split()[-1] for line in lines] == ["value", "hello", "7"]


def test_consume_json_and_table_exclude_each_other(sales):
    with pytest.raises(ConfigurationError, match="exclude each other"):
        sales("consume", "sales", "--json", "--table")
