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
def stopping_on_signals(stopping: threading.Event) -> Iterator[None]:
    """Set the event when the process is asked to end; only the main thread can hear of it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    # PySpark puts its own in place only if Spark is started by the main thread.
    for number in _SIGNALS:
        signal.signal(number, lambda *_: stopping.set())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
