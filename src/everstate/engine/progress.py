"""What a running service shows: by output, records a second, lag, state and dead letters."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING, Final, Self

from rich.console import Console
from rich.live import Live

from everstate.engine.board import BuildLine, Line, board
from everstate.errors import LogBusyError, LogUnavailableError, ResourceError
from everstate.errors.texts import printable
from everstate.log import vectors
from everstate.log.waiting import waits_for

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from everstate.generations.deploy.change import Changes
    from everstate.generations.deploy.executor import Execution
    from everstate.log.protocol import Log

_REFRESH_S: Final = 1.0
_LINE_EVERY_S: Final = 30.0


class Progress:
    """Shows the outputs of a service: a table on a terminal, else a line now and then.

    Args:
        changes: What runs, and what is being built.
        log: To see how far the sources are ahead.
        show: False for silence; None shows it if the standard error is a terminal, or as lines if not.
        asks: Someone may be asked on the terminal.
        service: The service's name.
    """

    def __init__(
        self, changes: Changes, log: Log, *, show: bool | None = None, asks: bool = False, service: str = ""
    ) -> None:
        self._asks = asks
        self._changes = changes
        self._ended: dict[str, Line] = {}
        self._log = log
        self._silent = show is False
        self._console = Console(stderr=True)
        self._live: Live | None = None
        self._looked = 0.0
        self._service = service
        self._began = self._printed = time.monotonic()
        self._last: dict[str, tuple[int, float]] = {}
        self._before: dict[str, tuple[float, int]] = {}
        self._written: dict[str, int] = {}

    def __enter__(self) -> Self:
        if not self._silent and self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=False)
            self._live.start()
            self._draw()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # A log that cannot be read for the moment is no reason to end with an error what has ended well.
            with contextlib.suppress(ResourceError, LogBusyError, LogUnavailableError):
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
            answer = self._console.input("Go on with the cutover? Type 'yes' to confirm: ")
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
            uptime = time.monotonic() - self._began
            shown = board(self._service, uptime, lines, builds, self._console.width)
            self._live.update(shown, refresh=True)
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
        if self._last.get(execution.name, (0,))[0] != tally.batches:
            self._last[execution.name] = (tally.batches, time.time())
        return Line(
            name=execution.name,
            generation=execution.output.generation.number,
            batches=tally.batches,
            read=tally.read,
            written=tally.written,
            rate=(tally.read - read) / max(now - since, 1e-3),
            lag=vectors.lag(position, self._log.end_offsets(topics)),
            state_bytes=execution.state_bytes(),
            dead=tally.counts.get("dead", 0),
            dropped=dropped,
            last_ms=tally.last_ms,
            last_at=self._last[execution.name][1] if tally.batches else None,
            position=position,
            waits_for=waits_for(tally.times),
        )
