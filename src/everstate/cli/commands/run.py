"""`everstate run`: run a service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from everstate.cli.exit_codes import exit_code
from everstate.cli.plan_text import print_plan, replaces_something
from everstate.cli.service_file import load_service, read_config
from everstate.cli.service_options import (
    Assignments,
    ConfigFile,
    LogPath,
    Quiet,
    ServiceFile,
    ServiceName,
    as_typed,
    existing_log,
)
from everstate.plan.refusals import refusal

if TYPE_CHECKING:
    from everstate.dsl.service import Service
    from everstate.plan.actions import Plan

_SETTINGS = "Operational settings"
_CHANGES = "Changing versions"


def run(  # noqa: PLR0913 - each option is a parameter
    file: ServiceFile = None,
    *,
    once: Annotated[bool, typer.Option("--once", help="Process what is there, then stop.")] = False,
    service: ServiceName = None,
    log: LogPath = None,
    assignments: Assignments = None,
    config: ConfigFile = None,
    quiet: Quiet = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan and stop.", rich_help_panel=_CHANGES)
    ] = False,
    plan: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Carry out a plan, or do nothing if it no longer fits.", rich_help_panel=_CHANGES
        ),
    ] = None,
    approve: Annotated[
        bool, typer.Option("--approve", help="Let cutovers remove what they need to.", rich_help_panel=_CHANGES)
    ] = False,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes",
            help="Ask nothing: what has to be approved waits for --approve, as where there is no terminal.",
            rich_help_panel=_CHANGES,
        ),
    ] = False,
    approval: Annotated[
        Literal["wait", "fail", "approve"] | None,
        typer.Option(help="What to do with a cutover that would remove a lot.", rich_help_panel=_CHANGES),
    ] = None,
    recalculate: Annotated[
        list[str] | None,
        typer.Option(metavar="OUTPUT", help="Rebuild an output even if nothing has changed.", rich_help_panel=_CHANGES),
    ] = None,
    accept_truncated: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC", help="Continue with what is left of a source's history.", rich_help_panel=_CHANGES
        ),
    ] = None,
    keep_topic: Annotated[
        bool,
        typer.Option(
            "--keep-topic",
            help="Keep the topics of outputs that are no longer declared.",
            rich_help_panel=_CHANGES,
        ),
    ] = False,
    effects: Annotated[
        bool,
        typer.Option(
            "--effects", help="Let side effects happen during a recalculation, too.", rich_help_panel=_CHANGES
        ),
    ] = False,
    take_over: Annotated[
        bool,
        typer.Option("--take-over", help="Replace a live process of the same version.", rich_help_panel=_CHANGES),
    ] = False,
    standby: Annotated[
        bool,
        typer.Option("--standby", help="Wait until the process of the same version ends.", rich_help_panel=_CHANGES),
    ] = False,
    state_dir: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Where state and checkpoints are kept.", rich_help_panel=_SETTINGS),
    ] = None,
    scratch_dir: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Where RocksDB keeps its working files.", rich_help_panel=_SETTINGS),
    ] = None,
    trigger: Annotated[
        float | None, typer.Option(help="Seconds between two micro-batches.", rich_help_panel=_SETTINGS)
    ] = None,
    max_records: Annotated[
        int | None, typer.Option(help="Most records in a micro-batch.", rich_help_panel=_SETTINGS)
    ] = None,
    recalculation_records: Annotated[
        int | None,
        typer.Option(help="Most records in one while a generation is built.", rich_help_panel=_SETTINGS),
    ] = None,
    shards: Annotated[
        int | None, typer.Option(help="Shards per output; by default what it has.", rich_help_panel=_SETTINGS)
    ] = None,
    cores: Annotated[int | None, typer.Option(help="Cores that Spark uses.", rich_help_panel=_SETTINGS)] = None,
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Memory for Spark's Java process.", rich_help_panel=_SETTINGS)
    ] = None,
    log_level: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="How much Spark reports.", rich_help_panel=_SETTINGS)
    ] = None,
    full_compiler: Annotated[
        bool | None,
        typer.Option("--full-compiler", help="Start slower, run a little faster.", rich_help_panel=_SETTINGS),
    ] = None,
) -> None:
    """Run a service until it is stopped with Ctrl-C or SIGTERM, or with --once until its sources are drained.

    A version that has changed is recalculated beside the active one, which goes on, and then takes its place.
    """
    described = load_service(file, service=service, config=read_config(config, assignments or []))
    given: dict[str, Any] = {
        "recalculate": recalculate or (),
        "accept_truncated": accept_truncated or (),
        "keep_topic": keep_topic,
        "approve": approve,
        "asks": not yes,
        "take_over": take_over,
        "standby": standby,
        "effects": effects,
        "plan": plan,
        "file": as_typed(file, service=service, log=log, assignments=assignments, config=config, state_dir=state_dir),
        "state_dir": state_dir,
        "scratch_dir": scratch_dir,
        "trigger": trigger,
        "max_records": max_records,
        "recalculation_records": recalculation_records,
        "shards": shards,
        "cores": cores,
        "memory": memory,
        "log_level": log_level,
        "approval": approval,
        "full_compiler": full_compiler,
    }
    if dry_run:
        _dry_run(described, existing_log(log, described), given)
        return
    from everstate.engine.commands.runner import Runner  # noqa: PLC0415 - a mistake in the file shows before Spark is imported
    from everstate.engine.jvm.class_archive import is_prepared  # noqa: PLC0415 - as below

    def announce(made: Plan) -> None:
        if not quiet and replaces_something(made):
            print_plan(made, runner.settings, doing=True, stderr=True)

    runner = Runner(described, log=log, show=False if quiet else None, announce=announce, **given)
    if not quiet and not is_prepared():
        typer.echo("To start Spark in half the time, run this once (half a minute): everstate prepare", err=True)
    runner.run(once=once)


def _dry_run(service: Service, log: str, given: dict[str, Any]) -> None:
    from everstate.engine.operation import Operation  # noqa: PLC0415 - a mistake in the file shows first
    from everstate.generations.deploy.planning import require_no_drift  # noqa: PLC0415 - as above

    operation = Operation(service, log=log, **given)
    with operation.site() as site:
        planned = operation.run(site).plan()
        if operation.wishes.plan is not None:
            require_no_drift(operation.wishes.plan, planned)
    print_plan(planned.plan, operation.settings)
    for refused in planned.plan.refusals:
        raise typer.Exit(exit_code(refusal(refused)))
