"""`everstate rollback`: back to a generation that is still kept."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from everstate.cli.option_groups import grouped
from everstate.cli.plan_text import print_plan
from everstate.cli.run_options import Approve, DryRun
from everstate.cli.service_loading import service_name
from everstate.cli.service_options import Quiet, ServiceFile, ServiceOptions, existing_log, service_and_rest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.engine.commands.rollback import Restored
    from everstate.generations.deploy.options import RunOptions


@grouped
def rollback(
    file: ServiceFile = None,
    outputs: Annotated[
        list[str] | None,
        typer.Argument(metavar="OUTPUT", help="Which outputs; may be left out if only one can go back."),
    ] = None,
    *,
    to: Annotated[
        int | None, typer.Option(metavar="N", help="Which generation; by default the one that was active last.")
    ] = None,
    dry_run: DryRun = False,
    approve: Approve = False,
    chosen: ServiceOptions,
    quiet: Quiet = False,
) -> None:
    """Go back to a generation that is still kept: without a replay, with the code archived with it.

    Ends when that generation is the active one. A process that runs the service is replaced and stops.
    """
    file, names = service_and_rest(file, outputs or [])
    described = chosen.load(file)
    from everstate.engine.commands.rollback import plan_rollback, roll_back  # noqa: PLC0415 - a mistake in the file shows first
    from everstate.generations.deploy.settings import Settings  # noqa: PLC0415 - as above

    typed = chosen.typed(file)
    given: RunOptions = {
        "log": existing_log(chosen.log, described),
        "state_dir": chosen.state_dir,
        "approve": approve,
        "file": typed,
        "approval_command": _command(typed, names, to),
    }
    plan = plan_rollback(described, names, to=to, **given)
    if dry_run:
        print_plan(plan, Settings.resolve(), command=_command(typed, names, to, approve=False))
        return
    if not quiet:
        print_plan(plan, Settings.resolve(), doing=True, stderr=True)
    given["show"] = False if quiet else None
    done = roll_back(described, names, to=to, **given)
    for line in _told(done, service_name(file), typed):
        typer.echo(line)


def _command(typed: str, outputs: Sequence[str], to: int | None, *, approve: bool = True) -> str:
    number = ["--to", str(to)] if to is not None else []
    approval = ["--approve"] if approve else []
    return f"everstate rollback {typed} {shlex.join([*outputs, *number, *approval])}".rstrip()


def _told(done: Sequence[Restored], file: str, typed: str) -> list[str]:
    lines = []
    for one in done:
        counts = ", ".join(f"{one.counts.get(name, 0):,} {name}" for name in ("new", "changed", "stale", "unchanged"))
        lines.append(
            f"{one.output}: generation {one.generation} is active again, in place of {one.replaced}. {counts}."
        )
    lines.append("The service is not running now.")
    others = [one for one in done if not one.in_file]
    if others:
        names = ", ".join(one.output for one in others)
        lines.append(
            f"{file} holds a different version of {names}: everstate run {typed} would deploy that again. Put the "
            "earlier version back into the file first."
        )
    else:
        lines.append(f"{file} holds this version: everstate run {typed} continues with it.")
    return lines
