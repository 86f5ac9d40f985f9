"""The options that commands on a service have in common."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everstate.cli.completion import service_names
from everstate.cli.log_option import require_log
from everstate.cli.service_loading import is_left_out, load_service, read_config, service_name
from everstate.dsl.config import ASKED
from everstate.errors import ConfigurationError
from everstate.errors.calls import suggestion
from everstate.errors.secrets import MASK, is_secret, masked
from everstate.generations.deploy.settings import choose_log

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.dsl.service import Service

ServiceFile = Annotated[
    str | None,
    typer.Argument(
        metavar="SERVICE",
        help="The service: package.module:app, its file, or its name in everstate.toml; may be left out if that names "
        "only one.",
        show_default=False,
        autocompletion=service_names,
    ),
]
ServiceName = Annotated[
    str | None, typer.Option("--service", metavar="NAME", help="Which service, if the file defines several.")
]
LogPath = Annotated[
    str | None,
    typer.Option(
        "--log",
        metavar="LOG",
        help="A folder, or kafka://host:9092; by default EVERSTATE_LOG, the log of the project, or ./.everstate.",
    ),
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


@dataclass(frozen=True, kw_only=True)
class ServiceOptions:
    """Which service is meant, with which configuration, and where it is."""

    service: ServiceName = None
    log: LogPath = None
    assignments: Assignments = None
    config: ConfigFile = None
    state_dir: StateDir = None

    def load(self, file: str | None) -> Service:
        """The service.

        Raises:
            ConfigurationError: If there is no such service, its configuration cannot be read, or `--set` names a
                setting that nobody asks for.
        """
        found = load_service(file, service=self.service, config=read_config(self.config, self.assignments or []))
        for name in (assignment.partition("=")[0] for assignment in self.assignments or []):
            # An earlier version that is still kept may need a secret which this one does without.
            if name not in ASKED and not is_secret(name):
                asked = f"It asks for: {', '.join(sorted(ASKED))}." if ASKED else "It asks for none."
                raise ConfigurationError(
                    f"service {found.name!r} does not ask for the setting {name!r}",
                    hint=f"{suggestion(name, tuple(ASKED))}{asked}",
                )
        return found

    def typed(self, file: str | None) -> str:
        """The service with these options, for commands in hints; secrets are not repeated.

        Example:
            >>> ServiceOptions(assignments=["least=5", "api_token=x"]).typed("shop.py")
            "shop.py --set least=5 --set 'api_token=***'"
        """
        words = [service_name(file)]
        named = {"--service": self.service, "--log": self.log, "--state-dir": self.state_dir, "--config": self.config}
        for option, value in named.items():
            words += [] if value is None else [option, masked(str(value))]
        for assignment in self.assignments or []:
            name, sign, _ = assignment.partition("=")
            words += ["--set", f"{name}{sign}{MASK}" if is_secret(name) else masked(assignment)]
        return shlex.join(words)


def existing_log(log: str | None, service: Service) -> str:
    """The address of a log that must be there: a command that only looks leaves no empty log behind.

    Raises:
        ConfigurationError: If there is no such folder.
    """
    return require_log(choose_log(log, service.log))


def service_and_rest(first: str | None, rest: Sequence[str]) -> tuple[str | None, list[str]]:
    """Tell a service from what follows it, where a project with one service lets it be left out.

    Args:
        first: The first word, which is the service, or belongs to the rest.
        rest: The words after it.
    """
    if first is None or not is_left_out(first):
        return first, list(rest)
    return None, [first, *rest]
