from __future__ import annotations

import threading

import pytest

from everstate.errors import TopicNotFoundError


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
