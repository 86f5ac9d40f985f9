"""The option that every command on topics has: where the log is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everstate.errors import ConfigurationError
from everstate.generations.deploy.settings import LogChoice, choose_log
from everstate.log import open_log
from everstate.log.opening import check_address

if TYPE_CHECKING:
    from everstate.log import Log

LogOption = Annotated[
    str | None,
    typer.Option(
        "--log",
        metavar="LOG",
        help="A folder, or kafka://host:9092; by default EVERSTATE_LOG, the log of the project, or ./.everstate.",
    ),
]


def open_existing(log: str | None) -> Log:
    """Open a log that must be there.

    Raises:
        ConfigurationError: If there is no such folder.
    """
    return open_log(require_log(choose_log(log)))


def open_new(log: str | None) -> Log:
    """Open a log, which begins now if it is not there."""
    return open_log(choose_log(log).address)


def require_log(choice: LogChoice) -> str:
    """The address of a log that must be there: a command that only looks should not leave an empty one behind.

    Raises:
        ConfigurationError: If there is no such folder.
    """
    address = choice.address
    check_address(address)
    if "://" not in address and not Path(address).is_dir():
        raise ConfigurationError(
            f"there is no log at {Path(address).absolute()}, where {choice.why}",
            hint="Name its folder with --log PATH or EVERSTATE_LOG, or create one: everstate topic create TOPIC",
        )
    return address
