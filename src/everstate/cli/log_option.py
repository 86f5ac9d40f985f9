"""The option that every command on topics has: where the log is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from everstate.errors import ConfigurationError
from everstate.log import open_log

if TYPE_CHECKING:
    from everstate.log import Log

DEFAULT_LOG: Final = "./.everstate"

LogOption = Annotated[
    str,
    typer.Option("--log", metavar="PATH", envvar="EVERSTATE_LOG", help="The log's folder.", show_default=True),
]


def open_existing(address: str) -> Log:
    """Open a log that must be there.

    Raises:
        ConfigurationError: If there is no such folder.
    """
    require_log(address)
    return open_log(address)


def require_log(address: str) -> None:
    """A command that only looks should not leave an empty log behind.

    Raises:
        ConfigurationError: If there is no such folder.
    """
    if "://" not in address and not Path(address).is_dir():
        raise ConfigurationError(
            f"there is no log at {Path(address).absolute()}",
            hint="Name its folder with --log PATH or EVERSTATE_LOG, or create one: everstate topic create TOPIC",
        )
