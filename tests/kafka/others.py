"""Programs of others that read and write the same topics: those that come with Kafka, Kafka Streams, Quix Streams."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer

from scripts import kafka_broker

HERE = Path(__file__).parent
JAVA = ("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
QUIX = "quixstreams==3.28.1"


def program(name, *words, stdin=""):
    """Run one of the programs that come with Kafka."""
    line = [*JAVA, "-cp", f"{kafka_broker.fetch('programs')}/*", name, *words]
    done = subprocess.run(line, input=stdin, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def everything(servers, topic):
    """All committed records of a topic, as a consumer of others sees them."""
    settings = {"bootstrap.servers": servers, "group.id": "others", "auto.offset.reset": "earliest"}
    settings |= {"enable.partition.eof": True, "isolation.level": "read_committed", "log_level": 0}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    partitions = len(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
    found, ended = [], 0
    while ended < partitions:
        message = consumer.poll(30)
        assert message is not None
        if message.error() is not None:
            ended += 1
        else:
            found.append(message)
    consumer.close()
    return found


class StreamsTable:
    """A Kafka Streams service that runs beside the test, and is never touched but to be asked."""

    def __init__(self, process):
        self._process = process

    def asked(self):
        """Its rows now, and how many changes have come."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        rows = {}
        while "\t" in (line := self._process.stdout.readline()):
            key, _, value = line.rstrip("\n").partition("\t")
            rows[key] = json.loads(value)
        assert line, f"Kafka Streams has ended with {self._process.wait(30)}"
        return rows, int(line)

    def becomes(self, expected, seconds=120):
        """Wait until it has exactly these rows; gives how many changes have come."""
        deadline = time.monotonic() + seconds
        while (found := self.asked())[0] != expected:
            assert time.monotonic() < deadline, f"{found[0]} instead of {expected}"
            time.sleep(0.2)
        return found[1]


@contextmanager
def streams_table(servers, topic, folder, kind="table") -> Iterator[StreamsTable]:
    """A topic as a `KTable`, or as a `GlobalKTable` (`global`)."""
    line = [*JAVA, "-cp", f"{kafka_broker.fetch('programs')}/*", str(HERE / "StreamsTable.java")]
    with subprocess.Popen(
        [*line, servers, topic, str(folder), kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield StreamsTable(process)
        finally:
            process.kill()


def quix() -> Path:
    """The interpreter of an environment with Quix Streams: its versions of packages need not be ours."""
    place = kafka_broker.CACHE.parent / QUIX.replace("==", "-") / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "complete").is_file():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
            subprocess.run([str(place / "bin" / "pip"), "install", "-q", QUIX], check=True, timeout=600)
            (place / "complete").touch()
    return place / "bin" / "python"


def quix_service(servers, way, source, target, count):
    """Run a service of Quix Streams until it has taken in so many records; gives what it printed, line by line."""
    words = (servers, way, source, target, str(count))
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [str(quix()), str(HERE / "quix_service.py"), *words],
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
