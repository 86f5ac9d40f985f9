"""`everstate clear`: delete a service's state."""

from __future__ import annotations

import typer

from everstate.cli.service_file import load_service, read_config
from everstate.cli.service_options import (
    Assignments,
    ConfigFile,
    LogPath,
    ServiceFile,
    ServiceName,
    StateDir,
    existing_log,
)


def clear(
    file: ServiceFile = None,
    *,
    service: ServiceName = None,
    log: LogPath = None,
    state_dir: StateDir = None,
    assignments: Assignments = None,
    config: ConfigFile = None,
) -> None:
    """Delete the state of a service, never a topic; refused while it runs. The next run rebuilds the state."""
    described = load_service(file, service=service, config=read_config(config, assignments or []))
    from everstate.engine.commands.clearing import clear_state  # noqa: PLC0415 - a mistake in the file shows first

    cleared = clear_state(described, log=existing_log(log, described), state_dir=state_dir)
    typer.echo(f"Cleared the state of {', '.join(cleared)}." if cleared else "There was no state.")
