"""`everstate prepare`: let Spark start in half the time."""

from __future__ import annotations

import time

import typer


def prepare() -> None:
    """Prepare a quick start of Spark, once per Python environment; does nothing if it is already there.

    Runs a small query and stores what Java has loaded for it in the user's cache, about 150 MB.
    """
    from everstate.engine.jvm.class_archive import archive_path, build_archive, is_whole  # noqa: PLC0415 - other commands do without

    if is_whole(archive_path()):
        return
    typer.echo("Preparing a quick start of Spark (once, about half a minute) ...")
    began = time.monotonic()
    if archive := build_archive():
        size = archive.stat().st_size / 2**20
        typer.echo(f"Done in {time.monotonic() - began:.0f} s: {archive} ({size:.0f} MB)")
