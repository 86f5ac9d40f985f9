"""What a running service shows: by output, records a second, lag, state and dead letters."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from everstate.errors.texts import printable
from everstate.log import vectors

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from everstate.generations.deploy.build import Build
    from everstate.generations.deploy.change import Changes
    from everstate.generations.deploy.executor import Execution
    from everstate.log.protocol import Log

_REFRESH_S: Final = 1.0
_LINE_EVERY_S: Final = 30.0


@dataclass(frozen=True)
class Line:
    """One output at one moment.

    Attributes:
        rate: Records a second since the last look.
        lag: Records that wait in the sources.
        state_bytes: Size of the state.
    """

    name: str
    batches: int
    read: int
    written: int
    rate: float
    lag: int
    state_bytes: int
    dead: int
    dropped: int
    last_ms: float

    def text(self) -> str:
        """As one line without a terminal."""
        return (
            f"{self.name}: {self.read:,} records read, {self.written:,} written, {self.rate:,.0f}/s, lag {self.lag:,}, "
            f"state {size_text(self.state_bytes)}, {self.dead:,} dead letters, {self.dropped:,} dropped"
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


class Progress:
    """Shows the outputs of a service: a table on a terminal, else a line now and then.

    Args:
        changes: What runs, and what is being built.
        log: To see how far the sources are ahead.
        show: False for silence; None shows it if the standard error is a terminal, or as lines if not.
        asks: Someone may be asked on the terminal.
    """

    def __init__(self, changes: Changes, log: Log, *, show: bool | None = None, asks: bool = False) -> None:
        self._asks = asks
        self._changes = changes
        self._ended: dict[str, Line] = {}
        self._log = log
        self._silent = show is False
        self._console = Console(stderr=True)
        self._live: Live | None = None
        self._looked = 0.0
        self._printed = time.monotonic()
        self._before: dict[str, tuple[float, int]] = {}
        self._written: dict[str, int] = {}

    def __enter__(self) -> Self:
        if not self._silent and self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=False)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._draw(final=True)
        finally:
            if self._live is not None:
                self._live.stop()

    def update(self) -> None:
        """Show what has changed, at most once a second."""
        now = time.monotonic()
        if self._silent or now - self._looked < _REFRESH_S:
            return
        self._looked = now
        if self._live is not None:
            self._draw()
        elif now - self._printed >= _LINE_EVERY_S:
            self._printed = now
            self._draw()

    def tell(self, text: str) -> None:
        """Say something that happened once."""
        if not self._silent:
            self._console.print(printable(text), markup=False, highlight=False, soft_wrap=True)

    def approves(self, why: str) -> bool:
        """Ask on the terminal, if there is one and questions are welcome."""
        if not self._asks or self._silent or not (self._console.is_terminal and sys.stdin.isatty()):
            return False
        if self._live is not None:
            self._live.stop()  # a question in a table that is drawn again and again would be lost
        self.tell(why)
        try:
            answer = self._console.input("Go on with the cutover? Only 'yes' does it: ")
        except EOFError:
            answer = ""
        if self._live is not None:
            self._live.start()
        return answer.strip().lower() == "yes"

    def lines(self) -> list[Line]:
        """The outputs now; those that have been drained as they ended."""
        now = {execution.name: self._line(execution) for execution in self._changes.executions.values()}
        return list({**self._ended, **now}.values())

    def finished(self, executions: Sequence[Execution]) -> None:
        """Remember what these have done; they are not looked at any more."""
        self._ended.update({execution.name: self._line(execution) for execution in executions})

    def _draw(self, *, final: bool = False) -> None:
        if self._silent:
            return
        lines = self.lines()
        builds = [BuildLine.of(build) for build in self._changes.builds.values()]
        if self._live is not None:
            parts = [_table(lines), *([_build_table(builds)] if builds else [])]
            self._live.update(Group(*parts), refresh=True)
            return
        for build in builds:
            print(build.text(), file=sys.stderr, flush=True)  # noqa: T201 - this is the terminal
        for line in lines:
            if final or self._written.get(line.name) != line.batches:
                self._written[line.name] = line.batches
                print(line.text(), file=sys.stderr, flush=True)  # noqa: T201 - this is the terminal

    def _line(self, execution: Execution) -> Line:
        tally, now = execution.tally, time.monotonic()
        since, read = self._before.get(execution.name, (now - _REFRESH_S, 0))
        self._before[execution.name] = (now, tally.read)
        topics = execution.output.unit.topics
        position = tally.position or execution.position
        dropped = sum(count for name, count in tally.counts.items() if name.startswith("dropped."))
        return Line(
            name=execution.name,
            batches=tally.batches,
            read=tally.read,
            written=tally.written,
            rate=(tally.read - read) / max(now - since, 1e-3),
            lag=vectors.lag(position, self._log.end_offsets(topics)),
            state_bytes=execution.state_bytes(),
            dead=tally.counts.get("dead", 0),
            dropped=dropped,
            last_ms=tally.last_ms,
        )


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


def _build_table(builds: Sequence[BuildLine]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("being built", style="bold")
    for name in ("", "generation", "records", "records/s"):
        table.add_column(name, justify="right")
    table.add_column("")
    table.add_column("", justify="right")
    for build in builds:
        bar = ProgressBar(total=1.0, completed=build.share, width=24)
        left = f"{build.share:.0%}, {build.remaining}"
        table.add_row(build.name, build.how, str(build.generation), f"{build.done:,}", f"{build.rate:,.0f}", bar, left)
    return table


def _table(lines: Sequence[Line]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("output", style="bold")
    for name in ("records/s", "lag", "read", "written", "state", "dead letters", "dropped", "last batch"):
        table.add_column(name, justify="right")
    for line in lines:
        table.add_row(
            line.name,
            f"{line.rate:,.0f}",
            f"{line.lag:,}",
            f"{line.read:,}",
            f"{line.written:,}",
            size_text(line.state_bytes),
            f"[red]{line.dead:,}[/]" if line.dead else "0",
            f"{line.dropped:,}",
            f"{line.last_ms / 1000:.2f} s",
        )
    return table
