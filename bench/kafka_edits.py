"""An edited service on Kafka: recalculation and cutover, beside Kafka Streams' way, which is to reset and to reprocess.

Both have processed the topic with the version before. Then one customer in a hundred gets a bonus, and what counts is
the time until the output topic holds the new version's table, with the start of all programs: of Spark here, there of
`kafka-streams-application-reset` and of the service that reads everything again. Both tables are compared with one
that Polars makes.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from bench import inputs, services
from bench.kafka import Place, broker, fill
from bench.peers import programs
from bench.processes import fresh, said
from bench.processor import Processor
from bench.report import Figure
from everstate.log import TopicConfig
from everstate.log.opening import open_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.scale import Scale

_EDIT: Final = 100
_CACHE: Final = 10 << 20
_SELDOM_MS: Final = 4_000
_STREAMS: Final = "streams-totals"
_AT_LEAST: Final = 3.0


def measure(scale: Scale, say: Callable[[str], None]) -> tuple[dict[str, Any], list[Figure]]:
    """Deploy the edit both ways."""
    keys, raw = scale.keys[1], dict[str, Any]()
    with broker() as servers, tempfile.TemporaryDirectory(prefix="bench-") as folder:
        place = Place(servers, Path(folder), scale.batch_records, scale.recalculated_batches)
        records = place.batch * place.batches
        expected = fill(place, keys)
        bonus = pl.when(pl.col("key").str.slice(4).cast(pl.Int64) % _EDIT == 0).then(_EDIT * pl.col("n")).otherwise(0)
        expected = expected.with_columns(total=pl.col("total") + bonus)
        for name, run in (("everstate", _everstate), ("streams", _streams)):
            say(f"Kafka, an edit after {records:,} records, {keys:,} keys: {name} (load {os.getloadavg()[0]:.1f})")
            try:
                raw[name] = run(place, records)
            except programs.MissingError as error:
                say(f"NOT MEASURED: {error}")
                continue
            _check(place, services.TOTALS if name == "everstate" else _STREAMS, expected)
    changed = expected.filter(pl.col("key").str.slice(4).cast(pl.Int64) % _EDIT == 0).height
    if raw["everstate"]["written"] != changed:
        raise RuntimeError(f"{raw['everstate']['written']} records were written where {changed} keys differ")
    texts = {"everstate": "Everstate", "streams": "Kafka Streams, reset and reprocessed, exactly once"}
    figures = []
    for name, found in raw.items():
        text = f"Kafka, an edit after {records:,} records: {texts[name]}"
        figures.append(Figure(text, found["seconds"], "s"))
        figures.append(Figure("  processor time without the broker's", found["processor_seconds"], "s"))
        figures.append(Figure("  records written", found["written"], "records"))
    if "streams" in raw:
        ratio = raw["streams"]["seconds"] / raw["everstate"]["seconds"]
        figures.append(Figure("Kafka, an edit: reprocessing to Everstate", ratio, "x", at_least=_AT_LEAST))
        ratio = raw["streams"]["processor_seconds"] / raw["everstate"]["processor_seconds"]
        figures.append(Figure("  by processor time", ratio, "x"))
    return raw, figures


def _everstate(place: Place, records: int) -> dict[str, Any]:
    del records
    given = {"url": place.url, "state": place.folder / "everstate"}
    fresh("recalculation:deploy", edit=-1, **given)
    before = _written(place, services.TOTALS)
    processor, began = Processor(), time.time() * 1_000
    found = fresh("recalculation:deploy", processor, edit=_EDIT, **given)
    used = processor.between(began, time.time() * 1_000)
    return {**found, "written": _written(place, services.TOTALS) - before, "processor_seconds": used}


def _streams(place: Place, records: int) -> dict[str, Any]:
    log = open_log(place.url)
    log.create_topic(_STREAMS, TopicConfig(partitions=inputs.PARTITIONS, compact=True))
    log.close()
    said(_program(place, records, 0, "first"))
    before = _written(place, _STREAMS)
    processor, began = Processor(), time.time() * 1_000
    _reset(place)
    said(_program(place, records, _EDIT, "second"), processor)
    ended = time.time() * 1_000
    return {
        "seconds": (ended - began) / 1_000,
        "written": _written(place, _STREAMS) - before,
        "processor_seconds": processor.between(began, ended),
    }


def _program(place: Place, records: int, edit: int, folder: str) -> list[str]:
    words = (place.servers, inputs.TOPIC, _STREAMS, place.folder / folder, "exactly_once_v2", _CACHE, _SELDOM_MS)
    return programs.streams(*words, 1, records, edit)


def _reset(place: Place) -> None:
    """What somebody does who has edited a service of Kafka Streams."""
    words = ("--bootstrap-server", place.servers, "--application-id", _STREAMS, "--input-topics", inputs.TOPIC)
    command = programs.tool("org.apache.kafka.tools.StreamsResetter", *words, "--force")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)  # noqa: S603 - our own
    if done.returncode != 0:
        raise RuntimeError(done.stdout + done.stderr)


def _written(place: Place, topic: str) -> int:
    """How many committed records there are in a topic."""
    log = open_log(place.url)
    ends = log.end_offsets([topic])[topic]
    found = sum(log.read(topic, number, 0).height for number in ends)
    log.close()
    return found


def _check(place: Place, output: str, expected: pl.DataFrame) -> None:
    log = open_log(place.url)
    rows = log.latest(output).select(pl.col("key", "value").cast(pl.String))
    log.close()
    value = pl.col("value").str.json_decode(pl.Struct({"n": pl.Int64, "total": pl.Int64}))
    found = rows.select("key", value).unnest("value").sort("key")
    if not found.equals(expected):
        raise RuntimeError(f"{output} does not hold the table of the edited version")
