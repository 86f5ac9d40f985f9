"""The files of an archive: written once, synced, and checked byte by byte when they are read."""

from __future__ import annotations

import io
import re
import zlib
from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.errors import LogError, SegmentDamagedError
from everstate.log import records
from everstate.log.archive.archive import ArchiveFile
from everstate.log.crash import crash_point
from everstate.log.durable import make_folder, replacing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: The folder of archives beside those of a service's outputs; no topic can have such a name.
FOLDER: Final = "@history"
SUFFIX: Final = ".parquet"
APPENDED: Final = records.APPENDED
_STORED: Final = [*records.CONTENT, "offset", APPENDED]
_NAME: Final = re.compile(r"(?P<start>\d+)-(?P<end>\d+)\.(?P<token>\d+)\.parquet(\.partial)?")


def of_another(folder: Path, topic: str) -> LogError:
    """The error for an archive whose records are not those of the topic that has its name."""
    return LogError(
        f"topic {topic!r} is not the one that was archived: it was created again, or restored from an older copy",
        hint=f"Restore it, or give up the archived records: delete {folder / FOLDER / topic}",
    )


def partition_folder(folder: Path, topic: str, partition: int) -> Path:
    """Where the files of one partition are."""
    return folder / FOLDER / topic / str(partition)


def write(folder: Path, frame: pl.DataFrame, start: int, end: int, *, token: int) -> ArchiveFile:
    """Store records durably in a new file.

    Args:
        folder: That of the partition.
        frame: The records, with their offsets and possibly `appended`.
        start: The first offset that the file covers.
        end: One after the last.
        token: Of the lease: a process that was replaced must not write to a file of its successor.
    """
    buffer = io.BytesIO()
    appended = pl.lit(None, dtype=pl.Int64).alias(APPENDED)
    whole = frame if APPENDED in frame.columns else frame.with_columns(appended)
    whole.select(_STORED).write_parquet(buffer, compression="zstd")
    content = buffer.getvalue()
    name = f"{start}-{end}.{token}{SUFFIX}"
    make_folder(folder)
    with replacing(folder / name, partial=f"{name}.partial") as stream:
        stream.write(content)
        crash_point("history.file.before_sync")
    crash_point("history.file.after_sync")
    return ArchiveFile(start, end, len(frame), len(content), zlib.crc32(content), name)


def read(folder: Path, file: ArchiveFile, *, topic: str, partition: int) -> pl.DataFrame:
    """The records of a file, with the columns of a records frame and `appended`.

    Raises:
        FileNotFoundError: If the file is gone; merging may have replaced it.
        SegmentDamagedError: If it is not what was written.
    """
    path = partition_folder(folder, topic, partition) / file.name
    content = path.read_bytes()
    if len(content) != file.size or zlib.crc32(content) != file.crc:
        raise damaged(path, file, topic, partition, "its bytes do not match their checksum")
    try:
        frame = pl.read_parquet(io.BytesIO(content), columns=_STORED)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise damaged(path, file, topic, partition, str(error)) from error
    return frame.with_columns(pl.lit(partition, dtype=pl.Int32).alias("partition")).select(*records.SCHEMA, APPENDED)


def damaged(path: Path, file: ArchiveFile, topic: str, partition: int, reason: str) -> SegmentDamagedError:
    """The error for a file that is not what was written."""
    return SegmentDamagedError(
        f"{path} is damaged: {reason} (archive of topic {topic!r}, partition {partition}, offsets {file.start} to "
        f"{file.end - 1})",
        hint="Restore this file from a backup. Without one, delete it and continue with what is left: "
        f"everstate run SERVICE.py --accept-truncated {topic}",
    )


def remove_unnamed(folder: Path, topic: str, named: set[tuple[int, str]], *, token: int) -> None:
    """Delete files that the document does not name, of this process and of those before it."""
    for partition, path in _files(folder / FOLDER / topic):
        match = _NAME.fullmatch(path.name)
        if match is not None and int(match["token"]) <= token and (partition, path.name) not in named:
            path.unlink(missing_ok=True)


def _files(folder: Path) -> Iterator[tuple[int, Path]]:
    if folder.is_dir():
        for part in folder.iterdir():
            if part.name.isdecimal() and part.is_dir():
                yield from ((int(part.name), path) for path in part.iterdir())
