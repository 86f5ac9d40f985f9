"""What a running service shows: by output, records a second, lag, state and dead letters."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from everstate.log import vectors

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from everstate.engine.execution import Execution
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


class Progress:
    """Shows the outputs of a service: a table on a terminal, else a line now and then.

    Args:
        executions: The outputs.
        log: To see how far the sources are ahead.
        show: False for silence; None shows it if the standard error is a terminal, or as lines if not.
    """

    def __init__(self, executions: Sequence[Execution], log: Log, *, show: bool | None = None) -> None:
        self._executions = executions
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

    def lines(self) -> list[Line]:
        """The outputs now."""
        return [self._line(execution) for execution in self._executions]

    def _draw(self, *, final: bool = False) -> None:
        if self._silent:
            return
        lines = self.lines()
        if self._live is not None:
            self._live.update(_table(lines), refresh=True)
            return
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
