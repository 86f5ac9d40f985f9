"""`everstate init`: write a new project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from everstate.project.starting import start_project


def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The project's name, and that of its folder.")],
) -> None:
    """Write a new project: a package with a service, its tests, settings, a Makefile and a README."""
    for file in sorted(start_project(name, Path.cwd())):
        typer.echo(f"  {name}/{file}")
    typer.echo(f"Next: cd {name}, then make demo")
