"""`everstate --version`: which versions are at work."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Annotated

import typer

import everstate


def _print(asked: bool) -> None:
    if asked:
        others = ", ".join(f"{name} {_installed(name.lower())}" for name in ("PySpark", "Polars"))
        typer.echo(f"everstate {everstate.__version__} (Python {platform.python_version()}, {others})")
        raise typer.Exit


def _installed(distribution: str) -> str:
    """The version of a package, without importing it."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "is not installed"


VersionOption = Annotated[
    bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print)
]
