"""`everstate run`: run a service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from everstate.cli.exit_codes import exit_code
from everstate.cli.option_groups import asked, grouped
from everstate.cli.plan_text import print_plan, replaces_something
from everstate.cli.run_options import DeploymentOptions, DryRun, PlanOptions, SettingOptions, Unasked
from everstate.cli.service_options import Quiet, ServiceFile, ServiceOptions, existing_log

if TYPE_CHECKING:
    from everstate.dsl.service import Service
    from everstate.generations.deploy.options import RunOptions
    from everstate.plan.actions import Plan


@grouped
def run(  # noqa: PLR0913 - each option is a parameter, or a group of them
    file: ServiceFile = None,
    *,
    once: Annotated[bool, typer.Option("--once", help="Process what is there, then stop.")] = False,
    chosen: ServiceOptions,
    quiet: Quiet = False,
    dry_run: DryRun = False,
    yes: Unasked = False,
    deployment: DeploymentOptions,
    planning: PlanOptions,
    settings: SettingOptions,
) -> None:
    """Run a service until it is stopped with Ctrl-C or SIGTERM, or with --once until its sources are drained.

    A version that has changed is recalculated alongside the active one, which goes on, and then takes its place.
    """
    described = chosen.load(file)
    given: RunOptions = {
        **asked(deployment, planning, settings),
        "state_dir": chosen.state_dir,
        "asks": not yes,
        "file": chosen.typed(file),
    }
    if dry_run:
        _dry_run(described, existing_log(chosen.log, described), given)
        return
    from everstate.engine.commands.runner import Runner  # noqa: PLC0415 - a mistake in the file shows before Spark is imported
    from everstate.engine.jvm.class_archive import is_prepared  # noqa: PLC0415 - as below

    def announce(made: Plan) -> None:
        if not quiet and replaces_something(made):
            print_plan(made, runner.settings, doing=True, stderr=True)

    given["log"], given["show"] = chosen.log, False if quiet else None
    runner = Runner(described, announce=announce, **given)
    if not quiet and not is_prepared():
        typer.echo("To start Spark in half the time, run this once (half a minute): everstate prepare", err=True)
    runner.run(once=once)


def _dry_run(service: Service, log: str, given: RunOptions) -> None:
    from everstate.engine.spark_run import SparkRun  # noqa: PLC0415 - a mistake in the file shows first
    from everstate.generations.deploy.planning import require_no_drift  # noqa: PLC0415 - as above

    given["log"] = log
    with SparkRun(service, **given) as run:
        planned = run.plan()
        if run.wishes.plan is not None:
            require_no_drift(run.wishes.plan, planned)
    print_plan(planned.plan, run.settings)
    for refused in planned.plan.refusals:
        raise typer.Exit(exit_code(refused.error()))
