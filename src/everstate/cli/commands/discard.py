"""`everstate discard`: give up a generation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from everstate.cli.option_groups import grouped
from everstate.cli.service_options import ServiceFile, ServiceOptions, existing_log, service_and_rest

if TYPE_CHECKING:
    from everstate.generations.deploy.options import RunOptions


@grouped
def discard(
    file: ServiceFile = None,
    which: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="OUTPUT [N]",
            help="The output's topic, and which generation; by default the one that was prepared.",
            show_default=False,
        ),
    ] = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say which one it would be.")] = False,
    chosen: ServiceOptions,
) -> None:
    """Discard a generation that was prepared or replaced; never the active one."""
    file, rest = service_and_rest(file, which or [])
    output, number = _which(rest)
    described = chosen.load(file)
    from everstate.engine.commands import discarding  # noqa: PLC0415 - a mistake in the file shows first

    given: RunOptions = {
        "log": existing_log(chosen.log, described),
        "state_dir": chosen.state_dir,
        "file": chosen.typed(file),
    }
    gone = discarding.discard(described, output, number, dry_run=dry_run, **given)
    verb = "would be" if dry_run else "is"
    typer.echo(f"Generation {gone.number} of {output}, which was {gone.status}, {verb} discarded.")


def _which(words: list[str]) -> tuple[str, int | None]:
    match words:
        case [output]:
            return output, None
        case [output, number] if number.isdecimal():
            return output, int(number)
    raise typer.BadParameter("name one output, and optionally the number of a generation", param_hint="OUTPUT [N]")
