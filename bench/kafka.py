"""Kafka to Kafka, count and sum by key: Everstate, Kafka Streams, Quix Streams, and Spark with its Kafka connector.

All read the same topic of the same broker, in turn. Its records have the key that is grouped by, so that Kafka Streams
and Quix Streams need no further topic for it. Each result is compared with totals that Polars makes of the same JSON.
What counts begins after the first quarter of the records, and ends when the last result is published.
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from bench import inputs, services
from bench.commits import Commits
from bench.peers import programs
from bench.processes import fresh, said
from bench.processor import Processor
from bench.report import Figure
from everstate.engine.commands.runner import Runner
from everstate.log import TopicConfig
from everstate.log.opening import open_log
from scripts import kafka_broker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.scale import Scale

_MEMORY: Final = "4g"
_CACHE: Final = 10 << 20
_ALL, _ONCE = "at_least_once", "exactly_once_v2"
#: Everstate publishes a micro-batch at a time, every few seconds; Kafka Streams by default ten times a second.
_SELDOM_MS: Final = 4_000
_NAMES: Final = {
    "everstate": "Everstate, exactly once",
    "streams": "Kafka Streams, at least once, no cache",
    "streams-cached": "Kafka Streams, at least once, 10 MB cache",
    "streams-once": "Kafka Streams, exactly once",
    "streams-once-seldom": f"Kafka Streams, exactly once, commits every {_SELDOM_MS // 1_000} s",
    "quix": "Quix Streams, at least once, one process",
    "spark": "Spark's groupBy().agg(), at least once",
}
_CACHED: Final = {"streams": 0, "streams-cached": _CACHE, "streams-once": _CACHE, "streams-once-seldom": _CACHE}


@dataclass(frozen=True)
class Place:
    """Where a run finds what it reads, and how much that is."""

    servers: str
    folder: Path
    batch: int
    batches: int

    @property
    def url(self) -> str:
        """The log of Everstate."""
        return f"kafka://{self.servers}"


def measure(scale: Scale, say: Callable[[str], None]) -> tuple[dict[str, Any], list[Figure]]:
    """Run all of them, with few and with many keys."""
    raw: dict[str, Any] = {}
    figures: list[Figure] = []
    for keys in scale.keys:
        with broker() as servers, tempfile.TemporaryDirectory(prefix="bench-") as folder:
            place = Place(servers, Path(folder), scale.batch_records, scale.batches)
            raw[str(keys)] = found = _compared(place, keys, say)
        figures += _figures(found, keys)
    return raw, figures


@contextmanager
def broker() -> Iterator[str]:
    """A broker that may use all that Java has."""
    os.environ[kafka_broker.JAVA_OPTIONS] = "-Xmx1g"
    with tempfile.TemporaryDirectory(prefix="bench-kafka-") as folder:
        try:
            yield kafka_broker.start(Path(folder), owner=os.getpid()).address
        finally:
            kafka_broker.stop(Path(folder))
            del os.environ[kafka_broker.JAVA_OPTIONS]


def _compared(place: Place, keys: int, say: Callable[[str], None]) -> dict[str, Any]:
    expected = fill(place, keys)
    found: dict[str, Any] = {"missing": {}}
    # Everstate first and last, so that neither it nor the others have the machine's better minutes.
    for turn, name in enumerate([*_NAMES, "everstate"]):
        say(f"Kafka, {keys:,} keys: {_NAMES[name]} (load {os.getloadavg()[0]:.1f})")
        output = f"{name}-{turn}"
        processor = Processor()
        try:
            run = _run(place, name, output, processor)
        except programs.MissingError as error:
            say(f"NOT MEASURED: {error}")
            found["missing"][name] = str(error)
            continue
        _check(place, output, expected)
        run["processor_seconds"] = processor.between(run["began"], run["ended"])
        run["load"] = os.getloadavg()[0]
        found.setdefault(name, []).append(run)
    return found


def fill(place: Place, keys: int) -> pl.DataFrame:
    """Write the payments to the topic; returns the totals that all must come to."""
    log = open_log(place.url)
    log.create_topic(inputs.TOPIC, TopicConfig(partitions=inputs.PARTITIONS))
    parts: list[pl.DataFrame] = []
    for lines in inputs.batches(place.batches, place.batch, keys):
        customer = pl.col("value").str.extract(r'"customer":"key-(\d+)"').cast(pl.Int64)
        rows = lines.with_columns(
            key=pl.lit("key-") + customer.cast(pl.String),
            partition=(customer % inputs.PARTITIONS).cast(pl.Int32),
            ts=pl.lit(time.time_ns() // 1_000_000, pl.Int64),
        )
        log.append(inputs.TOPIC, rows.select(pl.col("key", "value").cast(pl.Binary), "ts", "partition"))
        amount = pl.col("value").str.extract(r'"amount":(\d+)').cast(pl.Int64)
        parts.append(rows.group_by("key").agg(n=pl.len().cast(pl.Int64), total=amount.sum()))
    log.close()
    return pl.concat(parts).group_by("key").agg(pl.col("n", "total").sum()).sort("key")


def _run(place: Place, name: str, output: str, processor: Processor) -> dict[str, Any]:
    folder = place.folder / output
    if name == "everstate":
        settings = {"memory": _MEMORY, "max_records": place.batch}
        return fresh("kafka:everstate", processor, url=place.url, state=folder, name=output, settings=settings)
    records = place.batch * place.batches
    where = (place.servers, inputs.TOPIC, output, folder)
    if name == "quix":
        command = programs.quix(*where, "at-least-once", place.batch, records)
    elif name == "spark":
        command = programs.spark(*where, place.batch)
    else:
        guarantee = _ONCE if "once" in name else _ALL
        interval = _SELDOM_MS if "seldom" in name else 0
        command = programs.streams(*where, guarantee, _CACHED[name], interval, place.batch, records)
    log = open_log(place.url)
    log.create_topic(output, TopicConfig(partitions=inputs.PARTITIONS))
    log.close()
    return said(command, processor)


def everstate(url: str, state: str, name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Run the service once over the topic; returns when its first and its last micro-batch were committed."""
    with Commits(url, name, name) as commits:
        Runner(services.totals(url, name), state_dir=Path(state), show=False, **settings).run(once=True)
    began, ended = commits.span
    return {"began": began, "ended": ended, "records": len(commits.seconds) * settings["max_records"]}


