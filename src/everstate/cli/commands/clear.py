"""`everstate clear`: delete a service's state."""

from __future__ import annotations

import typer

from everstate.cli.option_groups import grouped
from everstate.cli.service_options import ServiceFile, ServiceOptions, existing_log


@grouped
def clear(file: ServiceFile = None, *, chosen: ServiceOptions) -> None:
    """Delete the state of a service, never a topic; refused while it runs. The next run rebuilds the state."""
    described = chosen.load(file)
    from everstate.engine.commands.clearing import clear_state  # noqa: PLC0415 - a mistake in the file shows first

    cleared = clear_state(described, log=existing_log(chosen.log, described), state_dir=chosen.state_dir)
    typer.echo(f"Cleared the state of {', '.join(cleared)}." if cleared else "There was no state.")
