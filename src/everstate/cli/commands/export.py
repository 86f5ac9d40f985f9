"""`everstate export`: a topic into a file."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everstate.cli.columns import size
from everstate.cli.log_option import LogOption, open_existing
from everstate.errors.texts import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def export(  # noqa: PLR0913 - each option is a parameter
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Which topic.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to: FILE.parquet, .csv, .jsonl or .arrow.")],
    *,
    latest: Annotated[
        bool, typer.Option("--latest", help="Only the last record of each key, without deleted ones: the table.")
    ] = False,
    start: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="From this time on: 2024-05-01T10:00 (UTC), or 2h ago.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Up to, but not including, this time.")
    ] = None,
    service: Annotated[
        Path | None,
        typer.Option(
            "--service", metavar="FILE", help="A service that declares the columns; otherwise they are inferred."
        ),
    ] = None,
    metadata: Annotated[
        bool, typer.Option("--metadata", help="With $timestamp, $partition, $offset and $deleted.")
    ] = False,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out records that cannot be decoded, and say how many.")
    ] = False,
    log: LogOption = None,
) -> None:
    """Write a topic to a file: Parquet, CSV, JSON lines or Arrow.

    Partition by partition, in the order of offsets. The file appears when it is whole.
    """
    from everstate.cli.service_loading import load_service  # noqa: PLC0415 - only what is asked for is loaded
    from everstate.reading import export as exporting  # noqa: PLC0415
    from everstate.reading.forms import of_service  # noqa: PLC0415

    form = None if service is None else of_service(load_service(service), topic)
    request = exporting.Request(
        topic=topic, file=file, latest=latest, start=start, end=end, metadata=metadata, skip_bad=skip_bad
    )
    with shown_progress() as progress:
        done = exporting.export(open_existing(log), request, form, progress)
    if done.bad.count:
        typer.echo(printable(f"{done.bad.told()} left out. {done.bad.named()}"), err=True)
    typer.echo(f"{file}: {done.rows:,} {'row' if done.rows == 1 else 'rows'}, {size(done.size_bytes)}")


@contextlib.contextmanager
def shown_progress() -> Iterator[Callable[[str, int, int], None]]:
    """Share, rate and time left, on a terminal."""
    from rich.console import Console  # noqa: PLC0415 - see above
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    console = Console(stderr=True)
    rate = TextColumn("{task.fields[rate]}")
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), rate, TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        tasks = {}

        def update(doing: str, done: int, total: int) -> None:
            if doing not in tasks:
                tasks[doing] = shown.add_task(doing, total=total, rate="")
            speed = shown.tasks[tasks[doing]].speed
            shown.update(tasks[doing], completed=done, rate=f"{speed:,.0f} records/s" if speed else "")

        yield update
