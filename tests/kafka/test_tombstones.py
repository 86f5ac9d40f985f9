"""The tombstone service on topics of other clients, packed into few runs of Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from confluent_kafka import Producer

from everstate.log import TopicConfig
from everstate.log.records import to_records

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]

START_MS = 1_777_000_000_000
HOUR_MS = 3_600_000
#: Text, a composite key as JSON, and bytes that are no text.
QUIET = [b"ada", b'["eu",42]', b"\xff\x00\x01"]


@pytest.fixture
def tombstone(servers, tmp_path):
    """Runs the service until it has looked at all that is there."""

    def run(*topics):
        command = [sys.executable, "-m", "everstate.cli.main", "tombstone", *topics, "--after", "5h", "--once"]
        command += ["--log", f"kafka://{servers}", "--state-dir", str(tmp_path / "state"), "--memory", "1g"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, env=os.environ)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def send(servers, topic, *rows):
    """Records of (key, value, hour, partition), as librdkafka sends them."""
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    for key, value, hour, partition in rows:
        producer.produce(topic, value, key, partition=partition, timestamp=START_MS + hour * HOUR_MS)
    producer.flush(30)


def records(log, topic):
    partitions = log.begin_offsets([topic])[topic]
    return [r for p, begin in partitions.items() for r in to_records(topic, log.read(topic, p, begin))]


def test_keys_of_other_clients_go_where_they_lie_and_come_back(log, servers, tombstone):
    for topic in ("devices", "others"):
        log.create_topic(topic, TopicConfig(partitions=2, compact=True))
    quiet = [(key, b"\x00 no JSON", number, number % 2) for number, key in enumerate(QUIET)]
    send(servers, "devices", *quiet, (b"eve", b"1", 20, 0), (b"bob", b"1", 20, 1))
    send(servers, "others", (b"x", b"1", 0, 0), (b"y", b"1", 20, 0), (b"z", b"1", 20, 1))
    # Looked up before the broker's cleaner takes what the tombstones have replaced.
    places = {(r.partition, r.offset): (r.key, r.ts) for r in records(log, "devices")}
    tombstone("devices", "others")

    gone = [r for r in records(log, "devices") if r.value is None]
    assert sorted((r.key, r.partition) for r in gone) == sorted((key, n % 2) for n, key in enumerate(QUIET))
    assert all(places[r.partition, int(dict(r.headers)["es-removed"])] == (r.key, r.ts) for r in gone)
    removed = {r.key: json.loads(r.value) for r in records(log, "devices.removed")}
    assert {key: place["partition"] for key, place in removed.items()} == {r.key: r.partition for r in gone}
    assert [r.key for r in records(log, "others") if r.value is None] == [b"x"]

    # Somebody else's tombstone, and a key that comes back: neither the one nor the service's own is removed again.
    send(servers, "devices", (b"ada", b"2", 40, 0), (b"eve", None, 40, 0), (b"new", b"1", 40, 1))
    tombstone("devices")
    gone = [r for r in records(log, "devices") if r.value is None]
    assert sorted(r.key for r in gone) == sorted([*QUIET, b"eve", b"bob"])
    assert set(log.latest("devices")["key"]) == {b"ada", b"new"}
    before = log.end_offsets(["devices"])
    tombstone("devices")
    assert log.end_offsets(["devices"]) == before
