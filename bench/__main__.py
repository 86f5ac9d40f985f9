"""`python -m bench`: take the measurements, print them, and write them to build/bench.json."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console

from bench import (
    deletion,
    kafka,
    kafka_edits,
    kafka_latency,
    kafka_timed,
    latency,
    memory,
    publishers,
    recalculation,
    report,
    small_batches,
    startup,
    throughput,
    timed,
    windows,
)
from bench.processes import ROOT
from bench.scale import FULL, QUICK

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.report import Figure
    from bench.scale import Scale

    Measure = Callable[[Scale, Callable[[str], None]], tuple[dict[str, Any], list[Figure]]]

MEASUREMENTS: Final[dict[str, Measure]] = {
    "throughput": throughput.measure,
    "small-batches": small_batches.measure,
    "deletion": deletion.measure,
    "startup": startup.measure,
    "latency": latency.measure,
    "recalculation": recalculation.measure,
    "memory": memory.measure,
    **{kind: partial(windows.measure, kind) for kind in timed.KINDS},
    "kafka": kafka.measure,
    "publishers": publishers.measure,
    "kafka-latency": kafka_latency.measure,
    "kafka-edits": kafka_edits.measure,
    **{f"kafka-{kind}": partial(kafka_timed.measure, kind) for kind in kafka_timed.KINDS},
}


def main(arguments: list[str]) -> int:
    """Run; the exit status says whether the targets were met, unless it is a quick run."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that it works, its figures say nothing")
    parser.add_argument("--only", nargs="+", choices=list(MEASUREMENTS), help="take only these measurements")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench.json", help="where the figures go")
    parser.add_argument(
        "--records", type=int, help="records of a run over several batches, instead of the usual number"
    )
    parser.add_argument("--keys", nargs="+", type=int, help="keys or groups, instead of few and many")
    parser.add_argument("--rounds", type=int, help="how often a throughput run is repeated")
    options = parser.parse_args(arguments)
    scale = QUICK if options.quick else FULL
    if options.records is not None:
        batches = scale.recalculated_batches if options.only == ["kafka-edits"] else scale.batches
        scale = replace(scale, batch_records=options.records // batches)
    if options.keys is not None:
        scale = replace(scale, keys=tuple(options.keys))
    if options.rounds is not None:
        scale = replace(scale, rounds=options.rounds)
    console = Console(stderr=True, highlight=False)
    began = datetime.now(UTC)
    raw: dict[str, Any] = {}
    figures: list[Figure] = []
    for name in options.only or MEASUREMENTS:
        raw[name], found = MEASUREMENTS[name](scale, lambda text: console.print(f"[dim]{text}[/]"))
        figures += found
    report.write(options.output, report.document(scale.name, raw, figures, began))
    Console(highlight=False).print(report.table(figures))
    console.print(f"written to {options.output}")
    missed = [figure for figure in figures if figure.met is False]
    return 1 if missed and not options.quick else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
