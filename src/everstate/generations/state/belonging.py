"""Which log the state of a service belongs to: offsets in another log mean other records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from everstate.errors import StateError
from everstate.generations.state.folder import read_document, write_document

if TYPE_CHECKING:
    from pathlib import Path

    from everstate.log.protocol import Log

LOG_FILE: Final = "log.json"


def check_log(home: Path, log: Log) -> None:
    """Refuse state that was made with another log; state that does not say so was made before it was noted.

    Args:
        home: The folder of the service's state.
        log: The log that the service is to use.

    Raises:
        StateError: If it belongs to another one.
    """
    # Whether there can be state in this place is for whoever makes the folder to say.
    known = read_document(home / LOG_FILE) if home.is_dir() else None
    if known is None or known.get("id") == log.id:
        return
    there = f"the log in {log.url} is a different one" if log.id else f"there is no log in {log.url}"
    raise StateError(
        f"the state in {home} belongs to the log that was in {known.get('url')}, but {there}",
        hint="Name that log with --log PATH or EVERSTATE_LOG, or another folder for the state with --state-dir PATH. "
        "To give the state up: everstate clear SERVICE.py, then run it again.",
    )


def remember_log(home: Path, log: Log) -> None:
    """Note which log the state belongs to."""
    if log.id is not None and read_document(home / LOG_FILE) is None:
        write_document(home / LOG_FILE, {"id": log.id, "url": log.url})


def forget_log(home: Path) -> None:
    """The state is gone."""
    (home / LOG_FILE).unlink(missing_ok=True)
