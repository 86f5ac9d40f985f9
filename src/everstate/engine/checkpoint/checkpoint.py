"""Reading what Spark writes into a checkpoint: where batches end, which are complete, which state belongs to them."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from everstate.errors import CheckpointDamagedError, CheckpointMissingError
from everstate.errors.exhaustion import exhausted, exhaustion
from everstate.generations.state.folder import CURE
from everstate.log import vectors

if TYPE_CHECKING:
    from pathlib import Path

    from everstate.errors import EverstateError
    from everstate.log.descriptions import Vector

#: Spark keeps at least so many batches in its logs, with the state files that they need.
RETAINED_BATCHES: Final = 100
_CHUNK: Final = 512


@dataclass(frozen=True)
class BatchCommit:
    """A batch that Spark has completed.

    Attributes:
        state_ids: The id of each store's state after the batch: by operator, by shuffle partition.
    """

    state_ids: dict[str, list[str]]


def numbers(folder: Path) -> list[int]:
    """The batches that a log of Spark's has a file for, in order."""
    return sorted(int(path.name) for path in folder.glob("*") if path.name.isdecimal())


def query_id(checkpoint: Path) -> str:
    """Spark's id of the query.

    Raises:
        CheckpointMissingError: If the file is not there.
        CheckpointDamagedError: If it cannot be read.
    """
    path = checkpoint / "metadata"
    try:
        return str(json.loads(read_verified(path))["id"])
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(path, error) from error


def batch_end(checkpoint: Path, batch_id: int) -> Vector:
    """Where a batch ends.

    Raises:
        CheckpointMissingError: If Spark's offsets do not have the batch.
        CheckpointDamagedError: If they cannot be read.
    """
    path = checkpoint / "offsets" / str(batch_id)
    lines = read_verified(path).decode(errors="replace").splitlines()
    try:
        if lines[0] != "v1" or len(lines) != 3:
            raise ValueError("it is not in the format of Spark's offsets")  # noqa: TRY301 - one place makes the error
        return vectors.from_json(lines[2])
    except (ValueError, IndexError, AttributeError, TypeError) as error:
        raise damaged(path, error) from error


def batch_vectors(checkpoint: Path, batch_id: int, initial: Vector) -> tuple[Vector, Vector]:
    """Where a batch begins and ends; the first one begins where the output began."""
    start = initial if batch_id == 0 else batch_end(checkpoint, batch_id - 1)
    return start, batch_end(checkpoint, batch_id)


def read_commit(checkpoint: Path, batch_id: int) -> BatchCommit:
    """What Spark noted when it had completed a batch.

    Raises:
        CheckpointMissingError: If there is no such note.
        CheckpointDamagedError: If it cannot be read.
    """
    path = checkpoint / "commits" / str(batch_id)
    lines = read_verified(path).decode(errors="replace").splitlines()
    try:
        document: dict[str, Any] = json.loads(lines[1])
        ids = document.get("stateUniqueIds") or {}
        return BatchCommit({operator: [stores[0] for stores in partitions] for operator, partitions in ids.items()})
    except (ValueError, IndexError, AttributeError, TypeError) as error:
        raise damaged(path, error) from error


def read_verified(path: Path) -> bytes:
    """The bytes of a file of Spark's, checked against the checksums that Hadoop keeps in a hidden file beside it.

    Raises:
        CheckpointMissingError: If the file is not there.
        CheckpointDamagedError: If it is not what was written.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise CheckpointMissingError(f"{path} is missing", hint=CURE) from error
    except OSError as error:
        raise damaged(path, error) from error
    verify(path, content)
    return content


def verify(path: Path, content: bytes) -> None:
    """Check bytes against Hadoop's checksums; where those are gone there is nothing to check.

    Raises:
        CheckpointDamagedError: If they do not match.
    """
    try:
        sums = path.with_name(f".{path.name}.crc").read_bytes()
    except OSError:
        return
    if len(sums) < 8 or sums[:4] != b"crc\0":
        raise damaged(path, "its checksum file is damaged")
    (size,) = struct.unpack(">i", sums[4:8])
    expected = struct.unpack(f">{(len(sums) - 8) // 4}I", sums[8 : 8 + (len(sums) - 8) // 4 * 4])
    size = size if size > 0 else _CHUNK
    view = memoryview(content)
    found = tuple(zlib.crc32(view[at : at + size]) for at in range(0, len(content), size))
    if found != expected:
        raise damaged(path, "its content does not match its checksum")


def damaged(path: Path, reason: object) -> EverstateError:
    """The error for a file that cannot be used; one that could not be opened for want of something is not damaged."""
    lacking = exhaustion(reason) if isinstance(reason, OSError) else None
    if lacking is not None:
        return exhausted(lacking, f"{path} cannot be read")
    return CheckpointDamagedError(f"{path} is damaged: {reason}", hint=CURE)
