"""A service on Spark: results, batches, restarts, errors."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import stat
import threading
import time
from pathlib import Path

import psutil
import pytest

import everstate as es
from everstate import col
from everstate.engine.commands.runner import Runner
from everstate.engine.query.shard_numbers import murmur3
from everstate.errors import (
    CheckpointDamagedError,
    LeaseHeldError,
    LogError,
    RecordError,
    TopicNotFoundError,
)

pytestmark = pytest.mark.spark

ORDERS = {"order": str, "customer": str, "amount": int}


def totals(name="totals", limit=0, **options):
    app = es.Service(name, **options)
    orders = app.table("orders", key="order", schema=ORDERS)
    by_customer = orders.group_by("customer").agg(total=col("amount").sum(), orders=es.count()).to("totals")
    by_customer.filter(col("total") > limit).to("large")
    return app


def expected(orders):
    found = {}
    for order in orders.values():
        if order is not None:
            entry = found.setdefault(order["customer"], {"total": 0, "orders": 0})
            entry["total"] += order["amount"]
            entry["orders"] += 1
    return found


def history(count, customers=7, start=0):
    return [(f"o{n}", {"customer": f"c{n % customers}", "amount": n}) for n in range(start, start + count)]


def test_shard_numbers_hash_as_spark_hashes(spark):
    rows = spark.sql("SELECT id, hash(CAST(id AS INT)) AS hash FROM range(-50, 500)").collect()
    signed = {row.id: row.hash for row in rows}
    assert all((murmur3(number) - hashed) % (1 << 32) == 0 for number, hashed in signed.items())


@pytest.mark.long
@pytest.mark.parametrize("shards", [1, 3])
def test_service_in_small_batches_gives_the_same_table_as_one_pass(topics, run, shards):
    topics.create("orders", partitions=3, compact=True)
    orders = dict(history(100))
    topics.send("orders", list(orders.items()))
    app = totals(shards=shards)
    run(app, max_records=40)
    assert topics.table("totals") == expected(orders)
    changes = {"o3": None, "o10": {"customer": "c1", "amount": 1000}, "o99": {"customer": "new", "amount": 5}}
    topics.send("orders", list(changes.items()))
    run(app)
    orders |= changes
    assert topics.table("totals") == expected(orders)
    assert topics.table("large") == {key: value for key, value in expected(orders).items() if value["total"] > 0}


def test_service_drained_again_without_input_writes_nothing(topics, run):
    topics.create("orders", compact=True)
    topics.send("orders", history(20))
    run(totals(shards=1))
    before = topics.count("totals"), topics.count("large")
    run(totals(shards=1))
    assert (topics.count("totals"), topics.count("large")) == before


def test_bad_records_go_to_the_dead_letter_topic_and_the_good_ones_come_through(topics, run):
    topics.create("orders", partitions=1)
    good = history(10)
    topics.send("orders", good[:5])
    bad = [("bad1", b"{not json"), ("bad2", {"customer": "c1"}), (None, {"customer": "c", "amount": 1})]
    topics.send("orders", bad)
    topics.send("orders", good[5:])
    run(totals(shards=2))
    assert topics.table("totals") == expected(dict(good))
    letters = topics.table("totals.dlq")
    assert sorted(letter["offset"] for letter in letters.values()) == [5, 6, 7]
    assert {letter["topic"] for letter in letters.values()} == {"orders"}


def test_policy_fail_stops_with_the_record_and_the_place(topics, run):
    topics.create("orders", partitions=1, compact=True)
    topics.send("orders", [*history(3), ("bad", b"{")])
    with pytest.raises(RecordError, match="orders/0 offset 3"):
        run(totals(on_error="fail", shards=1))


def test_state_of_a_service_is_for_its_owner_alone(topics, run, log):
    topics.create("orders", partitions=1, compact=True)
    topics.send("orders", history(3))
    before = os.umask(0)
    try:
        run(totals(shards=1))
    finally:
        os.umask(before)
    home = Path(log.url) / "state" / "totals"
    open_to_others = [path for path in (home, *home.rglob("*")) if stat.S_IMODE(path.lstat().st_mode) & 0o077]
    assert (home / "totals").is_dir()
    assert open_to_others == []


def test_user_function_from_a_test_module_runs_in_workers(topics, run):
    topics.create("words", partitions=1)
    topics.send("words", [("a", {"text": "one two"}), ("b", {"text": "two"}), ("c", {"text": ""})])
    app = es.Service("words", shards=1)
    words = app.stream("words", schema={"text": str}).flat_map(split_words, schema={"word": str})
    words.group_by("word").agg(count=es.count()).to("counts")
    run(app)
    assert topics.table("counts") == {"one": {"count": 1}, "two": {"count": 2}}


def split_words(row):
    return [{"word": word} for word in row["text"].split()]


def test_output_topic_has_the_partitions_of_its_source_and_is_compacted(topics, run):
    topics.create("orders", partitions=3, compact=True)
    topics.send("orders", history(3))
    run(totals(shards=1))
    config = topics.log.describe("totals").config
    assert (config.partitions, config.compact) == (3, True)
    assert topics.log.describe("totals.dlq").config.compact


def test_headers_name_service_and_generation(topics, run):
    topics.create("orders", partitions=1, compact=True)
    topics.send("orders", history(3))
    run(totals(shards=1))
    headers = topics.log.read("totals", 0, 0)["headers"].to_list()[0]
    assert {entry["name"]: entry["value"] for entry in headers} == {"es-service": b"totals", "es-generation": b"1"}


def test_missing_source_topic_points_at_the_users_line(run):
    with pytest.raises(TopicNotFoundError, match="orders") as caught:
        run(totals())
    assert "test_run.py" in str(caught.value)


def test_clear_of_a_table_and_run_publishes_nothing_twice(topics, run):
    topics.create("orders", compact=True)
    topics.send("orders", history(20))
    app = totals(shards=1)
    app.log = topics.log.url
    run(app)
    app.clear_state()
    written = topics.count("totals")
    run(app)
    assert topics.count("totals") == written
    assert topics.table("totals") == expected(dict(history(20)))


def test_clear_and_run_publishes_nothing_twice_and_loses_nothing(topics, run):
    topics.create("clicks", partitions=2)
    clicks = [(f"u{n % 5}", {"page": n}) for n in range(50)]
    topics.send("clicks", clicks)
    app = es.Service("clicks", shards=1, log=topics.log.url)
    app.stream("clicks", key="user", schema={"page": int}).filter(col("page") >= 10).to("pages")
    run(app)
    assert topics.count("pages") == 40
    app.clear_state()
    topics.send("clicks", [("u1", {"page": 1000})])
    run(app, max_records=7)
    assert topics.count("pages") == 41


def test_clear_while_the_service_runs_is_refused(topics, run):
    topics.create("orders", compact=True)
    app = totals(log=topics.log.url)
    lease = topics.log.acquire("totals")
    with pytest.raises(LeaseHeldError, match="in use by process"):
        app.clear_state()
    with pytest.raises(LeaseHeldError, match="in use by process"):
        run(app)
    topics.log.release(lease)


def test_damaged_segment_is_named_not_read(topics, run, tmp_path):
    topics.create("orders", partitions=1, compact=True)
    topics.send("orders", history(50))
    segments = [path for path in (tmp_path / "log").rglob("*") if path.is_file() and "manifest" not in path.name]
    segment = max(segments, key=lambda path: path.stat().st_size)
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 0xFF
    segment.write_bytes(bytes(content))
    with pytest.raises(LogError, match=segment.name):
        run(totals(shards=1))


def test_background_run_follows_new_records_and_stops(topics, spark):
    topics.create("orders", compact=True)
    topics.send("orders", history(10))
    runner = Runner(totals(shards=1), log=topics.log.url, session=spark, show=False, cores=2)
    runner.start()
    try:
        wait_for(lambda: topics.table("totals") == expected(dict(history(10))))
        topics.send("orders", history(5, start=10))
        wait_for(lambda: topics.table("totals") == expected(dict(history(15))))
    finally:
        runner.stop()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("everstate-heartbeat")]


def test_lease_taken_over_stops_the_service_without_an_error(topics, spark):
    topics.create("orders", compact=True)
    runner = Runner(totals(shards=1), log=topics.log.url, session=spark, show=False, cores=2, heartbeat=0.2)
    runner.start()
    taken = topics.log.acquire("totals", take_over=True)
    runner._thread.join(60)
    assert not runner._thread.is_alive()
    runner.stop()
    topics.log.release(taken)


def wait_for(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.1)


def test_conflicting_history_is_refused(topics, run):
    """Another checkpoint than the one that published must not go on in silence."""
    topics.create("orders", compact=True)
    topics.send("orders", history(10))
    run(totals(shards=1))
    registry = topics.log.metas("totals")
    topics.log.forget("totals")
    for name, document in registry.items():
        topics.log.set_meta("totals", name, document)
    with pytest.raises(CheckpointDamagedError, match="from different moments"):
        run(totals(shards=1))


def test_nothing_of_a_running_service_listens_on_more_than_loopback(topics, log, spark):
    topics.create("orders", compact=True)
    topics.send("orders", history(20))
    runner = Runner(totals(shards=2), log=log.url, session=spark, show=False, cores=2)
    runner.start()
    found = set()
    try:
        deadline = time.monotonic() + 60
        # Workers and the server of their state are there while a batch runs.
        while topics.count("totals") < 7 and time.monotonic() < deadline:
            found |= listening()
    finally:
        runner.stop()
    assert topics.table("totals") == expected(dict(history(20)))
    assert found
    assert {address for address in found if not is_loopback(address)} == set()


def is_loopback(address):
    found = ipaddress.ip_address(
        address
    )  # Java says 127.0.0.1 as an address of IPv6; that is no loopback to Python 3.11
    return found.is_loopback or bool(getattr(found, "ipv4_mapped", None) and found.ipv4_mapped.is_loopback)


def listening():
    """The addresses at which this process and those that it has started wait for connections."""
    own = psutil.Process()
    found = set()
    for process in [own, *own.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            open_ones = process.net_connections(kind="tcp")
            found |= {one.laddr.ip for one in open_ones if one.status == psutil.CONN_LISTEN}
    return found
