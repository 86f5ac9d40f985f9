"""What the measurements gave: a table for people, and a JSON file."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import psutil
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """One line of the report.

    Attributes:
        name: What was measured.
        value: The figure.
        unit: Its unit; "x" for a ratio.
        at_least: The target, if it is a lower bound.
        at_most: The target, if it is an upper bound.
        note: What a reader must know to judge it.
    """

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None if there is none."""
        if self.at_least is not None:
            return self.value >= self.at_least
        if self.at_most is not None:
            return self.value <= self.at_most
        return None

    @property
    def target(self) -> str:
        """The target in words."""
        if self.at_least is not None:
            return f"at least {self.at_least:g}"
        return f"at most {self.at_most:g}" if self.at_most is not None else ""

    def to_json(self) -> dict[str, Any]:
        """The figure as a value for `json.dumps`."""
        return {**self.__dict__, "met": self.met}


def machine() -> dict[str, Any]:
    """Where it was measured."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "load": os.getloadavg(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("everstate", "pyspark", "polars", "pyarrow")},
    }


def document(scale: str, raw: dict[str, Any], figures: Sequence[Figure], began: datetime) -> dict[str, Any]:
    """Everything, as it is written to the file."""
    return {
        "scale": scale,
        "began": began.isoformat(timespec="seconds"),
        "seconds": round((datetime.now(UTC) - began).total_seconds()),
        "commit": _commit(),
        "machine": machine(),
        "figures": [figure.to_json() for figure in figures],
        "raw": raw,
    }


def write(path: Path, content: dict[str, Any]) -> None:
    """Write the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def table(figures: Sequence[Figure]) -> Table:
    """The figures for a terminal."""
    lines = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("measurement", "figure", "", "target", "met"):
        lines.add_column(name, justify="right" if name == "figure" else "left", overflow="fold")
    for figure in figures:
        met = {True: "[green]yes[/]", False: "[red]no[/]", None: ""}[figure.met]
        lines.add_row(figure.name, number(figure.value), figure.unit, figure.target, met)
    return lines


def number(value: float) -> str:
    """A figure with as many digits as it is worth."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:  # noqa: PTH123 - not a path of ours
            return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def _commit() -> str | None:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)  # noqa: S607 - git of the PATH
    return done.stdout.strip() or None
