"""Measuring in fresh processes: each run starts its own Python and Java, and its memory is watched from outside."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parents[1]
_LOOK_S: Final = 0.25
_LONGEST_S: Final = 3_600


class Watch(Protocol):
    """Looks at a process again and again while it runs."""

    def look(self, process: psutil.Process) -> None:
        """Look once."""


@dataclass
class Peak:
    """The most memory that a process and all its descendants had at once.

    Attributes:
        total: Bytes, pages that several processes share counted once.
        java: What Java had of it.
        python: What Python processes had of it.
    """

    total: int = 0
    java: int = 0
    python: int = 0
    looks: int = field(default=0, repr=False)

    def look(self, process: psutil.Process) -> None:
        """Take the memory of now into account."""
        java = python = 0
        with suppress(psutil.Error):
            for each in [process, *process.children(recursive=True)]:
                with suppress(psutil.Error):
                    size = _size(each)
                    if "java" in each.name():
                        java += size
                    else:
                        python += size
        self.looks += 1
        self.java, self.python = max(self.java, java), max(self.python, python)
        self.total = max(self.total, java + python)


def fresh(function: str, watch: Watch | None = None, **arguments: Any) -> dict[str, Any]:
    """Call a function of this package in a process of its own.

    Args:
        function: Module and name, such as "throughput:everstate". It returns what JSON can hold.
        watch: Looks at the process while it runs.
        arguments: What JSON can hold, and paths.

    Raises:
        RuntimeError: If the process fails.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        result = Path(folder) / "result.json"
        text = json.dumps(arguments, default=str)
        with started([sys.executable, "-m", "bench.processes", function, str(result), text]) as process:
            _watched(process, watch)
        if process.returncode != 0:
            raise RuntimeError(f"{function} ended with {process.returncode}")
        outcome: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        return outcome


def said(command: list[str], watch: Watch | None = None) -> dict[str, Any]:
    """Run a program; returns the JSON of its last line.

    Raises:
        RuntimeError: If it fails.
    """
    with tempfile.TemporaryFile() as out:
        with started(command, stdout=out) as process:
            _watched(process, watch)
        out.seek(0)
        lines = out.read().decode().splitlines()
    if process.returncode != 0 or not lines:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}: {lines[-20:]}")
    outcome: dict[str, Any] = json.loads(lines[-1])
    return outcome


@contextmanager
def started(command: list[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is gone in the end, with everything that it started."""
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, **options)  # noqa: S603 - our own commands
    try:
        yield process
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _watched(process: subprocess.Popen[bytes], watch: Watch | None) -> None:
    deadline = time.monotonic() + _LONGEST_S
    root = psutil.Process(process.pid)
    while process.poll() is None:
        if watch is not None:
            watch.look(root)
        if time.monotonic() > deadline:
            raise RuntimeError(f"a measurement took longer than {_LONGEST_S} s")
        time.sleep(_LOOK_S)


def _size(process: psutil.Process) -> int:
    """The process's memory; what several share is divided between them where the system says so."""
    with suppress(psutil.Error, AttributeError):
        return int(process.memory_full_info().pss)
    return int(process.memory_info().rss)


def _main(function: str, result: str, text: str) -> None:
    module, name = function.split(":")
    outcome = getattr(importlib.import_module(f"bench.{module}"), name)(**json.loads(text))
    Path(result).write_text(json.dumps(outcome), encoding="utf-8")


if __name__ == "__main__":
    _main(*sys.argv[1:])
