"""Peak memory of all processes together: with some records, and with four times as many of the same keys."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench import inputs
from bench.processes import Peak, fresh
from bench.report import Figure

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.scale import Scale

_TIMES: Final = 4
#: Records of one append and of one micro-batch at the most.
_AT_ONCE: Final = 1_000_000
#: Java uses the memory that it was given for its own garbage, now a little more, now a little less.
_MOST_GROWTH: Final = 1.15


def measure(scale: Scale, say: Callable[[str], None]) -> tuple[dict[str, Any], list[Figure]]:
    """Run the totals twice."""
    peaks: dict[int, Peak] = {}
    for records in (scale.memory_records, _TIMES * scale.memory_records):
        say(f"peak memory, {records:,} records")
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            peaks[records] = _peak(Path(folder), records, scale.memory_keys)
    few, many = peaks.values()
    figures = [
        *(Figure(f"peak memory, {records:,} records", peak.total / 1e6, "MB") for records, peak in peaks.items()),
        Figure("peak memory, four times the records", many.total / few.total, "x", at_most=_MOST_GROWTH),
    ]
    return {str(records): peak.__dict__ for records, peak in peaks.items()}, figures


def _peak(folder: Path, records: int, keys: int) -> Peak:
    url = str(folder / "log")
    for number, first in enumerate(range(0, records, _AT_ONCE)):
        inputs.append(url, inputs.payments(min(_AT_ONCE, records - first), keys, seed=number), batch=number)
    peak = Peak()
    settings = {"memory": "2g", "max_records": min(_AT_ONCE, records // 4)}
    fresh(
        "throughput:everstate", watch=peak, url=url, state=folder / "state", name="totals", keys=keys, settings=settings
    )
    return peak
