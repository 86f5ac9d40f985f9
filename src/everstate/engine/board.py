"""How outputs and builds look on a terminal, at one moment: plain values in, a table or a line of text out."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from everstate.plan.words import counted, lasting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import RenderableType

    from everstate.generations.deploy.build import Build
    from everstate.log.descriptions import Vector
    from everstate.log.waiting import Waiting


@dataclass(frozen=True)
class Line:
    """One output at one moment.

    Attributes:
        generation: Which version it is.
        batches: Micro-batches committed in this run.
        rate: Records a second since the last look.
        lag: Records that wait in the sources.
        state_bytes: Size of the state.
        last_ms: How long the last micro-batch took.
        last_at: When it was seen to be committed, in seconds since 1970; None if there was none in this run.
        position: Where in its sources the output is.
        waits_for: The partition that holds its steps up that go by time; None if none is far behind.
    """

    name: str
    generation: int
    batches: int
    read: int
    written: int
    rate: float
    lag: int
    state_bytes: int
    dead: int
    dropped: int
    last_ms: float
    last_at: float | None = None
    position: Vector = field(default_factory=dict)
    waits_for: Waiting | None = None

    def text(self) -> str:
        """As one line without a terminal."""
        return (
            f"{self.name}: {counted(self.read, 'record')} read, {self.written:,} written, {self.rate:,.0f}/s, "
            f"lag {self.lag:,}, state {size_text(self.state_bytes)}, {counted(self.dead, 'dead letter')}, "
            f"{self.dropped:,} dropped{'' if self.waits_for is None else f', time waits for {self.waits_for}'}"
        )


@dataclass(frozen=True)
class BuildLine:
    """A generation that is being built, at one moment.

    Attributes:
        done: Records read.
        left: Records to read.
        rate: Records a second.
        migrates: Its state comes from another generation; records are only what has come since.
    """

    name: str
    generation: int
    done: int
    left: int
    rate: float
    migrates: bool = False

    @classmethod
    def of(cls, build: Build) -> BuildLine:
        """A build as it is now."""
        return cls(build.name, build.output.generation.number, build.done, build.lag, build.rate, build.migrates)

    @property
    def share(self) -> float:
        """How much of it is done, from 0 to 1."""
        return self.done / max(1, self.done + self.left)

    @property
    def remaining(self) -> str:
        """How long it will still take."""
        return f"{self.left / self.rate:,.0f} s left" if self.rate > 1 else "starting"

    @property
    def how(self) -> str:
        """What is done to it."""
        return "migrated" if self.migrates else "recalculated"

    def text(self) -> str:
        """As one line without a terminal."""
        return (
            f"{self.name}: generation {self.generation} is being {self.how}: {self.done:,} records ({self.share:.0%}), "
            f"{self.rate:,.0f}/s, {self.remaining}"
        )


#: A column's title, from which width of the terminal on it is there, and what is in it.
_COLUMNS: Final[tuple[tuple[str, int, Callable[[Line], RenderableType]], ...]] = (
    ("generation", 0, lambda line: str(line.generation)),
    ("lag", 0, lambda line: f"{line.lag:,}"),
    ("records/s", 0, lambda line: f"{line.rate:,.0f}"),
    ("last batch", 0, lambda line: _clock(line.last_at)),
    ("took", 90, lambda line: f"{line.last_ms / 1000:.2f} s" if line.last_at is not None else ""),
    ("read", 100, lambda line: f"{line.read:,}"),
    ("written", 110, lambda line: f"{line.written:,}"),
    ("state", 120, lambda line: size_text(line.state_bytes)),
    ("dropped", 130, lambda line: f"{line.dropped:,}"),
    ("dead letters", 0, lambda line: Text(f"{line.dead:,}", "red" if line.dead else "")),
)
#: A narrower terminal has no room for the figures of a build.
_WIDE: Final = 100


def board(service: str, uptime: float, lines: Sequence[Line], builds: Sequence[BuildLine], width: int) -> Group:
    """A running service on a terminal.

    Args:
        service: Its name.
        uptime: Seconds since it was started.
        lines: Its outputs.
        builds: What is being built.
        width: Of the terminal.
    """
    head = Table.grid(expand=True)
    head.add_column(overflow="fold")
    head.add_column(justify="right", no_wrap=True)
    head.add_row(Text.assemble((service, "bold"), f"  up {lasting(uptime)}"), Text("Ctrl-C to stop", "dim"))
    parts: list[RenderableType] = [head]
    if lines:
        parts.append(_table(lines, width))
        held = (Text(f"{line.name}: time waits for {line.waits_for}", "yellow") for line in lines if line.waits_for)
        parts.extend(held)
    if builds:
        parts.append(_build_table(builds, width))
    if not lines and not builds:
        parts.append(Text("Starting ...", "dim"))
    return Group(*parts)


def _table(lines: Sequence[Line], width: int) -> Table:
    shown = [(title, cell) for title, least, cell in _COLUMNS if width >= least]
    table = Table(box=None, pad_edge=False)
    table.add_column("output", style="bold", overflow="fold")
    for title, _ in shown:
        table.add_column(title, justify="right", no_wrap=True)
    for line in lines:
        table.add_row(line.name, *(cell(line) for _, cell in shown))
    return table


def _build_table(builds: Sequence[BuildLine], width: int) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("being built", style="bold", overflow="fold")
    for name in ("", "generation", *(("records", "records/s") if width >= _WIDE else ())):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    table.add_column("", justify="right", no_wrap=True)
    for build in builds:
        bar = ProgressBar(total=1.0, completed=build.share, width=24 if width >= _WIDE else 12)
        figures = [f"{build.done:,}", f"{build.rate:,.0f}"] if width >= _WIDE else []
        left = f"{build.share:.0%}, {build.remaining}"
        table.add_row(build.name, build.how, str(build.generation), *figures, bar, left)
    return table


def _clock(at: float | None) -> str:
    """A time of day; of another day with the date."""
    if at is None:
        return "none yet"
    then, now = time.localtime(at), time.localtime()
    same = (then.tm_year, then.tm_yday) == (now.tm_year, now.tm_yday)
    return time.strftime("%H:%M:%S" if same else "%m-%d %H:%M", then)


def size_text(size: float) -> str:
    """A number of bytes for people.

    Example:
        >>> size_text(512), size_text(3_500_000)
        ('512 B', '3.5 MB')
    """
    if size < 1000:
        return f"{size:.0f} B"
    for unit in ("kB", "MB", "GB"):
        size /= 1000
        if size < 1000:
            return f"{size:.1f} {unit}"
    return f"{size / 1000:.1f} TB"
