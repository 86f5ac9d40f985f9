"""Opening a log by its address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everstate.errors import ConfigurationError
from everstate.log.embedded import EmbeddedLog
from everstate.log.memory import MemoryLog

if TYPE_CHECKING:
    from pathlib import Path

    from everstate.log.protocol import Log


def open_log(url_or_path: str | Path, *, trusted: bool = False) -> Log:
    """Open the log at a path; a folder that is not there yet is created with the first thing that is written.

    Args:
        url_or_path: Where it is. `memory:` is a new log in memory, whose `url` opens it again in the same process.
        trusted: Another process of the same service has opened it before, and has found it whole.

    Raises:
        ConfigurationError: If the address is of a kind that is not supported.
    """
    address = str(url_or_path)
    if address.startswith("memory:"):
        name = address.removeprefix("memory:")
        return MemoryLog.opened(name) if name else MemoryLog()
    scheme, separator, rest = address.partition("://")
    if separator and scheme == "file":
        return EmbeddedLog(rest, trusted=trusted)
    if separator:
        raise ConfigurationError(
            f"there is no log of the kind {scheme!r} ({address})",
            hint="Name a folder, for example --log ./.everstate; or, for tests, memory:",
        )
    return EmbeddedLog(address, trusted=trusted)
