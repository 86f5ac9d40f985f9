"""Ctrl-C and SIGTERM as a wish to stop, not as an end in the middle of something."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@contextlib.contextmanager
def stopping_on_signals(stopping: threading.Event) -> Iterator[list[int]]:
    """Set the event when the process is asked to end; only the main thread can hear of it.

    Yields:
        The signals that have come so far.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def heard(number: int, _frame: object) -> None:
        received.append(number)
        stopping.set()

    # PySpark puts its own in place only if Spark is started by the main thread.
    for number in _SIGNALS:
        signal.signal(number, heard)
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def raise_stopped(received: list[int]) -> None:
    """End as a process does that was asked to before it was done.

    Raises:
        KeyboardInterrupt: After Ctrl-C.
        SystemExit: After another signal, with the exit code that shells give it.
    """
    for number in received:
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
