"""Files and folders that survive a power failure: their bytes, and their names in the folders that hold them."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from everstate.log.private import create_private, make_private

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def sync_folder(folder: Path | str) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Create a folder that is its owner's alone, with those above it that are missing, and make their names durable."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    make_private(folder)
    sync_folder(folder.parent)


@contextmanager
def replacing(path: Path, *, partial: str | None = None) -> Iterator[IO[bytes]]:
    """A stream to a file that has its name, durably, when the block ends; until then there is what was there before.

    Args:
        path: The file; its folder is there.
        partial: What it is called until then.
    """
    unfinished = path.with_name(partial or f".{path.name}.partial")
    with create_private(unfinished) as stream:
        yield stream
        stream.flush()
        os.fsync(stream.fileno())
    unfinished.replace(path)
    sync_folder(path.parent)
