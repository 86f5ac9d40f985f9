"""`everstate graph`: draws a service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everstate.cli.log_option import require_log
from everstate.cli.service_loading import load_service
from everstate.cli.service_options import LogPath, ServiceFile, ServiceName
from everstate.dsl.display import drawn
from everstate.errors import ConfigurationError
from everstate.fingerprints.noted.phrases import wording
from everstate.generations.deploy.settings import choose_log
from everstate.log.opening import open_log
from everstate.topology.drawing import mermaid

if TYPE_CHECKING:
    from everstate.dsl.service import Service


def graph(
    file: ServiceFile = None,
    *,
    service: ServiceName = None,
    log: LogPath = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file; .svg draws, .mmd is Mermaid.")] = None,
    form: Annotated[str, typer.Option("--format", help="mermaid or svg; else the file's ending decides.")] = "mermaid",
) -> None:
    """Draw the topics, steps and stores of a service, as an SVG picture or as Mermaid text."""
    if out is not None and out.suffix in {".svg", ".mmd"}:
        form = {".svg": "svg", ".mmd": "mermaid"}[out.suffix]
    if form not in {"mermaid", "svg"}:
        raise ConfigurationError(
            f"--format {form} is not one of mermaid, svg", hint="Write --format svg, or leave it out."
        )
    described = load_service(file, service=service)
    units, partitions = described.units(), _partitions(described, log)
    if form == "svg":
        drawing = drawn(units, described, partitions)
    else:
        drawing = mermaid(units, wording(units, described.configuration), partitions)
    if out is None:
        typer.echo(drawing)
    else:
        _write(out, drawing)
        typer.echo(f"{out}: {form} of {len(units)} outputs", err=True)


def _partitions(service: Service, given: str | None) -> dict[str, int]:
    """The partitions of the service's topics; nobody waits for a cluster that was not asked for."""
    choice = choose_log(given, service.log)
    if given is None and ("://" in choice.address or not Path(choice.address).is_dir()):
        return {}
    log = open_log(require_log(choice))
    try:
        topics = {topic for unit in service.units() for topic in (*unit.topics, unit.output.topic)}
        return {topic: log.describe(topic).config.partitions for topic in sorted(topics) if log.has_topic(topic)}
    finally:
        log.close()


def _write(out: Path, drawing: str) -> None:
    try:
        out.write_text(drawing, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"the drawing cannot be written to {out}: {error.strerror or error}",
            hint="Name a file in a folder that can be written to: --out FILE",
        ) from error
