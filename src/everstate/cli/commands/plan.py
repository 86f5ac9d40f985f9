"""`everstate plan`: what a run would do."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from everstate.cli.exit_codes import CHANGES, exit_code
from everstate.cli.plan_text import limits, print_plan
from everstate.cli.service_file import load_service, read_config
from everstate.cli.service_options import (
    AsJson,
    Assignments,
    ConfigFile,
    LogPath,
    Quiet,
    ServiceFile,
    ServiceName,
    StateDir,
    as_typed,
    existing_log,
)
from everstate.errors import ConfigurationError
from everstate.plan.document import to_json
from everstate.plan.refusals import refusal
from everstate.plan.shown.markdown import markdown

if TYPE_CHECKING:
    from everstate.generations.deploy.settings import Settings
    from everstate.plan.actions import Plan

Previewed = Annotated[
    bool,
    typer.Option(
        "--preview", help="Recalculate in the shadow: exact counts and samples, and a run that cuts over at once."
    ),
]
Every = Annotated[
    bool, typer.Option("--all", help="With --preview, every difference instead of samples; best with --json.")
]
Form = Annotated[
    Literal["text", "markdown", "json"],
    typer.Option(help="How the plan is printed; markdown is for the comment of a pull request."),
]


def plan(  # noqa: PLR0913 - each option is a parameter
    file: ServiceFile = None,
    *,
    preview: Previewed = False,
    every: Every = False,
    as_json: AsJson = False,
    format: Form = "text",  # noqa: A002 - the word users know
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the plan to a file, for: everstate run --plan FILE")
    ] = None,
    recalculate: Annotated[
        list[str] | None, typer.Option(metavar="OUTPUT", help="Rebuild an output even if nothing has changed.")
    ] = None,
    accept_truncated: Annotated[
        list[str] | None, typer.Option(metavar="TOPIC", help="Continue with what is left of a source's history.")
    ] = None,
    keep_topic: Annotated[
        bool, typer.Option("--keep-topic", help="Keep the topics of outputs that are no longer declared.")
    ] = False,
    shards: Annotated[int | None, typer.Option(help="Shards of the outputs.")] = None,
    effects: Annotated[
        bool, typer.Option("--effects", help="With --preview, side effects happen in the recalculation.")
    ] = False,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="End with 10 if the plan has changes.")
    ] = False,
    service: ServiceName = None,
    log: LogPath = None,
    assignments: Assignments = None,
    config: ConfigFile = None,
    state_dir: StateDir = None,
    quiet: Quiet = False,
) -> None:
    """Print what a run of the service would change, and why. Changes nothing; a preview publishes nothing."""
    described = load_service(file, service=service, config=read_config(config, assignments or []))
    from everstate.engine.commands.preview import plan_service, preview_service  # noqa: PLC0415 - a mistake in the file shows first
    from everstate.generations.deploy.settings import Settings  # noqa: PLC0415 - as above

    make = partial(preview_service, every=every) if preview else plan_service
    made = make(
        described,
        log=existing_log(log, described),
        show=False if quiet else None,
        state_dir=state_dir,
        shards=shards,
        recalculate=recalculate or (),
        accept_truncated=accept_truncated or (),
        keep_topic=keep_topic,
        effects=effects,
        file=as_typed(file, service=service, log=log, assignments=assignments, config=config, state_dir=state_dir),
    )
    report(made, Settings.resolve(), form="json" if as_json else format, out=out)
    for refused in made.refusals:
        raise typer.Exit(exit_code(refusal(refused)))
    if detailed_exitcode and made.changes:
        raise typer.Exit(CHANGES)


def report(plan: Plan, settings: Settings, *, form: str = "text", out: Path | None = None) -> None:
    """Print a plan, and write it to a file."""
    document = to_json(plan, limits=limits(settings))
    if out is not None:
        _write(out, f"{document}\n")
    if form == "json":
        typer.echo(document)
    elif form == "markdown":
        typer.echo(markdown(plan, limits=limits(settings), root=str(Path.cwd())), nl=False)
    else:
        print_plan(plan, settings)
    if out is not None:
        command = f"everstate run {plan.options.file} --plan {out}"
        typer.echo(f"The plan is in {out}. To carry it out, unless something has changed by then: {command}", err=True)


def _write(out: Path, document: str) -> None:
    try:
        out.write_text(document, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"the plan cannot be written to {out}: {error.strerror or error}",
            hint="Name a file in a folder that can be written to: --out FILE",
        ) from error
