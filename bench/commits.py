"""When the micro-batches of an output were committed."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Self

from everstate.log.opening import open_log

if TYPE_CHECKING:
    from types import TracebackType

#: Batches take longer, and a look costs more than a millisecond.
_LOOK_S: Final = 0.05


class Commits:
    """Watches the log while a service runs in this process.

    Args:
        url: The log.
        service: Name of the service.
        output: Name of the output.
    """

    def __init__(self, url: str, service: str, output: str) -> None:
        self._log = open_log(url)
        self._of = (service, output)
        self._times: dict[int, int] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="bench-commits", daemon=True)

    def __enter__(self) -> Self:
        self._before = self._log.last_commit(*self._of)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        self._look()
        self._log.close()

    @property
    def seconds(self) -> list[float]:
        """How long each batch took, from the commit of the one before to its own; none for the first."""
        numbers = sorted(self._times)
        if numbers != list(range(numbers[0], numbers[-1] + 1)) if numbers else False:
            raise RuntimeError("a commit was missed")
        return [(self._times[later] - self._times[earlier]) / 1_000 for earlier, later in pairwise(numbers)]

    @property
    def span(self) -> tuple[int, int]:
        """When the first batch was committed, and the last one, in milliseconds."""
        return min(self._times.values()), max(self._times.values())

    def _watch(self) -> None:
        while not self._done.wait(_LOOK_S):
            self._look()

    def _look(self) -> None:
        last = self._log.last_commit(*self._of)
        if last is not None and last != self._before and last.committed_ms is not None:
            self._times[last.batch_id] = last.committed_ms