def _check(place: Place, output: str, expected: pl.DataFrame) -> None:
    log = open_log(place.url)
    rows = log.latest(output).select(pl.col("key", "value").cast(pl.String))
    log.close()
    value = pl.col("value").str.json_decode(pl.Struct({"n": pl.Int64, "total": pl.Int64}))
    found = rows.select("key", value).unnest("value").sort("key")
    if not found.equals(expected):
        differing = expected.join(found, on=["key", "n", "total"], how="anti", nulls_equal=True)
        raise RuntimeError(f"{output}: {len(differing)} of {len(expected)} totals are not what they should be")


def _figures(found: dict[str, Any], keys: int) -> list[Figure]:
    runs = {name: found[name] for name in _NAMES if name in found}
    rates = {name: sum(r["records"] for r in of) / _seconds(of) for name, of in runs.items()}
    costs = {
        name: sum(r["processor_seconds"] for r in of) * 1e6 / sum(r["records"] for r in of) for name, of in runs.items()
    }
    figures = []
    for name, rate in rates.items():
        figures.append(Figure(f"Kafka, {keys:,} keys: {_NAMES[name]}", rate, "records/s"))
        figures.append(Figure("  processor time without the broker's", costs[name], "us a record"))
    best = max((name for name in rates if name.startswith("streams")), key=rates.__getitem__)
    compared = {best: ("Kafka Streams' best", 2.0), "streams-once": ("Kafka Streams exactly once", 4.0)}
    compared |= {"quix": ("Quix Streams", 12.0), "spark": ("Spark's groupBy().agg()", 2.0)}
    for name, (peer, target) in compared.items():
        if name in rates:
            text = f"Kafka, {keys:,} keys: Everstate to {peer}"
            figures.append(Figure(text, rates["everstate"] / rates[name], "x", at_least=target))
            figures.append(Figure("  by processor time", costs[name] / costs["everstate"], "x"))
    return figures


def _seconds(runs: list[dict[str, Any]]) -> float:
    return sum(float(run["ended"] - run["began"]) for run in runs) / 1_000
