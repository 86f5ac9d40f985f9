from __future__ import annotations

import pytest

from everstate.errors import ConfigurationError, TopicExistsError, TopicNameError, TopicNotFoundError
from everstate.log import Log, TopicConfig


def test_log_any_implementation_has_every_operation_of_the_protocol(bench):
    assert isinstance(bench.log, Log)


def test_create_topic_new_name_is_listed_and_described(bench):
    bench.topic("orders", partitions=3, compact=True, retention_ms=1000, delete_retention_ms=5)
    assert bench.log.topics() == ["orders"]
    info = bench.log.describe("orders")
    assert info.config == TopicConfig(partitions=3, compact=True, retention_ms=1000, delete_retention_ms=5)
    assert (info.start, info.end, info.most_records) == ({0: 0, 1: 0, 2: 0}, {0: 0, 1: 0, 2: 0}, 0)


def test_topics_of_everstate_itself_are_listed_only_if_they_are_asked_for(bench):
    bench.topic("orders")
    bench.topic("__everstate.f.1")
    assert bench.log.topics() == ["orders"]
    assert bench.log.topics(internal=True) == ["__everstate.f.1"]


def test_create_topic_existing_name_is_refused(bench):
    bench.topic("orders")
    with pytest.raises(TopicExistsError, match="topic 'orders' already exists"):
        bench.topic("orders")


def test_create_topic_existing_name_with_exist_ok_keeps_its_configuration(bench):
    bench.topic("orders", partitions=3)
    bench.log.create_topic("orders", TopicConfig(partitions=5), exist_ok=True)
    assert bench.log.describe("orders").config.partitions == 3


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "a b", "ü", "x" * 250, "a\n", "a\0b", "C:\\x"])
def test_create_topic_illegal_name_is_refused_and_leaves_nothing(bench, name):
    with pytest.raises(TopicNameError, match="cannot be the name of a topic"):
        bench.topic(name)
    assert bench.log.topics() == []


@pytest.mark.parametrize("name", ["a", "x" * 249, "..a", "Orders.v2_x-1", "con", "-"])
def test_create_topic_legal_name_takes_records(bench, name):
    bench.topic(name)
    bench.send(name, ("k", "v"))
    assert bench.values(name) == [("k", "v")]


def test_create_topic_names_that_differ_in_case_are_two_topics(bench):
    bench.topic("orders")
    bench.topic("Orders")
    bench.send("orders", ("k", "small"))
    bench.send("Orders", ("k", "large"))
    bench.log.delete_topic("Orders")
    assert bench.values("orders") == [("k", "small")]


@pytest.mark.parametrize("config", [{"partitions": 0}, {"partitions": -1}, {"retention_ms": -1}])
def test_create_topic_impossible_configuration_is_refused(bench, config):
    with pytest.raises(ConfigurationError, match="topic 'orders' cannot have"):
        bench.topic("orders", **config)


def test_delete_topic_its_records_are_gone_and_the_name_is_free(bench):
    bench.topic("orders")
    bench.send("orders", ("k", "v"))
    bench.log.delete_topic("orders")
    assert bench.log.topics() == []
    bench.topic("orders")
    assert bench.log.describe("orders").end == {0: 0}
    assert bench.values("orders") == []


def test_topic_id_of_a_topic_created_again_is_another(bench):
    bench.topic("orders")
    bench.topic("prices")
    first = bench.log.describe("orders").id
    bench.send("orders", ("k", "v"))
    assert bench.log.topic_ids(["orders", "prices"]) == {"orders": first, "prices": bench.log.describe("prices").id}
    bench.log.delete_topic("orders")
    bench.topic("orders")
    assert len({first, *bench.log.topic_ids(["orders", "prices"]).values()}) == 3
    assert bench.log.topic_ids(["prices", "prices"]) == bench.log.topic_ids(["prices"])
    assert bench.log.end_offsets(["prices", "prices"]) == bench.log.end_offsets(["prices"])


def test_delete_topic_only_with_another_id_stays(bench):
    bench.topic("orders")
    first = bench.log.describe("orders").id
    bench.log.delete_topic("orders")
    bench.topic("orders")
    bench.send("orders", ("k", "v"))
    bench.log.delete_topic("orders", only=first)
    assert bench.values("orders") == [("k", "v")]
    bench.log.delete_topic("orders", only=bench.log.describe("orders").id)
    assert bench.log.topics() == []


@pytest.mark.parametrize(
    "operation",
    [
        lambda log: log.describe("none"),
        lambda log: log.topic_ids(["none"]),
        lambda log: log.delete_topic("none"),
        lambda log: log.begin_offsets(["none"]),
        lambda log: log.end_offsets(["none"]),
        lambda log: log.read("none", 0, 0),
        lambda log: log.splits("none", 0, 0, 0, max_records=1),
        lambda log: log.latest("none"),
        lambda log: log.compact("none"),
        lambda log: log.maintain("none"),
    ],
)
def test_unknown_topic_any_operation_names_it(bench, operation):
    with pytest.raises(TopicNotFoundError, match="topic 'none' does not exist"):
        operation(bench.log)


def test_meta_documents_are_kept_by_service_and_name(bench):
    bench.log.set_meta("a", "x", "1")
    bench.log.set_meta("b", "x", "2")
    bench.log.set_meta("a", "x", "3")
    assert [bench.log.get_meta(service, "x") for service in "abc"] == ["3", "2", None]
    bench.log.set_meta("a", "x", None)
    assert bench.log.get_meta("a", "x") is None


@pytest.mark.needs("several")
def test_log_id_is_of_this_log_alone(bench, new_bench):
    bench.topic("orders")
    other = new_bench()
    other.topic("orders")
    assert bench.log.id
    assert bench.log.id != other.log.id


def test_metas_with_a_prefix_are_those_that_begin_with_it(bench):
    for name in ("a/1", "a/2", "ab", "b", "a"):
        bench.log.set_meta("shop", name, name)
    assert list(bench.log.metas("shop", "a/")) == ["a/1", "a/2"]
    assert list(bench.log.metas("shop")) == ["a", "a/1", "a/2", "ab", "b"]


def test_services_are_those_that_keep_documents(bench):
    assert bench.log.services() == []
    for service in ("shop", "bank", "gone", "forgotten"):
        bench.log.set_meta(service, "x", "1")
        bench.log.set_meta(service, "y", "1")
    bench.log.set_meta("gone", "x", None)
    bench.log.set_meta("gone", "y", None)
    bench.log.forget("forgotten")
    assert bench.log.services() == ["bank", "shop"]
