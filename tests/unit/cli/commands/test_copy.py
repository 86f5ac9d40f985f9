from __future__ import annotations

import polars as pl
import pytest

from everstate.errors import ConfigurationError, LogError
from everstate.log import TopicConfig, open_log
from everstate.reading import copying

ROWS = pl.DataFrame(
    {
        "key": [b"a", b"b", b"c", b"a"],
        "value": [b"1", b"2", b"3", None],
        "ts": [10, 20, 30, 40],
        "headers": [[{"name": "who", "value": b"x"}], None, None, None],
        "partition": [0, 2, 1, 0],
    },
    schema_overrides={"partition": pl.Int32},
)


@pytest.fixture
def orders(everstate):
    log = open_log(everstate.path / "log")
    log.create_topic("orders", TopicConfig(partitions=3, compact=True, delete_retention_ms=5000))
    log.append("orders", ROWS)
    return log


def records(log, topic):
    partitions = log.begin_offsets([topic])[topic]
    return pl.concat([log.read(topic, number, 0).drop("offset") for number in partitions]).rows()


def test_copy_keeps_keys_times_headers_tombstones_and_partitions(everstate, orders, monkeypatch):
    monkeypatch.setattr(copying, "CHUNK", 1)
    result = everstate("copy", "orders", "--to", str(everstate.path / "other"))
    assert result.stdout == "orders: 4 records, created\n"
    other = open_log(everstate.path / "other")
    assert records(other, "orders") == records(orders, "orders")
    assert other.describe("orders").config == orders.describe("orders").config


def test_copy_to_another_number_of_partitions_goes_by_the_keys(everstate, orders):
    other = open_log(everstate.path / "other")
    other.create_topic("orders", TopicConfig(partitions=1))
    result = everstate("copy", "--all", "--to", str(everstate.path / "other"))
    assert result.stdout == "orders: 4 records, in different partitions\n"
    assert sorted(row[2] for row in records(other, "orders")) == [10, 20, 30, 40]


def test_copy_to_a_topic_that_has_records_is_refused_unless_they_are_to_be_added(everstate, orders):
    there = str(everstate.path / "other")
    everstate("copy", "orders", "--to", there)
    with pytest.raises(LogError, match="topic 'orders' of the target is not empty"):
        everstate("copy", "orders", "--to", there)
    everstate("copy", "orders", "--to", there, "--append")
    assert len(records(open_log(there), "orders")) == 8


def test_copy_without_a_topic_or_to_the_same_log_is_refused(everstate, orders):
    with pytest.raises(ConfigurationError, match="no topic was named"):
        everstate("copy", "--to", str(everstate.path / "other"))
    with pytest.raises(ConfigurationError, match="the log to copy from is the one to copy to"):
        everstate("copy", "orders", "--to", orders.url)
