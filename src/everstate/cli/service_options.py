"""The options that every command on a service has."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everstate.cli.log_option import require_log
from everstate.errors.secrets import MASK, is_secret, masked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.dsl.service import Service

ServiceFile = Annotated[Path, typer.Argument(metavar="SERVICE.py", help="The file that defines the service.")]
ServiceName = Annotated[
    str | None, typer.Option("--service", metavar="NAME", help="Which service, if the file defines several.")
]
LogPath = Annotated[
    str | None, typer.Option("--log", metavar="PATH", help="The log's folder; else EVERSTATE_LOG, else ./.everstate.")
]
Assignments = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A configuration value of the service.")
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Configuration values, as TOML or JSON.")
]
StateDir = Annotated[
    Path | None, typer.Option("--state-dir", metavar="PATH", help="Where state and checkpoints are kept.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def existing_log(log: str | None, service: Service) -> str:
    """The address of a log that must be there: a command that only looks leaves no empty log behind.

    Raises:
        ConfigurationError: If there is no such folder.
    """
    from everstate.generations.deploy.settings import log_address  # noqa: PLC0415 - a mistake in the file shows first

    address = log_address(log, service.log)
    require_log(address)
    return address


def as_typed(
    file: Path,
    *,
    service: str | None = None,
    log: str | None = None,
    assignments: Sequence[str] | None = None,
    config: Path | None = None,
    state_dir: Path | None = None,
) -> str:
    """The file with the options that say which version is meant, for commands in hints; secrets are not repeated.

    Example:
        >>> as_typed(Path("shop.py"), assignments=["least=5", "api_token=x"])
        "shop.py --set least=5 --set 'api_token=***'"
    """
    words = [str(file)]
    for option, value in (("--service", service), ("--log", log), ("--state-dir", state_dir), ("--config", config)):
        words += [] if value is None else [option, masked(str(value))]
    for assignment in assignments or []:
        name, sign, _ = assignment.partition("=")
        words += ["--set", f"{name}{sign}{MASK}" if is_secret(name) else masked(assignment)]
    return shlex.join(words)
