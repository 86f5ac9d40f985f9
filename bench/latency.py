"""One record to its result, warm: with one output, and with several of one service that all read it."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import psutil

from bench import inputs, services
from bench.processes import fresh
from bench.processor import Processor
from bench.report import Figure
from everstate.engine.commands.runner import Runner
from everstate.engine.jvm.session import start_session, stop_session
from everstate.generations.deploy.settings import Settings
from everstate.log.opening import open_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.scale import Scale
    from everstate.log.protocol import Log

#: Records at the beginning that do not count: Java compiles, workers start.
_WARM_UP: Final = 12
_KEYS: Final = 1_000
_LOOK_S: Final = 0.005
_LONGEST_S: Final = 120.0
_MEMORY: Final = "2g"


def measure(scale: Scale, say: Callable[[str], None]) -> tuple[dict[str, Any], list[Figure]]:
    """Take the time and the processor time of single records, with one output and with several."""
    taken: dict[int, dict[str, list[float]]] = {}
    for outputs in scale.outputs:
        say(f"one record to its result, {outputs} output{'s' if outputs > 1 else ''}")
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            taken[outputs] = fresh("latency:records", folder=folder, outputs=outputs, count=scale.single_records)
    one, several = scale.outputs
    middles = {outputs: {name: statistics.median(each) for name, each in it.items()} for outputs, it in taken.items()}
    figures = [
        *(Figure(f"one record to the last of {outputs} results", middles[outputs]["last"], "s") for outputs in taken),
        *(Figure(f"processor time of it, {outputs} outputs", middles[outputs]["processor"], "s") for outputs in taken),
        Figure(f"time, {several} outputs to {one}", middles[several]["last"] / middles[one]["last"], "x"),
        Figure(
            f"processor time, {several} outputs to {one}",
            middles[several]["processor"] / middles[one]["processor"],
            "x",
            at_most=float(several),
        ),
    ]
    return {str(outputs): it for outputs, it in taken.items()}, figures


def records(folder: str, outputs: int, count: int) -> dict[str, list[float]]:
    """Send one record at a time to a running service, the next when all outputs have their result.

    Returns:
        Seconds to the first and the last result, and of processor time, for each record that counts.
    """
    url = str(Path(folder) / "log")
    random = np.random.default_rng(7)
    inputs.append(url, inputs.payments(_KEYS, _KEYS, seed=1))
    session = start_session(Settings(memory=_MEMORY), "bench")
    runner = Runner(services.several(url, outputs), session=session, show=False, memory=_MEMORY)
    runner.start()
    log = open_log(url)
    taken: dict[str, list[float]] = {"first": [], "last": [], "processor": []}
    processor, process = Processor(), psutil.Process(os.getpid())
    try:
        _await(log, outputs, _KEYS)
        for number in range(_WARM_UP + count):
            processor.look(process)
            began = time.time() * 1_000
            inputs.append(url, inputs.texts(random.integers(0, _KEYS, 1), np.ones(1, np.int64)), batch=number + 1)
            first, last = _await(log, outputs, _KEYS + number + 1)
            processor.look(process)
            if number >= _WARM_UP:
                taken["first"].append((first - began) / 1_000)
                taken["last"].append((last - began) / 1_000)
                taken["processor"].append(processor.between(began, time.time() * 1_000))
    finally:
        runner.stop()
        stop_session(session)
        log.close()
    return taken


def _await(log: Log, outputs: int, position: int) -> tuple[float, float]:
    """Wait until all outputs have read so many records; returns when the first and the last of them had."""
    waiting = {services.numbered(number) for number in range(outputs)}
    times: list[float] = []
    until = time.monotonic() + _LONGEST_S
    while waiting:
        for output in sorted(waiting):
            commit = log.last_commit(services.SEVERAL, output)
            if commit is not None and sum(commit.end[inputs.TOPIC].values()) >= position:
                waiting.remove(output)
                times.append(time.time() * 1_000)
        if time.monotonic() > until:
            raise RuntimeError(f"{len(waiting)} outputs have not read the record")
        time.sleep(_LOOK_S)
    return times[0], times[-1]
