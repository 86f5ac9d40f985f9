"""Keys of windows are those of Kafka Streams: its own deserialisers read them, and its serialisers write the same."""

from __future__ import annotations

import subprocess

import pytest

import everstate as es
from scripts import kafka_broker
from tests.kafka.others import HERE, JAVA

pytestmark = [pytest.mark.kafka, pytest.mark.long]

WINDOWS = {
    "5000": es.tumbling("5s"),
    "6000": es.hopping("6s", "2s"),
    "3000": es.sliding("3s"),
    "sessions": es.session("2s"),
}


def published(window):
    """What a service publishes: the keys as they are, and as users see them."""
    app = es.Service("s")
    rows = app.stream("in", key="id", schema={"id": str, "group": str})
    rows.group_by("group").window(window).agg(n=es.count()).to("out", key_format="kafka-windowed")
    driver = es.testing.Driver(app)
    for second, group in enumerate(["ada", "bob", "ada", "grüße", "ada", "", "ada", "ada"]):
        driver.send("in", str(second), {"group": group}, ts=1_777_629_600_000 + second * 1000)
    raw = {record.key: record.value for record in driver._deployment.topics.all("out")}
    return [key for key, value in raw.items() if value is not None], driver.table("out")


@pytest.mark.parametrize("kind", WINDOWS)
def test_windowed_keys_are_read_and_written_by_kafka_streams(kind):
    keys, table = published(WINDOWS[kind])
    line = [*JAVA, "-cp", f"{kafka_broker.fetch('programs')}/*", str(HERE / "WindowedKeys.java"), kind]
    done = subprocess.run(
        line, input="".join(key.hex() + "\n" for key in keys), capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found = [answer.split("\t") for answer in done.stdout.splitlines()]
    milliseconds = {(group, *(round(at.timestamp() * 1000) for at in bounds)) for group, *bounds in table}
    assert {(group, int(start), int(end)) for group, start, end, _ in found} == milliseconds
    assert [written for *_, written in found] == [key.hex() for key in keys]
