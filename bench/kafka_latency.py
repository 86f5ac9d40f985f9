"""One record to its result on Kafka, warm: Everstate, and Kafka Streams with exactly once.

A client that belongs to neither sends a record, and waits until a consumer of committed records has the total that it
leads to. The next record follows after a pause of random length, so that nobody's interval is met at the same place
again and again.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition

from bench import inputs, services
from bench.kafka import broker
from bench.peers import programs
from bench.processes import started
from bench.report import Figure
from everstate.engine.commands.runner import Runner
from everstate.log import TopicConfig
from everstate.log.opening import open_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.scale import Scale

_KEYS: Final = 100
#: Records at the beginning that do not count: Java compiles, workers start.
_WARM_UP: Final = 40
#: So many times the usual number of single records: one in a hundred has to be several.
_MORE: Final = 10
_LONGEST_S: Final = 120.0
_CACHE: Final = 10 << 20
_ONCE: Final = "exactly_once_v2"
_NAMES: Final = {
    "everstate": "Everstate",
    "streams": "Kafka Streams, exactly once, commits every 100 ms",
    "streams-often": "Kafka Streams, exactly once, commits every 10 ms",
}
#: Kafka Streams commits ten times a second where it is to be exactly once, unless it is told otherwise.
_INTERVALS: Final = {"streams": 0, "streams-often": 10}


def measure(scale: Scale, say: Callable[[str], None]) -> tuple[dict[str, Any], list[Figure]]:
    """Run them in turn."""
    raw: dict[str, Any] = {}
    figures: list[Figure] = []
    for name, text in _NAMES.items():
        say(f"one record to its result on Kafka: {text} (load {os.getloadavg()[0]:.1f})")
        with broker() as servers, tempfile.TemporaryDirectory(prefix="bench-") as folder:
            log = open_log(f"kafka://{servers}")
            log.create_topic(inputs.TOPIC, TopicConfig(partitions=inputs.PARTITIONS))
            log.create_topic(name, TopicConfig(partitions=inputs.PARTITIONS, compact=True))
            log.close()
            try:
                command = _command(name, servers, Path(folder))
            except programs.MissingError as error:
                say(f"NOT MEASURED: {error}")
                continue
            with started(command):
                raw[name] = taken = _taken(servers, name, _MORE * scale.single_records)
        figures += [
            Figure(f"Kafka, one record to its result: {text}, median", float(np.median(taken)), "s"),
            Figure("  99 %", float(np.percentile(taken, 99)), "s"),
        ]
    return raw, figures


def _command(name: str, servers: str, folder: Path) -> list[str]:
    if name == "everstate":
        words = json.dumps({"servers": servers, "folder": str(folder / "state"), "name": name})
        return [sys.executable, "-m", "bench.processes", "kafka_latency:everstate", os.devnull, words]
    return programs.streams(servers, inputs.TOPIC, name, folder, _ONCE, _CACHE, _INTERVALS[name], 0, 0)


def everstate(servers: str, folder: str, name: str) -> None:
    """Run the service until the process is killed."""
    Runner(services.totals(f"kafka://{servers}", name), state_dir=Path(folder), show=False, memory="2g").run()


def _taken(servers: str, output: str, count: int) -> list[float]:
    """Send one record at a time; gives the seconds to each result."""
    settings = {"bootstrap.servers": servers, "log_level": 0}
    producer = Producer({**settings, "linger.ms": 0})
    reading = {"group.id": "bench", "isolation.level": "read_committed", "fetch.wait.max.ms": 10}
    consumer = Consumer({**settings, **reading, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.assign([TopicPartition(output, number, 0) for number in range(inputs.PARTITIONS)])
    chance = np.random.default_rng(7)
    taken: list[float] = []
    totals: dict[str, int] = {}
    for number in range(_WARM_UP + count):
        key = f"key-{chance.integers(_KEYS)}"
        amount = int(chance.integers(1, 1_000))
        value = json.dumps({"customer": key, "amount": amount})
        began = time.monotonic()
        producer.produce(inputs.TOPIC, value, key, partition=_partition(key))
        producer.flush(30)
        totals[key] = totals.get(key, 0) + amount
        _await(consumer, key, totals[key])
        if number >= _WARM_UP:
            taken.append(time.monotonic() - began)
        time.sleep(chance.uniform(0.05, 0.35))
    consumer.close()
    return taken


def _partition(key: str) -> int:
    """The partition of a key, which is the same for all programs."""
    return int(key.removeprefix("key-")) % inputs.PARTITIONS


def _await(consumer: Consumer, key: str, total: int) -> None:
    """Wait until a key has a total."""
    until = time.monotonic() + _LONGEST_S
    while time.monotonic() < until:
        message = consumer.poll(1)
        if message is None or message.error() is not None or (message.key() or b"").decode() != key:
            continue
        if json.loads(message.value() or b"{}").get("total") == total:
            return
    raise RuntimeError(f"the total of {key} has not become {total}")
