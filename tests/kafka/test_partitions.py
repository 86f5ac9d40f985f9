"""Partitions that a topic gets while it is read and written."""

from __future__ import annotations

import polars as pl
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from everstate.log import TopicConfig
from tests.kafka.conftest import frame

pytestmark = [pytest.mark.kafka, pytest.mark.long]


def test_partitions_that_are_added_are_seen_by_a_log_that_was_open_before(log, servers):
    log.create_topic("orders", TopicConfig(partitions=1))
    log.append("orders", frame(("a", "1"), ("b", "2")))
    before = log.end_offsets(["orders"])["orders"]
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    admin.create_partitions([NewPartitions("orders", 3)])["orders"].result(30)
    placed = frame(("c", "3"), ("a", "4")).with_columns(pl.Series("partition", [2, 1], dtype=pl.Int32))
    log.append("orders", placed)
    after = log.end_offsets(["orders"])["orders"]
    assert after[0] == before[0]
    assert set(after) == {0, 1, 2}
    assert log.read("orders", 2, 0)["value"].to_list() == [b"3"]
    (split,) = log.splits("orders", 1, 0, after[1], max_records=100)
    assert log.read_split(split)["value"].to_list() == [b"4"]
    # A key that has moved has its last record in the partition that it belongs to now.
    assert log.describe("orders").config.partitions == 3
