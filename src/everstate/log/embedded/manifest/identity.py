"""Which log this is, and whether its manifest is all of it.

Beside the manifest lie two small files. `identity.json` holds the log's id: a folder that has it, or has records, and
no manifest has lost its manifest, and is no new log. `manifest.count` holds the number of transactions that were
durable when it was written, without a sync of its own: a manifest that knows of fewer has lost its last ones (its
write-ahead file was cut, damaged or deleted, or the manifest is an older copy), which SQLite would take for the truth.
"""

from __future__ import annotations

import json
import os
import zlib
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from everstate.errors import LogError, ManifestDamagedError
from everstate.errors.exhaustion import exhausted, exhaustion
from everstate.log import private
from everstate.log.crash import crash_point
from everstate.log.durable import replacing
from everstate.log.embedded.manifest.catalogue import TOPICS_FOLDER
from everstate.log.embedded.segments import SUFFIX

if TYPE_CHECKING:
    from pathlib import Path

IDENTITY_NAME: Final = "identity.json"
COUNT_NAME: Final = "manifest.count"
_COUNT_BYTES: Final = 26


def refuse_orphans(root: Path) -> None:
    """Refuse a folder that has all of a log but its manifest.

    Raises:
        ManifestDamagedError: If it has.
    """
    remains = [name for name in (IDENTITY_NAME, "manifest.db-wal") if _has_bytes(root / name)]
    if (root / TOPICS_FOLDER).is_dir() and any((root / TOPICS_FOLDER).rglob("*" + SUFFIX)):
        remains.append(TOPICS_FOLDER)
    if remains:
        raise ManifestDamagedError(
            f"the log in {root} has lost its manifest: {root / 'manifest.db'} is missing or empty, but the folder has "
            + " and ".join(remains),
            hint="Restore manifest.db and manifest.db-wal from a backup; nothing was changed. For a new, empty log "
            "name another folder.",
        )


def _has_bytes(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False


def agree(root: Path, identity: str) -> None:
    """Compare the manifest's id with that of the folder; a folder that has none yet gets it.

    Raises:
        LogError: If they differ.
        ResourceError: If the folder's cannot be read at the moment, or by this user.
    """
    path = root / IDENTITY_NAME
    try:
        found = json.loads(path.read_bytes())["log"]
    except FileNotFoundError:
        crash_point("log.create.before_identity")
        _write(path, identity)
        crash_point("log.create.after_identity")
        return
    except (OSError, ValueError, KeyError, TypeError) as error:
        lacking = exhaustion(error)
        if lacking is not None:
            raise exhausted(lacking, f"{path} cannot be read") from error
        raise ManifestDamagedError(
            f"{path} is damaged: {error}", hint="Delete this file; it is written again from the manifest."
        ) from error
    if found != identity:
        raise LogError(
            f"the manifest in {root} belongs to another log: its id is {identity}, that of the folder is {found}",
            hint="Put back the manifest.db that belongs to this folder; nothing was changed.",
        )


def _write(path: Path, identity: str) -> None:
    # Not by the process's number: two containers that use one folder may both have the first.
    with replacing(path, partial=f".{path.name}.{uuid4().hex}.partial") as stream:
        stream.write(json.dumps({"log": identity}).encode() + b"\n")


def note_writes(root: Path, writes: int) -> None:
    """Note how many transactions are durable; a lower number of another process may win, which only tells less."""
    text = f"{writes:016x}"
    handle = os.open(root / COUNT_NAME, os.O_WRONLY | os.O_CREAT, private.FILE)
    try:
        os.pwrite(handle, f"{text} {zlib.crc32(text.encode()):08x}\n".encode(), 0)
    finally:
        os.close(handle)


def noted_writes(root: Path) -> int:
    """How many transactions were durable at least; 0 if the note is gone or was cut off by a power failure."""
    try:
        text, check = (root / COUNT_NAME).read_bytes()[:_COUNT_BYTES].decode("ascii").split()
        return int(text, 16) if int(check, 16) == zlib.crc32(text.encode()) else 0
    except (OSError, ValueError):
        return 0


def refuse_lost_writes(root: Path, noted: int, writes: int) -> None:
    """Refuse a manifest that knows of fewer transactions than were durable before it was opened.

    Raises:
        ManifestDamagedError: If it does.
    """
    if writes < noted:
        raise ManifestDamagedError(
            f"the manifest in {root} lacks its last {noted - writes} transactions: manifest.db or manifest.db-wal was "
            "cut, damaged or replaced by an older copy",
            hint="Restore both files from one backup. To continue with what is there, and lose what the "
            f"missing transactions wrote, delete {root / COUNT_NAME}.",
        )
