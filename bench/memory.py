"""The most memory that all processes of a run have at once, with some records and with four times as many."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench import inputs
from bench.processes import Peak, fresh
from bench.report import Figure
from bench.throughput import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.scale import Scale

#: A run with four times the records may have this many times the memory: not more, but for noise.
_GROWTH: Final = 1.2
_MEGABYTE: Final = 1 << 20


def measure(scale: Scale, say: Callable[[str], None]) -> tuple[dict[str, Any], list[Figure]]:
    """Run the same service over both."""
    peaks = [_peak(scale, times, say) for times in (1, 4)]
    few, many = (peak.total for peak in peaks)
    records = scale.memory_records
    figures = [
        Figure(f"peak memory, {records:,} records", few / _MEGABYTE, "MB"),
        Figure(f"peak memory, {4 * records:,} records", many / _MEGABYTE, "MB"),
        Figure("growth of memory with four times the records", many / few, "x", at_most=_GROWTH),
    ]
    return {"peaks": [peak.__dict__ for peak in peaks]}, figures


def _peak(scale: Scale, times: int, say: Callable[[str], None]) -> Peak:
    say(f"memory, {times * scale.memory_records:,} records")
    peak = Peak()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        url = str(Path(folder) / "log")
        part = min(scale.memory_records, 1_000_000)
        for number in range(times * scale.memory_records // part):
            inputs.append(url, inputs.payments(part, scale.memory_keys, seed=number), batch=number)
        settings = {**SETTINGS, "max_records": part}
        arguments = {"url": url, "state": Path(folder) / "state", "name": "totals", "settings": settings}
        fresh("throughput:everstate", peak=peak, keys=scale.memory_keys, **arguments)
    return peak
