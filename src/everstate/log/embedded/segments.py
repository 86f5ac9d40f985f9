"""Segment files: blocks of Arrow, one after the other, each with its length and checksum in the manifest.

A file is nothing but its blocks, so every byte of it is under a checksum. A block is an Arrow IPC stream (LZ4) of at
most 65,536 records: small enough to be read in parts and in parallel, large enough to be read fast. A block that is
written for the first time has no offsets, since they are only known at the commit: its rows follow each other without
a gap. What compaction leaves has gaps, so there each row carries its offset and the time it was appended.
"""

from __future__ import annotations

import io
import json
import os
import zlib
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, Self

import polars as pl

from everstate.errors import SegmentDamagedError
from everstate.log import records
from everstate.log.crash import crash_point
from everstate.log.durable import sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

SUFFIX: Final = ".arrows"
BLOCK_RECORDS: Final = 65_536
BLOCK_BYTES: Final = 8 << 20

APPENDED: Final = records.APPENDED
_NO_TIME: Final = -(1 << 63)


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class Block(NamedTuple):
    """One block: offsets from the segment's base, place in the file, checksum, number of records."""

    first: int
    end: int
    position: int
    length: int
    crc: int
    records: int


@dataclass(frozen=True)
class Segment:
    """Blocks in one file that hold consecutive records of one partition.

    Attributes:
        base: The first offset; 0 as long as none has been given.
        end: One after the last.
        file: Path of the file, relative to the log's folder.
        file_bytes: How long the whole file is.
        sparse: Whether the rows carry their offsets.
        max_ts: The highest timestamp.
        appended_ms: When it was committed.
    """

    base: int
    end: int
    file: str
    file_bytes: int
    sparse: bool
    max_ts: int
    appended_ms: int
    blocks: tuple[Block, ...]

    @property
    def records(self) -> int:
        """How many records there are."""
        return sum(block.records for block in self.blocks)

    @property
    def size(self) -> int:
        """How many bytes of the file belong to this segment."""
        return sum(block.length for block in self.blocks)

    def to_json(self) -> str:
        """The segment as text, for splits and staged records."""
        return json.dumps(vars(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The segment that `to_json` wrote."""
        fields: dict[str, Any] = json.loads(text)
        return cls(**{**fields, "blocks": tuple(Block(*block) for block in fields["blocks"])})


class SegmentWriter:
    """Writes the segments of one file: a run of `add` calls, then `segment`, for each of them; then `finish`."""

    def __init__(self, root: Path, file: str) -> None:
        self._root = root
        self.file = file
        self._path = root / file
        self._stream: BinaryIO = os.fdopen(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        self._position = 0
        self._blocks: list[Block] = []
        self._max_ts = _NO_TIME
        self._offsets: tuple[int, int] | None = None

    def add(self, frame: pl.DataFrame) -> None:
        """Write rows; with an `offset` column they keep these offsets, without they follow each other."""
        if frame["headers"].null_count() == len(frame):
            frame = frame.drop("headers")
        for part in _parts(frame):
            first, end = self._range(part)
            encoded = _encoded(part)
            self._stream.write(encoded)
            self._blocks.append(Block(first, end, self._position, len(encoded), zlib.crc32(encoded), len(part)))
            self._position += len(encoded)
            self._max_ts = max(self._max_ts, part.select(pl.col("ts").max()).item())

    def _range(self, part: pl.DataFrame) -> tuple[int, int]:
        if "offset" not in part.columns:
            first = self._blocks[-1].end if self._blocks else 0
            return first, first + len(part)
        first, end = int(part["offset"][0]), int(part["offset"][-1]) + 1
        self._offsets = (self._offsets[0] if self._offsets else first, end)
        base = self._offsets[0]
        return first - base, end - base

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._position

    def segment(self, *, appended_ms: int = 0) -> Segment:
        """End a segment and begin the next one. The length of the file is only known to `finish`."""
        sparse = self._offsets is not None
        base, end = self._offsets or (0, self._blocks[-1].end)
        done = Segment(base, end, self.file, 0, sparse, self._max_ts, appended_ms, tuple(self._blocks))
        self._blocks, self._max_ts, self._offsets = [], _NO_TIME, None
        return done

    def finish(self) -> int:
        """Make the file and its name durable; returns its length."""
        crash_point("log.stage.before_sync")
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()
        sync_folder(self._path.parent)
        crash_point("log.stage.after_sync")
        return self._position

    def close(self) -> None:
        """Give the file up; whoever began it deletes it."""
        with suppress(OSError):  # what was not written yet may find no space
            self._stream.close()


class SegmentReader:
    """Reads blocks of segments and checks every byte of them."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(
        self, place: Place, segment: Segment, *, start: int, end: int, columns: list[str] | None = None
    ) -> Iterator[pl.DataFrame]:
        """The blocks of a segment that hold offsets from `start` to before `end`, cut to that range.

        Args:
            place: Whose records these are.
            segment: What to read.
            start: The first offset.
            end: One after the last offset.
            columns: Which columns to decode; None for those of a records frame. `appended` may be asked for.

        Raises:
            FileNotFoundError: If the file is gone; compaction may have replaced it.
            SegmentDamagedError: If a byte is not what was written.
        """
        wanted = [
            block for block in segment.blocks if segment.base + block.first < end and segment.base + block.end > start
        ]
        if not wanted:
            return
        names = columns or list(records.SCHEMA)
        with (self._root / segment.file).open("rb") as stream:
            if os.fstat(stream.fileno()).st_size != segment.file_bytes:
                found = os.fstat(stream.fileno()).st_size
                reason = f"the file has {found} bytes instead of {segment.file_bytes}"
                raise self._damaged(place, segment, wanted[0], reason)
            for block in wanted:
                stream.seek(block.position)
                stored = stream.read(block.length)
                if len(stored) != block.length or zlib.crc32(stored) != block.crc:
                    raise self._damaged(place, segment, block, "its bytes do not match their checksum")
                frame = _decoded(stored, segment, block, place.partition)
                if segment.base + block.first < start or segment.base + block.end > end:
                    frame = frame.filter(pl.col("offset").is_between(start, end - 1))
                yield frame.select(names)

    def _damaged(self, place: Place, segment: Segment, block: Block, reason: str) -> SegmentDamagedError:
        first, last = segment.base + block.first, segment.base + block.end - 1
        return SegmentDamagedError(
            f"{self._root / segment.file} is damaged: {reason} "
            f"(topic {place.topic!r}, partition {place.partition}, offsets {first} to {last}, "
            f"bytes {block.position} to {block.position + block.length - 1})",
            hint="Restore this file from a backup; nothing was read from the damaged part.",
        )

    def missing(self, place: Place, segment: Segment) -> SegmentDamagedError:
        """The error for a file that the manifest names and the folder does not have."""
        return self._damaged(place, segment, segment.blocks[0], "the file is missing")


def _parts(frame: pl.DataFrame) -> Iterable[pl.DataFrame]:
    """Cut a frame into blocks that are bounded in records and, as far as one record allows, in bytes."""
    if not len(frame):
        return ()
    size = sum(int(frame[name].bin.size().cast(pl.Int64).sum()) for name in ("key", "value"))
    average = max(1, size // len(frame))
    return frame.iter_slices(max(1, min(BLOCK_RECORDS, BLOCK_BYTES // average)))


def _encoded(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    # Classic Arrow layouts: any Arrow reader understands them, and the string views of newer ones are no faster here.
    frame.write_ipc_stream(buffer, compression="lz4", compat_level=pl.CompatLevel.oldest())
    return buffer.getvalue()


def _decoded(stored: bytes, segment: Segment, block: Block, partition: int) -> pl.DataFrame:
    """All columns of a block, those that were not stored included."""
    frame = pl.read_ipc_stream(io.BytesIO(stored))
    missing: list[pl.Expr] = [pl.lit(partition, dtype=pl.Int32).alias("partition")]
    if "headers" not in frame.columns:
        missing.append(pl.lit(None, dtype=records.HEADERS).alias("headers"))
    if not segment.sparse:
        first = segment.base + block.first
        missing.append(pl.int_range(first, first + block.records, dtype=pl.Int64).alias("offset"))
        missing.append(pl.lit(segment.appended_ms, dtype=pl.Int64).alias(APPENDED))
    return frame.with_columns(missing)
