"""`everstate describe`: what a service consists of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from everstate.cli.service_file import load_service


def describe(
    file: Annotated[Path, typer.Argument(metavar="SERVICE.py", help="The file that defines the service.")],
    *,
    service: Annotated[str | None, typer.Option(help="Which service, if the file defines several.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the stages, steps, topics and stores of a service, and which steps depend on the order of arrival."""
    description = load_service(file, service=service).describe()
    typer.echo(json.dumps(description.to_json(), indent=2) if as_json else str(description))
