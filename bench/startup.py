"""How long a newcomer waits: from `everstate run` to the first record on the output topic."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench import inputs, services
from bench.processes import ROOT, started
from bench.report import Figure
from everstate.engine.jvm.class_archive import archive_path, is_whole
from everstate.log.opening import open_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.scale import Scale

_SERVICE: Final = "from bench.services import totals\n\napp = totals({url!r})\n"
_LONGEST_S: Final = 300.0
_LOOK_S: Final = 0.02


def measure(scale: Scale, say: Callable[[str], None]) -> tuple[dict[str, Any], list[Figure]]:
    """Start a service with a new state, as often as the scale says."""
    seconds = []
    for number in range(scale.first_runs):
        say(f"first output record, run {number + 1}")
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            seconds.append(first_record(Path(folder)))
    archive = is_whole(archive_path())
    note = "with the class data archive" if archive else "without a class data archive: run `everstate prepare`"
    figure = Figure("everstate run to the first output record, cold", statistics.median(seconds), "s", note=note)
    return {"seconds": seconds, "class_data_archive": archive}, [figure]


def first_record(folder: Path) -> float:
    """Seconds from the command to the first record."""
    url = str(folder / "log")
    inputs.append(url, inputs.payments(100, 10, seed=1))
    service = folder / "totals.py"
    service.write_text(_SERVICE.format(url=url), encoding="utf-8")
    log = open_log(url)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}  # the service is a file of one line that imports this package
    command = [sys.executable, "-m", "everstate.cli.main", "run", str(service), "--log", url, "--quiet"]
    begun = time.monotonic()
    with started(command, env=environment, stdout=subprocess.DEVNULL) as process:
        while log.last_commit(services.TOTALS, services.TOTALS) is None:
            if process.poll() is not None or time.monotonic() - begun > _LONGEST_S:
                raise RuntimeError("the service has written nothing")
            time.sleep(_LOOK_S)
        taken = time.monotonic() - begun
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=_LONGEST_S)
    log.close()
    return taken
