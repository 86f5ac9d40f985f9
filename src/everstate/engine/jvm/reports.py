"""Where Spark's Java process reports what goes wrong in it: a file under the state folder, never the terminal."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

#: The folder, beside those of the outputs; no topic has such a name.
REPORTS: Final = "@spark"
_LOG4J: Final = Path(__file__).with_name("log4j2.properties")
_LOG4J_FILE: Final = Path(__file__).with_name("log4j2-file.properties")
#: Levels at which more is written than what goes to the file anyway.
_VERBOSE: Final = ("ALL", "TRACE", "DEBUG", "INFO")
#: What bypasses Java's logging is little: it is kept up to this length.
_MOST_BYTES: Final = 1_000_000


def report_file(home: Path) -> Path:
    """The file that Spark's Java process logs to; Java keeps it and two older ones at 10 MB each."""
    return home / REPORTS / "spark.log"


def logging_options(level: str, report: Path | None) -> list[str]:
    """Java's options for its logging.

    Args:
        level: What the terminal gets, too; at ERROR and above nothing, since Everstate names errors itself.
        report: The file; None for the terminal alone.
    """
    if report is None:
        options = [f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}", f"-Deverstate.level={level}"]
        return options if level == "ERROR" else [*options, f"-Deverstate.failures={level}"]
    return [
        f"-Dlog4j2.configurationFile={_LOG4J_FILE.as_uri()}",
        f'-Deverstate.report="{report}"',
        f"-Deverstate.level={level if level in _VERBOSE else 'WARN'}",
        f"-Deverstate.terminal={level if level in (*_VERBOSE, 'WARN') else 'OFF'}",
    ]


class Aside:
    """Takes lines that Java wrote past its logging, such as what a dying thread says.

    Args:
        report: The report; the lines go into a file beside it. None to lose them.
    """

    def __init__(self, report: Path | None) -> None:
        self._path = None if report is None else report.with_name("java.log")

    def __call__(self, line: str) -> None:
        """Keep a line; a disk that is full must not end whoever passes lines on."""
        if self._path is None:
            return
        with contextlib.suppress(OSError):
            if self._path.exists() and self._path.stat().st_size > _MOST_BYTES:
                self._path.replace(self._path.with_suffix(".log.1"))
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line)
