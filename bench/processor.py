"""Processor time of a process and all its descendants, as it grows.

A machine that others use as well has no wall time that says much; what a program asks of the processors says more.
"""

from __future__ import annotations

import time
from contextlib import suppress

import numpy as np
import psutil


class Processor:
    """Notes the processor time whenever it is asked to look."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._used: list[float] = []
        self._last: dict[tuple[int, float], float] = {}

    def look(self, process: psutil.Process) -> None:
        """Take the time of now into account; what has ended since the last look keeps what it had."""
        with suppress(psutil.Error):
            for each in [process, *process.children(recursive=True)]:
                with suppress(psutil.Error):
                    used = each.cpu_times()
                    self._last[each.pid, each.create_time()] = used.user + used.system
        self._times.append(time.time() * 1_000)
        self._used.append(sum(self._last.values()))

    def between(self, began_ms: float, ended_ms: float) -> float:
        """Seconds of processor time between two moments."""
        first, last = np.interp([began_ms, ended_ms], self._times, self._used)
        return float(last - first)
