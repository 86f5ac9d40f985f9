"""`everstate status`: what runs where, and how far it is."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from everstate.cli.columns import aligned
from everstate.cli.log_option import LogOption, open_existing
from everstate.cli.service_loading import load_service
from everstate.cli.service_options import AsJson
from everstate.errors import ConfigurationError
from everstate.errors.calls import suggestion
from everstate.generations.generation import Status
from everstate.generations.status import GONE, SILENT, STOPPED, deployed
from everstate.generations.status import status as status_of
from everstate.plan.words import counted, lasting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.generations.status import BuildStatus, OutputStatus, ProcessStatus, ServiceStatus
    from everstate.log import Log

#: Of the document that `--json` prints.
VERSION: Final = 1
_HEADER: Final = ("OUTPUT", "GENERATION", "LAG", "LAST BATCH", "RATE", "DEAD")
_REFRESH_S: Final = 1.0


def status(
    service: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The service's name, or its file; else all of the log.")
    ] = None,
    *,
    watch: Annotated[bool, typer.Option("--watch", help="Look again every second, until Ctrl-C.")] = False,
    as_json: AsJson = False,
    log: LogOption = None,
) -> None:
    """Show what runs where, how far it is, and what is being built."""
    name = None if service is None else _name(service)
    source = open_existing(log)
    if not watch:
        typer.echo(_shown(source, name, as_json=as_json))
    elif as_json:
        while True:
            typer.echo(_shown(source, name, as_json=True))
            time.sleep(_REFRESH_S)
    else:
        _watch(source, name)


def _watch(source: Log, name: str | None) -> None:
    from rich.live import Live  # noqa: PLC0415 - only what is asked for is loaded
    from rich.text import Text  # noqa: PLC0415

    with Live(auto_refresh=False) as live:
        while True:
            live.update(Text(_shown(source, name, as_json=False)), refresh=True)
            time.sleep(_REFRESH_S)


def _name(given: str) -> str:
    """The service that is meant: by its name, or by the file or module that defines it."""
    return load_service(given).name if given.endswith(".py") or ":" in given else given


def _shown(source: Log, name: str | None, *, as_json: bool) -> str:
    known = deployed(source)
    if name is not None and name not in known:
        raise ConfigurationError(
            f"service {name!r} has not been deployed on this log",
            hint=f"{suggestion(name, known)}The deployed services are: {', '.join(known) or 'none'}.",
        )
    found = [status_of(source, each) for each in (known if name is None else [name])]
    if as_json:
        return json.dumps({"version": VERSION, "services": [_document(each) for each in found]})
    return "\n".join(line for each in found for line in text(each)) or "No service has been deployed on this log."


def _document(service: ServiceStatus) -> dict[str, Any]:
    """As `--json` prints it: what can be calculated from the rest is there, too."""
    document = asdict(service)
    for output, known in zip(document["outputs"], service.outputs, strict=True):
        if known.build is not None:
            output["build"] |= {"share": known.build.share, "seconds_left": known.build.seconds_left}
    return document


def text(service: ServiceStatus) -> Iterator[str]:
    """A service as lines for people."""
    now = service.at_ms
    yield f"{service.service}: {_process(service.process, now)}"
    if service.outputs:
        rows = [_row(output, now) for output in service.outputs]
        yield from (f"  {line}" for line in aligned(_HEADER, rows))
    for output in service.outputs:
        if output.build is not None:
            yield f"  {output.output}: {_build(output.build)}"
        if output.waits_for is not None:
            yield f"  {output.output}: time waits for {output.waits_for}"
    if service.builder is not None:
        yield f"  built by process {service.builder.pid} on {service.builder.host}"


def _process(process: ProcessStatus | None, now: int) -> str:
    if process is None:
        return "not running"
    who = f"process {process.pid} on {process.host}"
    heard = _ago(process.heartbeat_ms, now)
    if process.state == STOPPED:
        return f"stopped {heard} ({who})"
    if process.state == GONE:
        return f"not running: {who} ended without stopping; last heard of {heard}"
    since = "" if process.started_ms is None else f" for {lasting((now - process.started_ms) / 1000)}"
    silent = f", but no sign of life since {heard}" if process.state == SILENT else ""
    return f"running{since} ({who}){silent}"


def _row(output: OutputStatus, now: int) -> list[object]:
    waiting = "" if output.lag_seconds is None else f" ({lasting(output.lag_seconds)})"
    batch = "none yet"
    if output.batch_ms is not None:
        batch = f"{_ago(output.batch_ms, now)} ({counted(output.batch_records, 'record')})"
    return [
        output.output,
        "none" if output.generation is None else str(output.generation),
        f"{output.lag_records:,}{waiting}",
        batch,
        "-" if output.rate is None else _speed(output.rate),
        output.dead_letters,
    ]


def _build(build: BuildStatus) -> str:
    total = build.done + build.left
    if build.status == Status.READY:
        return f"generation {build.generation} is ready; {counted(build.left, 'record')} to go"
    told = f"generation {build.generation} is {build.status}: {build.share:.0%} of {total:,}"
    if build.rate is None:
        return f"{told}; nobody is building it now"
    left = "" if build.seconds_left is None else f", {lasting(build.seconds_left)} left"
    return f"{told}, {_speed(build.rate)}{left}"


def _speed(rate: float) -> str:
    return f"{rate:,.0f}/s" if rate >= 10 or not rate else f"{rate:.1f}/s"


def _ago(at_ms: int, now: int) -> str:
    """How long ago, in the largest unit."""
    return f"{' '.join(lasting(max(0, now - at_ms) / 1000).split()[:2])} ago"
