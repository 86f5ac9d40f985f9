"""`everstate graph`: draws a service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from everstate.cli.service_file import load_service
from everstate.topology.drawing import mermaid
from everstate.topology.drawing_svg import svg
from everstate.topology.errors import ConfigurationError


def graph(
    file: Annotated[Path, typer.Argument(metavar="SERVICE.py", help="The file that defines the service.")],
    *,
    service: Annotated[str | None, typer.Option(help="Which service, if the file defines several.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file; .svg draws, .mmd is Mermaid.")] = None,
    form: Annotated[str, typer.Option("--format", help="mermaid or svg; else the file's ending decides.")] = "mermaid",
) -> None:
    """Draw the topics, steps and stores of a service, as an SVG picture or as Mermaid text."""
    if out is not None and out.suffix in {".svg", ".mmd"}:
        form = {".svg": "svg", ".mmd": "mermaid"}[out.suffix]
    if form not in {"mermaid", "svg"}:
        raise ConfigurationError(f"--format {form} is not one of mermaid, svg")
    units = load_service(file, service=service).units()
    drawing = svg(units) if form == "svg" else mermaid(units)
    if out is None:
        typer.echo(drawing)
    else:
        out.write_text(drawing, encoding="utf-8")
        typer.echo(f"{out}: {form} of {len(units)} outputs", err=True)
