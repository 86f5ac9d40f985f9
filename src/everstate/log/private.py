"""Folders and files that only their owner may use, whatever the umask is: they hold records and code of the user's."""

from __future__ import annotations

import contextlib
import os
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

FOLDER: Final = 0o700
FILE: Final = 0o600


def make_private(folder: Path) -> None:
    """Create a folder, and those above it that are missing, for the owner alone; one that is there stays as it is."""
    missing = [folder]
    while not missing[-1].parent.is_dir() and missing[-1].parent != missing[-1]:
        missing.append(missing[-1].parent)
    for path in reversed(missing):
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=FOLDER)
            path.chmod(FOLDER)
    if not folder.is_dir():
        raise NotADirectoryError(20, "Not a directory", str(folder))


def close_to_others(folder: Path) -> None:
    """Take a folder that is there away from everyone but its owner; somebody else's stays as it is."""
    with contextlib.suppress(PermissionError):
        folder.chmod(FOLDER)


def create_private(path: Path) -> IO[bytes]:
    """A file to write, empty, that only the owner may read."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE)
    os.fchmod(handle, FILE)
    return os.fdopen(handle, "wb")
