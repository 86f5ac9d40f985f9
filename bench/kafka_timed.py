"""Kafka to Kafka where time decides: tumbling windows and a join of streams, Everstate and Kafka Streams exactly once.

Both read the same topics of the same broker, in turn, and both results are compared with what Polars makes of all
records at once. Records have their time as their timestamp, and lie in the partition of their customer.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from bench import timed, windows
from bench.commits import Commits
from bench.inputs import PARTITIONS
from bench.kafka import broker
from bench.peers import programs
from bench.processes import fresh, said
from bench.processor import Processor
from bench.report import Figure
from everstate.engine.commands.runner import Runner
from everstate.log import TopicConfig
from everstate.log.opening import open_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.scale import Scale

KINDS: Final = ("tumbling", "join")
_NAMES: Final = {
    "everstate": "Everstate",
    "streams": "Kafka Streams, exactly once",
    "streams-seldom": "Kafka Streams, exactly once, commits every 4 s",
}
_SELDOM_MS: Final = 4_000
_TARGET: Final = 2.0


def measure(kind: str, scale: Scale, say: Callable[[str], None]) -> tuple[dict[str, Any], list[Figure]]:
    """Run all of them in turn.

    Args:
        kind: One of `KINDS`.
        scale: How large; the smaller number of keys counts.
        say: Told what is going on.
    """
    load = timed.Load(kind, scale.keys[0], scale.batch_records, scale.batches)
    found: dict[str, list[dict[str, Any]]] = {}
    with broker() as servers, tempfile.TemporaryDirectory(prefix="bench-") as folder:
        _fill(load, f"kafka://{servers}")
        for turn, name in enumerate([*_NAMES, "everstate"]):
            say(f"Kafka, {kind}, {load.keys:,} keys: {_NAMES[name]} (load {os.getloadavg()[0]:.1f})")
            processor = Processor()
            run = _run(load, name, f"{kind}-{turn}", servers, Path(folder), processor)
            run["processor_seconds"] = processor.between(run["began"], run["ended"])
            say(f"  {run['records'] * 1_000 / (run['ended'] - run['began']):,.0f} records/s")
            found.setdefault(name, []).append(run)
    return {str(load.keys): found}, _figures(load, found)


def _fill(load: timed.Load, url: str) -> None:
    log = open_log(url)
    for topic in load.topics:
        log.create_topic(topic, TopicConfig(partitions=PARTITIONS))
        for rows in load.rows(topic):
            log.append(topic, timed.lines(topic, rows).with_columns(pl.col("value").cast(pl.Binary)))
    log.close()


def _run(load: timed.Load, name: str, output: str, servers: str, folder: Path, processor: Processor) -> dict[str, Any]:
    url = f"kafka://{servers}"
    if name == "everstate":
        given = {"kind": load.kind, "keys": load.keys, "records": load.records, "batches": load.batches}
        return fresh("kafka_timed:everstate", processor, url=url, state=folder / output, name=output, **given)
    log = open_log(url)
    log.create_topic(output, TopicConfig(partitions=PARTITIONS))
    log.close()
    size = timed.WITHIN_MS if load.kind == "join" else timed.SIZE_MS
    interval = _SELDOM_MS if name == "streams-seldom" else 0
    numbers = (interval, load.records, load.records * load.batches, size, timed.GRACE_MS)
    command = programs.streams(servers, load.kind, output, folder / output, *numbers, program="StreamsTimed")
    run = said(command, processor)
    windows.check(load, _of_streams(load, url, output))
    return run


def everstate(url: str, state: str, name: str, **given: Any) -> dict[str, Any]:
    """Run the service once over the topics; returns when its first and its last micro-batch were committed."""
    load = timed.Load(**given)
    with Commits(url, name, name) as commits:
        service = timed.service(load.kind, url, name)
        options = {"max_records": load.records, **windows.SETTINGS}
        Runner(service, state_dir=Path(state), show=False, **options).run(once=True)
    windows.check(load, windows.of_log(load, url, name))
    began, ended = commits.span
    return {"began": began, "ended": ended, "records": len(commits.seconds) * load.records}


def _of_streams(load: timed.Load, url: str, output: str) -> pl.DataFrame:
    """What Kafka Streams has published, as `timed.expected` has it."""
    if load.kind == "join":
        return windows.of_log(load, url, output)
    log = open_log(url)
    rows = log.latest(output).select("key", "value")
    log.close()
    parts = rows["key"].cast(pl.String).str.slice(4).str.split_exact("@", 1).struct.rename_fields(["customer", "start"])
    found = parts.struct.unnest().cast(pl.Int64).with_columns((pl.col("start") + timed.SIZE_MS).alias("end"))
    return found.hstack(windows.json_columns(rows["value"], {"n": pl.Int64, "total": pl.Int64}))


def _figures(load: timed.Load, found: dict[str, list[dict[str, Any]]]) -> list[Figure]:
    rates = {
        name: 1_000 * sum(run["records"] for run in runs) / sum(run["ended"] - run["began"] for run in runs)
        for name, runs in found.items()
    }
    text = f"Kafka, {load.kind}, {load.keys:,} keys"
    figures = [Figure(f"{text}: {_NAMES[name]}", rate, "records/s") for name, rate in rates.items()]
    for peer in ("streams", "streams-seldom"):
        ratio = rates["everstate"] / rates[peer]
        figures.append(Figure(f"{text}: Everstate to {_NAMES[peer]}", ratio, "x", at_least=_TARGET))
    return figures
