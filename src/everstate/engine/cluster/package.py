"""Everstate itself, for the machines of a cluster: a copy beside the state, which all of them see.

Spark could send it as a zip file. But what lies in one is compiled again by every process that imports it, and the
script that starts Python there needs a path that is the same everywhere. State is on a disk that all share anyway.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import everstate
from everstate.engine.jvm.workers import SCRIPT
from everstate.log.private import make_private

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Copies that are kept: a process of an earlier version may still be stopping.
KEPT: Final = 4
_FOLDER: Final = "packages"
_SOURCES: Final = (".py", ".sh", ".properties", ".txt", ".typed")


def shared_package(reports: Path) -> Path:
    """The folder with a copy of this version, and the script that starts Python on it; made if it is not there.

    Args:
        reports: A folder of the service that all machines see.
    """
    source = Path(everstate.__file__).parent
    files = sorted(_files(source))
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(source)}\0".encode())
        digest.update(file.read_bytes())
    folder = reports / _FOLDER / digest.hexdigest()[:16]
    if not (folder / SCRIPT.name).exists():
        _copy(source, files, folder)
    os.utime(folder)
    _sweep(folder)
    return folder


def _files(source: Path) -> Iterator[Path]:
    return (file for file in source.rglob("*") if file.suffix in _SOURCES and "__pycache__" not in file.parts)


def _copy(source: Path, files: list[Path], folder: Path) -> None:
    """All of it or nothing, whoever else does the same."""
    draft = folder.with_name(f".{uuid4().hex}")
    for file in files:
        target = draft / source.name / file.relative_to(source)
        make_private(target.parent)
        shutil.copyfile(file, target)
        target.chmod(0o600)
    shutil.copyfile(SCRIPT, draft / SCRIPT.name)
    (draft / SCRIPT.name).chmod(0o700)
    try:
        draft.rename(folder)
    except OSError:
        if not (folder / SCRIPT.name).exists():
            raise
        shutil.rmtree(draft, ignore_errors=True)


def _sweep(folder: Path) -> None:
    copies = sorted(folder.parent.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in copies[KEPT:]:
        shutil.rmtree(path, ignore_errors=True)
