"""What other clients see of us, and we of them: only what was committed, all of it, once."""

from __future__ import annotations

import threading
import time
from itertools import pairwise

import polars as pl
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from everstate.errors import (
    LogError,
    LogUnavailableError,
    OffsetOutOfRangeError,
    TopicNotFoundError,
    TopicRecreatedError,
    UnsupportedError,
)
from everstate.log import Copy, Cutover, TopicConfig, open_log
from everstate.log.crash import Crash, crash_at, intercepted
from everstate.log.kafka import clients, cutovers, private, reading
from tests.kafka.conftest import batch, frame, table, values

pytestmark = [pytest.mark.kafka]


def committed(servers, topic):
    """What a client that reads only what was committed finds in partition 0."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "audit",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    while True:
        message = consumer.poll(10)
        assert message is not None
        if message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF
            consumer.close()
            return found
        found.append((message.key(), message.value(), dict(message.headers() or ())))


def test_commit_seen_by_another_client_is_whole_and_says_who_made_it(log, servers):
    log.create_topic("totals", TopicConfig(compact=True))
    lease = log.acquire("service")
    made = batch(log, lease, {"totals": [("a", "1"), ("b", None)]}, 0)
    with intercepted(crash_at("log.commit.inside_transaction")), pytest.raises(Crash):
        log.commit(*made)
    assert committed(servers, "totals") == []
    log.commit(*made)
    assert log.commit(*batch(log, lease, {"totals": [("a", "1"), ("b", None)]}, 0)).status == "skipped"
    marked = {"es-generation": b"g1"}
    assert committed(servers, "totals") == [(b"a", b"1", marked), (b"b", None, marked)]


def test_open_transaction_of_somebody_else_holds_the_end_back_until_it_is_over(log, foreign):
    log.create_topic("orders")
    log.append("orders", frame(("a", "1")))
    end = log.end_offsets(["orders"])["orders"][0]
    foreign.begin_transaction()
    foreign.produce("orders", b"2", b"a", partition=0)
    foreign.flush(10)
    log.append("orders", frame(("a", "3")))
    assert log.end_offsets(["orders"])["orders"][0] == end
    assert values(log, "orders") == ["1"]
    assert log.held_back(["orders"]) == {("orders", 0): end}
    foreign.commit_transaction(10)
    log.append("orders", frame(("a", "4")))
    assert values(log, "orders") == ["1", "2", "3", "4"]
    assert log.held_back(["orders"]) == {}


def test_records_that_were_undone_are_never_read(log, foreign):
    log.create_topic("orders", TopicConfig(compact=True))
    foreign.begin_transaction()
    foreign.produce("orders", b"undone", b"a", partition=0)
    foreign.flush(10)
    foreign.abort_transaction(10)
    log.append("orders", frame(("b", "1")))
    assert table(log, "orders") == {"b": "1"}
    offset = int(log.read("orders", 0, 0)["offset"][0])
    parts = log.splits("orders", 0, 0, offset + 1, max_records=1)
    assert [len(log.read_split(part)) for part in parts] == [0] * offset + [1]


def test_range_that_holds_nothing_but_ends_of_transactions_is_read_as_empty(log):
    log.create_topic("orders")
    for number in range(3):
        log.append("orders", frame(("a", str(number))))
    offsets = log.read("orders", 0, 0)["offset"].to_list()
    for before, after in pairwise(offsets):
        assert all(len(log.read_split(part)) == 0 for part in log.splits("orders", 0, before + 1, after, max_records=9))


def test_records_that_retention_has_deleted_are_named_before_and_while_they_are_read(log, servers):
    log.create_topic("events", TopicConfig(retention_ms=3_600_000))
    log.append("events", frame(*[("k", str(number)) for number in range(5)]))
    parts = log.splits("events", 0, 0, 5, max_records=5)
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.delete_records([TopicPartition("events", 0, 3)]).values():
        future.result(10)
    assert log.begin_offsets(["events"]) == {"events": {0: 3}}
    for read in (lambda: log.read("events", 0, 0), lambda: log.read_split(parts[0])):
        with pytest.raises(OffsetOutOfRangeError, match="retention has deleted everything before offset 3"):
            read()
    assert values(log, "events") == ["3", "4"]


def test_topic_that_is_deleted_while_it_is_read_is_named_and_not_the_brokers(opened, monkeypatch):
    monkeypatch.setattr(reading, "_PATIENCE_S", 2.0)
    reader, other = opened(), opened()
    reader.create_topic("orders", TopicConfig(partitions=2))
    reader.append("orders", frame(*[(str(number), "1") for number in range(9)]))
    ends = reader.end_offsets(["orders"])["orders"]
    frames = reader._reader.scan("orders", {0: 0, 1: 0}, {number: end + 99 for number, end in ends.items()})
    other.delete_topic("orders")
    with pytest.raises(TopicNotFoundError, match="topic 'orders' does not exist"):
        list(frames)


@pytest.mark.parametrize("records", [1, 9])
def test_split_of_a_topic_that_was_created_again_is_refused_whether_it_is_shorter_or_longer(opened, records):
    reader, other = opened(), opened()
    reader.create_topic("orders")
    reader.append("orders", frame(*[("k", "old")] * 5))
    parts = reader.splits("orders", 0, 0, 5, max_records=5)
    other.delete_topic("orders")
    other.create_topic("orders")
    other.append("orders", frame(*[("k", "new")] * records))
    with pytest.raises(TopicRecreatedError):
        reader.read_split(parts[0])


def test_cutover_in_chunks_that_ends_between_them_goes_on_with_what_is_left(log, servers, monkeypatch):
    monkeypatch.setattr(cutovers, "CHUNK", 2)
    log.create_topic("totals", TopicConfig(compact=True))
    lease = log.acquire("service")
    log.commit(*batch(log, lease, {"totals": [("old", "1"), ("kept", "1"), ("a", "1")]}, 0))
    wanted = {"a": "2", "b": "2", "c": "2", "kept": "1"}

    def asked():
        there = table(log, "totals")
        news = [(key, value) for key, value in wanted.items() if there.get(key) != value]
        gone = [(key, None) for key in there if key not in wanted]
        made, staged = batch(log, lease, {"totals": [*gone, *news]}, 0, generation="g2", query_id="q2", kind="cutover")
        kept = {"__everstate.g1": Copy("totals", log.latest("totals"))}
        ends = log.end_offsets(["totals"])
        return Cutover(commit=made, leases=(lease,), expected=ends, documents={"registry": "g2"}, copies=kept), staged

    with intercepted(crash_at("log.cutover.inside_transaction")), pytest.raises(Crash):
        log.cutover(*asked())
    assert table(log, "totals") == {"old": "1", "kept": "1", "a": "2", "b": "2"}
    assert log.unfinished_cutover("service", "output") == "g2"
    assert log.get_meta("service", "registry") is None
    assert not log.has_topic("__everstate.g1")
    assert log.cutover(*asked()).status == "committed"
    assert table(log, "totals") == wanted
    assert log.unfinished_cutover("service", "output") is None
    assert log.get_meta("service", "registry") == "g2"
    assert [key for key, value, _ in committed(servers, "totals")][3:] == [b"a", b"b", b"c", b"old"]


def test_private_table_of_many_batches_keeps_few_files_and_every_key(log, tmp_path):
    own = "__everstate.built"
    log.create_topic(own, TopicConfig(compact=True, partitions=2))
    lease = log.acquire("service:build")
    expected = {}
    for number in range(50):
        rows = {f"k{number % 7}": str(number), f"only{number}": "1", f"k{(number + 3) % 7}": None}
        expected |= rows
        log.commit(*batch(log, lease, {own: list(rows.items())}, number, kind="closed"))
    assert table(log, own) == {key: value for key, value in expected.items() if value is not None}
    assert log.describe(own).size_bytes > 0
    followed = pl.concat([log.read(own, number, 0) for number in range(2)])
    assert followed.n_unique(["partition", "offset"]) == len(followed)
    again = batch(log, lease, {own: [("k0", "corrected")]}, 49, kind="closed")
    assert log.commit(*again).status == "corrected"
    assert table(log, own)["k0"] == "corrected"
    assert "only49" not in table(log, own)
    assert "only48" in table(log, own)


def test_private_table_whose_process_ended_while_it_was_deleted_is_no_table_and_goes_with_the_next_start(
    log, tmp_path, monkeypatch
):
    log.create_topic("__everstate.built", TopicConfig(compact=True))
    lease = log.acquire("service:build")
    log.commit(*batch(log, lease, {"__everstate.built": [("a", "1")]}, 0, kind="closed"))

    def ended(_):
        raise Crash("renamed, and nothing more")

    with monkeypatch.context() as patched:
        patched.setattr(private.shutil, "rmtree", ended)
        with pytest.raises(Crash):
            log.delete_topic("__everstate.built")
    assert log.topics(internal=True) == []
    assert list((tmp_path / "staging" / "tables").iterdir())
    log.acquire("service:build", take_over=True)
    assert list((tmp_path / "staging" / "tables").iterdir()) == []


def test_compact_is_refused_and_says_what_decides(log):
    log.create_topic("orders", TopicConfig(compact=True))
    assert not log.maintain("orders")
    with pytest.raises(UnsupportedError, match=r"compacted by Kafka(?s:.*)min.cleanable.dirty.ratio"):
        log.compact("orders")


def test_tombstones_may_have_been_dropped_only_for_who_was_away_too_long_and_finds_records_ahead(log):
    log.create_topic("orders", TopicConfig(compact=True, delete_retention_ms=60_000))
    log.append("orders", frame(("a", "1"), ("b", "1"), ("a", None)))
    end = log.end_offsets(["orders"])["orders"][0]
    assert log.tombstones_dropped({"orders": {0: 2}}, since_ms=0) == {"orders": {0: end}}
    assert log.tombstones_dropped({"orders": {0: end}}, since_ms=0) == {}
    assert log.tombstones_dropped({"orders": {0: 0}}, since_ms=0) == {}
    recently = int(log.read("orders", 0, 0)["ts"][0])
    assert log.tombstones_dropped({"orders": {0: 2}}, since_ms=recently) == {}


def made(servers, topic, **settings):
    """A topic that somebody has made with settings of his own."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    admin.create_topics([NewTopic(topic, 1, 1, config=settings)], operation_timeout=30)[topic].result(30)


