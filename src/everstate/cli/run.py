"""`everstate run`: run a service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from everstate.cli.service_file import load_service, read_config

_SETTINGS = "Operational settings"


def run(  # noqa: PLR0913 - each option is a parameter
    file: Annotated[Path, typer.Argument(metavar="SERVICE.py", help="The file that defines the service.")],
    *,
    once: Annotated[bool, typer.Option("--once", help="Process what is there, then stop.")] = False,
    service: Annotated[str | None, typer.Option(help="Which service, if the file defines several.")] = None,
    log: Annotated[
        str | None, typer.Option(metavar="PATH", help="The log's folder; else EVERSTATE_LOG, else ./.everstate.")
    ] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A configuration value of the service.")
    ] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="Configuration values, as TOML or JSON.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    state_dir: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Where state and checkpoints are.", rich_help_panel=_SETTINGS)
    ] = None,
    scratch_dir: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Where RocksDB works.", rich_help_panel=_SETTINGS)
    ] = None,
    trigger: Annotated[
        float | None, typer.Option(help="Seconds between two micro-batches.", rich_help_panel=_SETTINGS)
    ] = None,
    max_records: Annotated[
        int | None, typer.Option(help="The most records of a micro-batch.", rich_help_panel=_SETTINGS)
    ] = None,
    shards: Annotated[
        int | None, typer.Option(help="Shards of outputs that have no state yet.", rich_help_panel=_SETTINGS)
    ] = None,
    cores: Annotated[int | None, typer.Option(help="Cores that Spark uses.", rich_help_panel=_SETTINGS)] = None,
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Memory of Spark's Java process.", rich_help_panel=_SETTINGS)
    ] = None,
    log_level: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="What Spark reports.", rich_help_panel=_SETTINGS)
    ] = None,
    quick_start: Annotated[
        bool | None,
        typer.Option("--quick-start", help="Start sooner, run slower: for short runs.", rich_help_panel=_SETTINGS),
    ] = None,
) -> None:
    """Run a service until it is stopped with Ctrl-C or SIGTERM, or with --once until its sources are drained."""
    described = load_service(file, service=service, config=read_config(config, assignments or []))
    from everstate.engine.archive import is_prepared  # noqa: PLC0415 - as below
    from everstate.engine.runner import Runner  # noqa: PLC0415 - a mistake in the file shows before Spark is imported

    runner = Runner(
        described,
        log=log,
        show=False if quiet else None,
        state_dir=state_dir,
        scratch_dir=scratch_dir,
        trigger=trigger,
        max_records=max_records,
        shards=shards,
        cores=cores,
        memory=memory,
        log_level=log_level,
        quick_start=quick_start,
    )
    if not quiet and not is_prepared():
        typer.echo("Spark will start in half the time after: everstate prepare (once, half a minute)", err=True)
    runner.run(once=once)
