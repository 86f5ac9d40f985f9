"""`everstate clear`: delete a service's state."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from everstate.cli.service_file import load_service, read_config


def clear(
    file: Annotated[Path, typer.Argument(metavar="SERVICE.py", help="The file that defines the service.")],
    *,
    service: Annotated[str | None, typer.Option(help="Which service, if the file defines several.")] = None,
    log: Annotated[
        str | None, typer.Option(metavar="PATH", help="The log's folder; else EVERSTATE_LOG, else ./.everstate.")
    ] = None,
    state_dir: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Where state and checkpoints are kept.")
    ] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A configuration value of the service.")
    ] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="Configuration values, as TOML or JSON.")] = None,
) -> None:
    """Delete the state of a service, never a topic; refused while it runs. The next run rebuilds the state."""
    described = load_service(file, service=service, config=read_config(config, assignments or []))
    from everstate.engine.commands.clearing import clear_state  # noqa: PLC0415 - a mistake in the file shows first

    cleared = clear_state(described, log=log, state_dir=state_dir)
    typer.echo(f"Cleared the state of {', '.join(cleared)}." if cleared else "There was no state.")
