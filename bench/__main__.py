"""Measure, print the figures with their targets, and write `build/bench.json`.

make bench
python -m bench --quick
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from bench import memory, report, throughput
from bench.processes import ROOT
from bench.scale import FULL, QUICK

#: What is measured, in this order.
MEASUREMENTS = {"throughput": throughput.measure, "memory": memory.measure}


def main(words: list[str]) -> int:
    """Run all measurements; the exit code says whether every target was met."""
    scale = QUICK if "--quick" in words else FULL
    console, began = Console(), datetime.now(UTC)
    raw: dict[str, Any] = {}
    figures: list[report.Figure] = []
    for name, measure in MEASUREMENTS.items():
        found, lines = measure(scale, lambda text: console.print(f"[dim]{text}[/]"))
        raw[name] = found
        figures += lines
    console.print(report.table(figures))
    report.write(ROOT / "build" / "bench.json", report.document(scale.name, raw, figures, began))
    console.print("written to build/bench.json")
    return 0 if scale is QUICK or all(figure.met is not False for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
