"""Topics from the embedded log to Kafka and back."""

from __future__ import annotations

import polars as pl
import pytest

from everstate.log import TopicConfig, open_log
from everstate.reading.copying import copy_topic

pytestmark = [pytest.mark.kafka, pytest.mark.long]
COLUMNS = ("key", "value", "ts", "headers", "partition")


def records(log, topic):
    begins = log.begin_offsets([topic])[topic]
    return pl.concat([log.read(topic, number, start).select(COLUMNS) for number, start in begins.items()])


def test_topics_that_go_to_kafka_and_back_are_what_they_were(log, tmp_path, monkeypatch):
    monkeypatch.setattr("everstate.reading.copying.CHUNK", 2)
    here, back = open_log(tmp_path / "here"), open_log(tmp_path / "back")
    # Not compacted: a broker would begin with that at once.
    here.create_topic("orders", TopicConfig(partitions=3))
    rows = [
        (b"a", b"1", 10, [{"name": "who", "value": b"x"}, {"name": "who", "value": None}], 0),
        (b"b", b"\xff\x00", 20, None, 2),
        (b"c", b"", 30, None, 1),
        (b"a", None, 40, [{"name": "why", "value": b"gone"}], 0),
        (b"a", b"2", 35, None, 0),
    ]
    kinds = {"key": pl.Binary, "value": pl.Binary, "ts": pl.Int64, "partition": pl.Int32}
    here.append("orders", pl.DataFrame(rows, schema=list(COLUMNS), schema_overrides=kinds, orient="row"))
    assert copy_topic(here, log, "orders").records == 5
    assert copy_topic(log, back, "orders").records == 5
    assert records(log, "orders").equals(records(here, "orders"))
    assert records(back, "orders").equals(records(here, "orders"))
    assert back.describe("orders").config.partitions == 3


def test_topic_that_is_made_for_a_copy_keeps_its_records_as_the_one_before(log, tmp_path):
    here, back = open_log(tmp_path / "here"), open_log(tmp_path / "back")
    config = TopicConfig(partitions=2, compact=True, delete_retention_ms=5000)
    here.create_topic("orders", config)
    copy_topic(here, log, "orders")
    copy_topic(log, back, "orders")
    assert back.describe("orders").config == here.describe("orders").config == config


def test_gaps_of_transactions_are_no_records(log, foreign, tmp_path):
    log.create_topic("orders")
    for undone in (True, False, True):
        foreign.begin_transaction()
        foreign.produce("orders", b"undone" if undone else b"kept", partition=0)
        foreign.flush()
        if undone:
            foreign.abort_transaction()
        else:
            foreign.commit_transaction()
    there = open_log(tmp_path / "there")
    assert copy_topic(log, there, "orders").records == 1
    assert records(there, "orders")["value"].to_list() == [b"kept"]
