"""`everstate graph`: draws a service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from everstate.cli.service_file import load_service
from everstate.cli.service_options import ServiceFile, ServiceName
from everstate.errors import ConfigurationError
from everstate.topology.drawing import mermaid
from everstate.topology.drawing_svg import svg


def graph(
    file: ServiceFile = None,
    *,
    service: ServiceName = None,
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
    units = load_service(file, service=service).units()
    drawing = svg(units) if form == "svg" else mermaid(units)
    if out is None:
        typer.echo(drawing)
    else:
        _write(out, drawing)
        typer.echo(f"{out}: {form} of {len(units)} outputs", err=True)


def _write(out: Path, drawing: str) -> None:
    try:
        out.write_text(drawing, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"the drawing cannot be written to {out}: {error.strerror or error}",
            hint="Name a file in a folder that can be written to: --out FILE",
        ) from error
