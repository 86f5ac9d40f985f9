"""`everstate plan`: what a run would do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from everstate.cli.exit_codes import CHANGES, exit_code
from everstate.cli.option_groups import asked, grouped
from everstate.cli.plan_text import limits, print_plan
from everstate.cli.run_options import PlanOptions
from everstate.cli.service_options import AsJson, Quiet, ServiceFile, ServiceOptions, existing_log
from everstate.errors import ConfigurationError
from everstate.plan.document import to_json
from everstate.plan.shown.markdown import markdown

if TYPE_CHECKING:
    from everstate.generations.deploy.options import RunOptions
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
Key = Annotated[
    str | None,
    typer.Option(
        metavar="KEY",
        help="Explain one key: its value under both versions, and the records it is made of; includes --preview.",
    ),
]
Form = Annotated[
    Literal["text", "markdown", "json"],
    typer.Option(help="How the plan is printed; markdown is for the comment of a pull request."),
]


@grouped
def plan(  # noqa: PLR0913 - each option is a parameter
    file: ServiceFile = None,
    *,
    preview: Previewed = False,
    every: Every = False,
    key: Key = None,
    as_json: AsJson = False,
    format: Form = "text",  # noqa: A002 - the word users know
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the plan to a file, for: everstate run --plan FILE")
    ] = None,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit with code 10 if the plan has changes.")
    ] = False,
    chosen: ServiceOptions,
    quiet: Quiet = False,
    planning: PlanOptions,
) -> None:
    """Print what a run of the service would change, and why. Changes nothing; a preview publishes nothing."""
    described = chosen.load(file)
    from everstate.engine.commands.preview import plan_service, preview_service  # noqa: PLC0415 - a mistake in the file shows first
    from everstate.generations.deploy.settings import Settings  # noqa: PLC0415 - as above

    given: RunOptions = {
        **asked(planning),
        "log": existing_log(chosen.log, described),
        "state_dir": chosen.state_dir,
        "show": False if quiet else None,
        "file": chosen.typed(file),
    }
    if preview or key is not None:
        made = preview_service(described, every=every, key=key, **given)
    else:
        made = plan_service(described, **given)
    report(made, Settings.resolve(), form="json" if as_json else format, out=out)
    if key is not None and not made.previews:
        typer.echo(
            f"No output that has results so far changes, so there is nothing to explain for key {key}.", err=True
        )
    for refused in made.refusals:
        raise typer.Exit(exit_code(refused.error()))
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
