"""`everstate copy`: topics from one log to another."""

from __future__ import annotations

from typing import Annotated

import typer

from everstate.cli.commands.export import shown_progress
from everstate.cli.log_option import open_existing
from everstate.errors import ConfigurationError


def copy(
    topics: Annotated[list[str] | None, typer.Argument(metavar="TOPIC...", help="Which topics.")] = None,
    *,
    source: Annotated[
        str | None, typer.Option("--from", metavar="LOG", help="Where they are; by default the log of other commands.")
    ] = None,
    target: Annotated[str, typer.Option("--to", metavar="LOG", help="Where they go: a folder, or kafka://host:9092.")],
    every: Annotated[bool, typer.Option("--all", help="All topics.")] = False,
    append: Annotated[bool, typer.Option("--append", help="Add to topics that have records.")] = False,
) -> None:
    """Copy topics from one log to another, with keys, times, headers and tombstones.

    What is there now is copied, of each partition in order. State is not: a service that runs on the target
    recalculates its outputs from the sources, and publishes only what differs.
    """
    from everstate.log import open_log  # noqa: PLC0415 - only what is asked for is loaded
    from everstate.reading.copying import copy_topic  # noqa: PLC0415

    here, there = open_existing(source), open_log(target)
    if here.url == there.url:
        raise ConfigurationError("the log to copy from is the one to copy to", hint="Name two logs: --from and --to")
    chosen = here.topics() if every else topics or []
    if not chosen:
        raise ConfigurationError(
            "no topic was named", hint=f"Name some, or use --all. The topics are: {', '.join(here.topics()) or 'none'}"
        )
    with shown_progress() as progress:
        for topic in chosen:
            done = copy_topic(here, there, topic, append=append, progress=progress)
            moved = ", in different partitions" if done.moved else ""
            words = "record" if done.records == 1 else "records"
            typer.echo(f"{topic}: {done.records:,} {words}{moved}{', created' if done.created else ''}")
    here.close()
    there.close()
