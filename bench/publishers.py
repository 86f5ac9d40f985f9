"""Large batches to Kafka: sent by one publisher, and by two tasks of Spark.

What the clock says is bounded by the machine, where the broker works as well: on two cores, two publishers and a broker
get in each other's way. So the processor time of whoever sends is taken, too: a publisher cannot send more records a
second than it has processor time for.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import psutil

from bench import inputs
from bench.kafka import broker
from bench.processes import fresh
from bench.report import Figure
from everstate.engine.jvm.session import start_session, stop_session
from everstate.engine.query.publishing import spread
from everstate.generations.deploy.settings import Settings
from everstate.log import Commit, TopicConfig, combined_digest
from everstate.log.opening import open_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.scale import Scale
    from everstate.log.descriptions import Lease, Staged
    from everstate.log.protocol import Log

_PUBLISHERS: Final = (1, 2)
_PARTITIONS: Final = 4
_BATCHES: Final = 6


def measure(scale: Scale, say: Callable[[str], None]) -> tuple[dict[str, Any], list[Figure]]:
    """Send the same batches in turn by one and by several."""
    raw: dict[str, Any] = {}
    with broker() as servers, tempfile.TemporaryDirectory(prefix="bench-") as folder:
        for publishers in _PUBLISHERS:
            say(f"Kafka: {publishers} publisher{'s' if publishers > 1 else ''} (load {os.getloadavg()[0]:.1f})")
            raw[str(publishers)] = fresh(
                "publishers:sent",
                servers=servers,
                folder=folder,
                publishers=publishers,
                records=scale.batch_records,
            )
    figures = []
    for publishers in _PUBLISHERS:
        found = raw[str(publishers)]
        seconds, busiest = statistics.median(found["seconds"]), statistics.median(found["busiest"])
        name = f"Kafka: a batch of {scale.batch_records:,} sent by {publishers}"
        figures.append(Figure(name, scale.batch_records / seconds, "records/s"))
        figures.append(Figure("  by processor time of the busiest sender", scale.batch_records / busiest, "records/s"))
    one, two = (statistics.median(raw[str(number)]["busiest"]) for number in _PUBLISHERS)
    figures.append(Figure("Kafka: ceiling of two publishers to that of one", one / two, "x"))
    return raw, figures


def sent(servers: str, folder: str, publishers: int, records: int) -> dict[str, list[float]]:
    """Send batches; gives the seconds of each, and the processor time of the process that had most to do."""
    log = open_log(f"kafka://{servers}", staging=Path(folder) / str(publishers))
    topic = f"sent-by-{publishers}"
    log.create_topic(topic, TopicConfig(partitions=_PARTITIONS))
    session = start_session(Settings(memory="1g"), "bench")
    spread(log, publishers, lambda: session)
    lease = log.acquire(topic)
    rows = inputs.payments(records, records, seed=1).select(
        key=pl.int_range(pl.len()).cast(pl.String).cast(pl.Binary),
        value=pl.col("value").cast(pl.Binary),
        ts=pl.lit(time.time_ns() // 1_000_000, pl.Int64),
        partition=pl.int_range(pl.len(), dtype=pl.Int32) % _PARTITIONS,
    )
    taken: dict[str, list[float]] = {"seconds": [], "busiest": []}
    for number in range(_BATCHES):
        staged = log.stage_all(topic, rows)
        before, began = _used(), time.monotonic()
        log.commit(_batch(topic, lease, number, staged), staged)
        ended, after = time.monotonic(), _used()
        if number:  # the first one starts workers and producers
            taken["seconds"].append(ended - began)
            taken["busiest"].append(max(after[each] - before.get(each, 0.0) for each in after))
    _require_all(log, topic, records * _BATCHES)
    stop_session(session)
    log.close()
    return taken


def _batch(topic: str, lease: Lease, number: int, staged: list[Staged]) -> Commit:
    start, end = ({"source": {0: number + later}} for later in (0, 1))
    return Commit(
        service=topic,
        output=topic,
        generation="1",
        query_id="1",
        batch_id=number,
        start=start,
        end=end,
        digest=combined_digest(staged),
        token=lease.token,
    )


def _used() -> dict[int, float]:
    """Processor time by process: this one and those that it has started, but Java."""
    own = psutil.Process()
    found = {}
    for each in [own, *own.children(recursive=True)]:
        try:
            if "java" not in each.name():
                found[each.pid] = sum(each.cpu_times()[:2])
        except psutil.Error:
            continue
    return found


def _require_all(log: Log, topic: str, records: int) -> None:
    """Everything is there, once: offsets beyond the records are ends of transactions."""
    ends = log.end_offsets([topic])[topic]
    gaps = sum(ends.values()) - records
    if not 0 < gaps <= _BATCHES * _PARTITIONS:
        raise RuntimeError(f"{topic} ends at {ends}, which {records} records do not explain")
