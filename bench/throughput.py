"""Records a second of a count and a sum by key, in warm micro-batches: Everstate, and Spark's own two ways."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from bench import inputs, services
from bench.commits import Commits
from bench.processes import fresh
from bench.report import Figure
from everstate.engine.commands.runner import Runner
from everstate.log.opening import open_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.scale import Scale

#: The same for all.
SETTINGS: Final[dict[str, Any]] = {"memory": "4g"}
#: What Everstate's records a second must be at least, in those of Spark's aggregation and of one group a key.
_AGGREGATION: Final = (0.9, 2.0)
_PER_KEY: Final = (15.0, 15.0)


def measure(scale: Scale, say: Callable[[str], None]) -> tuple[dict[str, Any], list[Figure]]:
    """Run all three, with few and with many keys."""
    raw: dict[str, Any] = {}
    figures: list[Figure] = []
    for place, keys in enumerate(scale.keys):
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            found = _compared(scale, keys, Path(folder), say)
        raw[str(keys)] = found
        rate = found["everstate"]["records_per_second"]
        native, per_key = (found[name]["records_per_second"] for name in ("aggregation", "per_key"))
        figures += [
            Figure(f"Everstate, {keys:,} keys", rate, "records/s"),
            Figure(f"Spark's groupBy().agg(), {keys:,} keys", native, "records/s"),
            Figure(f"transformWithState a key, {keys:,} keys", per_key, "records/s", note=found["per_key"]["note"]),
            Figure(f"Everstate to groupBy().agg(), {keys:,} keys", rate / native, "x", at_least=_AGGREGATION[place]),
            Figure(f"Everstate to transformWithState, {keys:,} keys", rate / per_key, "x", at_least=_PER_KEY[place]),
        ]
    return raw, figures


def _compared(scale: Scale, keys: int, folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    url, files = str(folder / "log"), folder / "files"
    for number, lines in enumerate(inputs.batches(scale.batches, scale.batch_records, keys)):
        inputs.append(url, lines, batch=number)
        inputs.write_files(files, lines, batch=number)
    seconds: dict[str, list[float]] = {"everstate": [], "aggregation": []}
    own = {**SETTINGS, "max_records": scale.batch_records}
    for turn in range(scale.rounds):
        say(f"throughput, {keys:,} keys, round {turn + 1}: Everstate")
        arguments: dict[str, Any] = {
            "url": url,
            "state": folder / f"state-{turn}",
            "name": f"totals-{turn}",
            "settings": own,
        }
        seconds["everstate"] += fresh("throughput:everstate", keys=keys, **arguments)["seconds"]
        say(f"throughput, {keys:,} keys, round {turn + 1}: Spark's groupBy().agg()")
        work = folder / f"native-{turn}"
        seconds["aggregation"] += fresh("native:aggregation", folder=files, work=work, settings=SETTINGS)["seconds"]
    say(f"throughput, {keys:,} keys: transformWithState, one group a key")
    share = scale.per_key_share
    records = round(scale.batch_records * share)
    for number, lines in enumerate(inputs.batches(2, records, round(keys * share))):
        inputs.write_files(folder / "fewer", lines, batch=number)
    slow = fresh("native:per_key", folder=folder / "fewer", work=folder / "per-key", settings=SETTINGS)["seconds"]
    note = f"{share:.0%} of the records of a batch and of the keys: {records:,} records, {round(keys * share):,} keys"
    return {
        **{name: _rate(scale.batch_records, taken) for name, taken in seconds.items()},
        "per_key": {**_rate(records, slow), "note": note},
    }


def _rate(records: int, seconds: list[float]) -> dict[str, Any]:
    middle = statistics.median(seconds)
    return {"batch_seconds": seconds, "median_seconds": middle, "records_per_second": records / middle}


def everstate(url: str, state: str, name: str, keys: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Run the service once over the topic; returns the seconds of all batches but the first."""
    with Commits(url, name, name) as commits:
        Runner(services.totals(url, name), state_dir=Path(state), show=False, **settings).run(once=True)
    log = open_log(url)
    table = log.latest(name)
    counted = table["value"].cast(pl.String).str.json_path_match("$.n").cast(pl.Int64).sum()
    expected = sum(log.describe(inputs.TOPIC).end.values())
    if counted != expected or len(table) > keys:
        raise RuntimeError(f"the totals count {counted} records instead of {expected}")
    return {"seconds": commits.seconds}
