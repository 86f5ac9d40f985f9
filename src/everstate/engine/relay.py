"""What Spark's Java process and its workers write, on its way to the terminal.

Users' own prints come this way and must arrive. Lines that Spark writes at every start whatever the log level is, and
that mean nothing to a user, are left out.
"""

from __future__ import annotations

import sys
import threading
from typing import IO, Final

#: How such lines begin.
NOISE: Final = (
    "WARNING: Using incubator modules",
    "WARNING: A terminally deprecated method",
    "WARNING: sun.misc.Unsafe",
    "WARNING: Please consider reporting this to the maintainers",
    "Starting Streaming TransformWithStateInPandas Python worker",
    "Streaming TransformWithStateInPandas Python worker",
    'Setting default log level to "',
    "To adjust logging level use sc.setLogLevel",
)


class Relay:
    """Passes lines on as they come.

    Args:
        stream: What to read, until it ends.
        target: Where to write; the standard error of the moment if it is not given.
    """

    def __init__(self, stream: IO[str], target: IO[str] | None = None) -> None:
        self._stream = stream
        self._target = target
        self._thread = threading.Thread(target=self._pass_on, name="everstate-relay", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def join(self, timeout: float) -> None:
        """Wait until the other side has closed."""
        self._thread.join(timeout)

    def _pass_on(self) -> None:
        quiet = False
        for line in self._stream:
            # Each of these lines is followed by an empty one.
            quiet = line.startswith(NOISE) or (quiet and not line.strip())
            if not quiet:
                target = self._target or sys.stderr
                target.write(line)
                target.flush()