YEAR_MS = 31_536_000_000


@pytest.mark.parametrize("followed_by", [0, pytest.param(300_000, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("value", "ahead_ms", "setting"),
    [
        (str(list(range(5_000))), 0, {"max.message.bytes": "5000"}),
        ("1", YEAR_MS, {"message.timestamp.after.max.ms": "3600000"}),
    ],
    ids=["large", "ahead"],
)
def test_record_that_its_topic_never_takes_is_named_within_seconds_and_nothing_of_its_batch_is_published(
    log, servers, value, ahead_ms, setting, followed_by
):
    made(servers, "strict", **setting)
    log.create_topic("totals", TopicConfig(compact=True))
    lease = log.acquire("service")
    log.commit(*batch(log, lease, {"totals": [("a", "0")]}, 0))
    rows = frame(("a", value), *[("b", "1")] * followed_by)
    rows = rows.with_columns(pl.lit(int(time.time() * 1000) + ahead_ms).alias("ts"))
    commit, staged = batch(log, lease, {"totals": [("a", "1")]}, 1)
    began = time.monotonic()
    with pytest.raises(LogError, match="topic 'strict' does not take a record") as refused:
        log.commit(commit, [*staged, *log.stage_all("strict", rows)])
    assert time.monotonic() - began < 60
    assert f"--alter --topic strict --add-config {next(iter(setting))}=" in refused.value.hint
    assert (values(log, "totals"), values(log, "strict")) == (["0"], [])
    assert log.commit(*batch(log, lease, {"totals": [("a", "1")]}, 1)).status == "committed"
    assert values(log, "totals") == ["0", "1"]


def test_record_of_some_megabytes_is_published_where_the_topic_takes_it(log, servers):
    made(servers, "documents", **{"max.message.bytes": "8000000"})
    lease = log.acquire("service")
    log.commit(*batch(log, lease, {"documents": [("a", "x" * 3_000_000), ("b", "1")]}, 0))
    assert [len(value) for value in values(log, "documents")] == [3_000_000, 1]


def test_log_without_a_broker_says_so_within_seconds(monkeypatch):
    monkeypatch.setattr(clients, "_FIRST_ANSWER_S", 1.0)
    log = open_log("kafka://127.0.0.1:9")
    with pytest.raises(LogUnavailableError, match=r"no broker at 127.0.0.1:9 answers"):
        log.topics()
    log.close()


@pytest.mark.long
def test_record_of_somebody_else_in_the_middle_of_a_cutover_is_told(log, servers, caplog):
    log.create_topic("totals", TopicConfig(compact=True))
    lease = log.acquire("service")
    log.commit(*batch(log, lease, {"totals": [("a", "1")]}, 0))
    expected = log.end_offsets(["totals"])
    made, staged = batch(log, lease, {"totals": [("a", "2")]}, 0, generation="g2", query_id="q2", kind="cutover")

    def interfere(point):
        if point == "log.cutover.inside_transaction":
            producer = Producer({"bootstrap.servers": servers})
            producer.produce("totals", b"foreign", b"a", partition=0)
            producer.flush(30)

    with intercepted(interfere):
        assert log.cutover(Cutover(commit=made, leases=(lease,), expected=expected), staged).status == "committed"
    assert "Another program wrote to totals (partition 0, offset " in caplog.text
    caplog.clear()
    made, staged = batch(log, lease, {"totals": [("a", "3")]}, 0, generation="g3", query_id="q3", kind="cutover")
    log.cutover(Cutover(commit=made, leases=(lease,), expected=log.end_offsets(["totals"])), staged)
    assert caplog.text == ""


@pytest.mark.long
@pytest.mark.parametrize("ends", [True, False])
def test_cutover_waits_for_an_open_transaction_of_somebody_else_and_says_so(log, foreign, caplog, monkeypatch, ends):
    monkeypatch.setattr(clients, "_SLOW_S", 0.2)
    monkeypatch.setattr(cutovers, "_DECIDED_S", 10.0 if ends else 1.0)
    log.create_topic("totals", TopicConfig(compact=True))
    lease = log.acquire("service")
    log.commit(*batch(log, lease, {"totals": [("a", "1")]}, 0))
    foreign.begin_transaction()
    foreign.produce("totals", b"hidden", b"a", partition=0)
    foreign.flush(10)
    made, staged = batch(log, lease, {"totals": [("a", "2")]}, 0, generation="g2", query_id="q2", kind="cutover")
    asked = Cutover(commit=made, leases=(lease,), expected=log.end_offsets(["totals"]))
    if ends:
        over = threading.Timer(1.0, foreign.abort_transaction)
        over.start()
        assert log.cutover(asked, staged).status == "committed"
        over.join()
    else:
        with pytest.raises(LogUnavailableError, match="an open transaction holds topic 'totals' back") as caught:
            log.cutover(asked, staged)
        assert "find-hanging" in caught.value.hint
        foreign.abort_transaction(10)
    assert "s for an open transaction that has written to totals" in caplog.text
    assert values(log, "totals") == (["1", "2"] if ends else ["1"])


@pytest.mark.long
def test_marker_that_somebody_elses_transaction_hides_is_waited_for_and_its_batch_not_published_again(log, foreign):
    log.create_topic("totals", TopicConfig(compact=True))
    lease = log.acquire("service")
    log.commit(*batch(log, lease, {"totals": [("a", "1")]}, 0))
    foreign.begin_transaction()
    foreign.produce("__everstate.service.commits", b"hides", b"hides", partition=0)
    foreign.flush(10)
    assert log.commit(*batch(log, lease, {"totals": [("a", "2")]}, 1)).status == "committed"
    over = threading.Timer(4, foreign.abort_transaction)
    over.start()
    assert log.commit(*batch(log, lease, {"totals": [("a", "2")]}, 1)).status == "skipped"
    over.join()
    assert values(log, "totals") == ["1", "2"]
