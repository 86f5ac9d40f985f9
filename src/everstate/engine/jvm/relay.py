"""What Spark's Java process and its workers write, on its way to the terminal.

Users' own prints come this way and must arrive. Lines that Spark writes at every start whatever the log level is, and
that mean nothing to a user, are left out. Stack traces of Java and of PySpark's machinery go to a file: Everstate names
what failed itself.
"""

from __future__ import annotations

import re
import sys
import threading
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

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
    "Picked up JAVA_TOOL_OPTIONS",
    "Picked up _JAVA_OPTIONS",
    "Picked up JDK_JAVA_OPTIONS",
)


#: What Java writes past its logging: threads that died, complaints of the logging itself, warnings of the machine.
_JAVA: Final = re.compile(
    r"Exception in thread |Exception: java|\s+at [\w$.]+[\w$<>/.]*\(|Caused by: |\s+\.\.\. \d+ more|\s+Suppressed: "
    r"|(?:java|javax|jdk|sun|scala|org|io|com|net|py4j)\.[\w.$]+(?:Exception|Error)\b|(?:OpenJDK|Java HotSpot).*warning"
    r"|\d{4}-\d\d-\d\d.* (?:ERROR|WARN) |SLF4J: |log4j:|WARNING: .*(?:java\.|jdk\.|sun\.|native-access)"
    r"|PySpark worker failed with exception:|\S*[/\\](?:pyspark|py4j)[/\\]\S+:\d+: \w+Warning: "
)
#: What joins a traceback, or a warning and its line of code, to the one before.
_JOINED: Final = re.compile(
    r"\s*$|During handling of the above exception|The above exception was the direct cause| {2}\S"
)
_TRACEBACK: Final = "Traceback (most recent call last):"
#: Where the traceback of a worker goes through that failed outside of any user's code.
_MACHINERY: Final = re.compile(r'File "[^"]*[/\\](?:pyspark|py4j)[/\\]')
#: Tracebacks end; a line that only looks like the beginning of one must not hold back the rest.
_MOST_LINES: Final = 200


class Relay:
    """Passes lines on as they come.

    Args:
        stream: What to read, until it ends.
        target: Where to write; the standard error of the moment if it is not given.
        aside: Takes Java's and PySpark's own stack traces; None to pass them on like the rest.
    """

    def __init__(
        self, stream: IO[str], target: IO[str] | None = None, aside: Callable[[str], None] | None = None
    ) -> None:
        self._stream = stream
        self._target = target
        self._aside = aside
        self._held: list[str] = []
        self._machinery = False
        self._thread = threading.Thread(target=self._pass_on, name="everstate-relay", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def join(self, timeout: float) -> None:
        """Wait until the other side has closed."""
        self._thread.join(timeout)

    def _pass_on(self) -> None:
        quiet = aside = False
        for line in self._stream:
            # Each of these lines is followed by an empty one.
            quiet = line.startswith(NOISE) or (quiet and not line.strip())
            if quiet:
                continue
            if self._aside is None:
                self._write(line)
            elif self._is_of_traceback(line):
                aside = self._machinery
            else:
                aside = bool(_JAVA.match(line)) or (aside and bool(_JOINED.match(line)))
                (self._aside if aside else self._write)(line)
        self._release()

    def _is_of_traceback(self, line: str) -> bool:
        """Hold a traceback back until it is whole: only then is it known whose it is."""
        if not self._held and not line.startswith(_TRACEBACK):
            return False
        self._held.append(line)
        if not line.startswith((" ", _TRACEBACK)) or len(self._held) > _MOST_LINES:
            self._release()
        return True

    def _release(self) -> None:
        held, self._held = self._held, []
        self._machinery = any(_MACHINERY.search(line) for line in held)
        for line in held:
            if self._machinery and self._aside is not None:
                self._aside(line)
            else:
                self._write(line)

    def _write(self, line: str) -> None:
        target = self._target or sys.stderr
        target.write(line)
        target.flush()
