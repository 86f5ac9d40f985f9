"""Windows and joins by time: records a second beside Spark's own operators with a watermark, and small micro-batches.

Both read the same records, in the same micro-batches, and both results are compared with what Polars makes of all
records at once. Spark publishes sessions once they are over, and nothing else; so does Everstate here.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from bench import timed
from bench.commits import Commits
from bench.inputs import PARTITIONS
from bench.processes import fresh
from bench.report import Figure
from everstate.engine.commands.runner import Runner
from everstate.log import TopicConfig
from everstate.log.opening import open_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.scale import Scale

#: The same for both.
SETTINGS: Final[dict[str, Any]] = {"memory": "4g"}
#: What Everstate's records a second must be at least, in Spark's: with few and with many groups.
_TARGETS: Final = {"tumbling": (1.0, 2.0), "hopping": (0.9, 0.9), "session": (1.0, 2.0), "join": (1.0, 1.0)}
#: A customer is in so many windows at once; customers are the fewer, so that groups are as many.
_OVERLAPPING: Final = {"hopping": timed.SIZE_MS // timed.ADVANCE_MS}


def measure(kind: str, scale: Scale, say: Callable[[str], None]) -> tuple[dict[str, Any], list[Figure]]:
    """Run Everstate and Spark in turn, with few and with many groups.

    Args:
        kind: Which of `timed.KINDS`.
        scale: How large.
        say: Told what is going on.
    """
    raw: dict[str, Any] = {}
    figures: list[Figure] = []
    for place, groups in enumerate(scale.keys):
        load = timed.Load(kind, groups // _OVERLAPPING.get(kind, 1), scale.batch_records, scale.batches)
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            raw[str(groups)] = found = _compared(load, scale.rounds, Path(folder), partial(_told, say, kind, groups))
        rates = {name: load.records / statistics.median(seconds) for name, seconds in found.items()}
        text = f"{kind}, {groups:,} groups"
        figures += [
            Figure(f"{text}: Everstate", rates["everstate"], "records/s"),
            Figure(f"{text}: Spark's own", rates["spark"], "records/s"),
            Figure(f"{text}: ratio", rates["everstate"] / rates["spark"], "x", at_least=_TARGETS[kind][place]),
        ]
    return raw, figures


def _told(say: Callable[[str], None], kind: str, groups: int, text: str) -> None:
    say(f"{kind}, {groups:,} groups: {text} (load {os.getloadavg()[0]:.1f})")


def _compared(load: timed.Load, rounds: int, folder: Path, say: Callable[[str], None]) -> dict[str, list[float]]:
    url = str(folder / "log")
    fill(load, url, folder / "files")
    given = {"kind": load.kind, "keys": load.keys, "records": load.records, "batches": load.batches}
    seconds: dict[str, list[float]] = {"everstate": [], "spark": []}
    for turn in range(rounds):
        say(f"Everstate, round {turn + 1}")
        own = {"url": url, "state": folder / f"state-{turn}", "name": f"{load.kind}-{turn}"}
        seconds["everstate"] += fresh("windows:everstate", **given, **own)["seconds"]
        say(f"  {load.records / statistics.median(seconds['everstate']):,.0f} records/s")
        say(f"Spark, round {turn + 1}")
        work = {"folder": folder / "files", "work": folder / f"spark-{turn}"}
        seconds["spark"] += fresh("windows:spark", **given, **work)["seconds"]
        say(f"  {load.records / statistics.median(seconds['spark']):,.0f} records/s")
    return seconds


def fill(load: timed.Load, url: str, files: Path) -> None:
    """Write the records to topics, and as text files, one a partition and batch."""
    log = open_log(url)
    for topic in load.topics:
        log.create_topic(topic, TopicConfig(partitions=PARTITIONS))
        (files / topic).mkdir(parents=True)
        for number, rows in enumerate(load.rows(topic)):
            written = timed.lines(topic, rows)
            log.append(topic, written.with_columns(pl.col("value").cast(pl.Binary)))
            for part in range(PARTITIONS):
                path = files / topic / f"{number:03d}-{part}.json"
                path.write_text("\n".join(written.filter(pl.col("partition") == part)["value"]) + "\n")
                age = 1_767_225_600 + 10 * number + part  # Spark reads files by their age
                os.utime(path, (age, age))
    log.close()


def everstate(url: str, state: str, name: str, **given: Any) -> dict[str, Any]:
    """Run the service once over the topics; returns the seconds of all batches but the first."""
    load = timed.Load(**given)
    with Commits(url, name, name) as commits:
        service = timed.service(load.kind, url, name)
        Runner(service, state_dir=Path(state), show=False, max_records=load.records, **SETTINGS).run(once=True)
    check(load, of_log(load, url, name), whole=load.kind != "session")
    if len(commits.seconds) != load.batches - 1:
        raise RuntimeError(f"{len(commits.seconds) + 1} micro-batches instead of {load.batches}")
    return {"seconds": commits.seconds}


def spark(folder: str, work: str, **given: Any) -> dict[str, Any]:
    """Run Spark's own operators over the files; returns the seconds of all batches but the first."""
    from bench import native_timed  # noqa: PLC0415 - it has a session of its own

    load = timed.Load(**given)
    seconds = native_timed.run(load, folder, work, SETTINGS)
    check(load, native_timed.results(load, work), whole=load.kind != "session")
    return {"seconds": seconds[: load.batches - 1]}


def of_log(load: timed.Load, url: str, name: str) -> pl.DataFrame:
    """What is on the output's topic, as `timed.expected` has it."""
    log = open_log(url)
    if load.kind == "join":
        rows = pl.concat([log.read(name, part, 0) for part in range(PARTITIONS)]).select("key", "value")
        found = json_columns(rows["value"], {"amount": pl.Int64, "refund": pl.Int64})
        customer = rows["key"].cast(pl.String).str.slice(4).cast(pl.Int64)
    else:
        rows = log.latest(name).select("key", "value")
        found = json_columns(rows["value"], {"n": pl.Int64, "total": pl.Int64})
        keys = pl.DataFrame([json.loads(key) for key in rows["key"]], schema=["customer", "start", "end"], orient="row")
        times = pl.col("start", "end").str.to_datetime(time_unit="ms", time_zone="UTC").dt.timestamp("ms")
        found = found.hstack(keys.select(times))
        customer = keys["customer"].str.slice(4).cast(pl.Int64)
    log.close()
    return found.with_columns(customer.alias("customer"))


def json_columns(values: pl.Series, columns: dict[str, Any]) -> pl.DataFrame:
    """The fields of JSON texts."""
    return values.cast(pl.String).str.json_decode(pl.Struct(columns)).struct.unnest()


def check(load: timed.Load, found: pl.DataFrame, *, whole: bool = True) -> None:
    """Refuse figures of a wrong result.

    Args:
        load: What was read.
        found: What came out.
        whole: All that is expected must be there; else only what has been over for a minute.
    """
    wanted = timed.expected(load)
    found = found.select(wanted.columns).sort(wanted.columns)
    must = wanted if whole else wanted.filter(pl.col("end") < load.reached - timed.SIZE_MS // 2)
    lacking = must.join(found, on=wanted.columns, how="anti")
    beside = found.join(wanted, on=wanted.columns, how="anti")
    if lacking.height or beside.height or (whole and found.height != wanted.height):
        raise RuntimeError(
            f"{load.kind}: {lacking.height} of {must.height} results missing, {beside.height} of {found.height} "
            f"wrong: {lacking.head(3).rows()}, {beside.head(3).rows()}"
        )
