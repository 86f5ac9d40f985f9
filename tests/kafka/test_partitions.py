"""Partitions that a topic gets while it is read and written."""

from __future__ import annotations

import polars as pl
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from everstate.errors import LogError
from everstate.log import TopicConfig
from tests.kafka.conftest import frame
from tests.kafka.test_deployments import ProcessLog
from tests.simulation.world import World

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


@pytest.fixture
def world(servers, tmp_path):
    world = World(outputs=("balances", "even"), log=ProcessLog(servers, tmp_path / "staging"))
    world.send(8)
    assert world.deploy(0) == "done"
    yield world
    world.log.close()


def grow(servers, topic, partitions):
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(30)


def test_source_that_gets_partitions_while_it_is_read_is_read_whole_by_this_version_and_the_next(world, servers):
    def more():
        grow(servers, "payments", 5)
        world.send(12)

    world.send(4)
    assert world.deploy(0, ("log.commit.after_transaction", 1), then=more) == "done"
    assert world.deploy(0) == "done"
    assert set(world.log.end_offsets(["payments"])["payments"]) == set(range(5))
    world.check(0)
    world.send(4)
    assert world.deploy(1) == "done"
    world.check(1)


def test_stream_that_gets_partitions_goes_on_with_all_of_them(world, servers):
    grow(servers, "even", 5)
    world.send(20)
    assert world.deploy(0) == "done"
    world.check(0)


def test_table_that_gets_partitions_stops_its_service_by_name_and_is_published_anew_on_a_new_topic(world, servers):
    grow(servers, "balances", 5)
    world.send(4)
    with pytest.raises(LogError, match=r"'balances' has 5 partitions now, and had 2 (?s:.*)create it again"):
        world.deploy(0)
    world.log.delete_topic("balances")
    world.log.create_topic("balances", TopicConfig(partitions=5, compact=True))
    assert world.deploy(0) == "done"
    world.check(0)
    assert world.log.describe("balances").config.partitions == 5
