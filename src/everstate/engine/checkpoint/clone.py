"""A checkpoint of its own that begins where another one was: what a migrated generation starts from.

The active generation's query may run meanwhile. What Spark has written it never changes, it only deletes what is older
than its newest hundred batches; so state files are linked, and a file that is gone while it is looked for makes the
whole thing begin again.

The clone ends one batch before the last that Spark has completed, and that batch is planned in it: Spark runs it again,
on every shard, whether or not anything new has come.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

from everstate.engine.checkpoint.checkpoint import batch_vectors, numbers
from everstate.errors import CheckpointMissingError, MigrationError
from everstate.generations.state.folder import write_file
from everstate.log.descriptions import Batch
from everstate.log.durable import sync_folder
from everstate.log.private import make_private

if TYPE_CHECKING:
    from everstate.log.descriptions import Vector

_TRIES: Final = 5


def clone(source: Path, target: Path, initial: Vector) -> Batch:
    """Make a checkpoint like another one; it is complete or not there.

    Args:
        source: Spark's checkpoint.
        target: Where the clone shall be; what is there goes.
        initial: Where the first batch of the source began.

    Raises:
        MigrationError: If there is no batch to begin after, or files went all the time.
    """
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(target, ignore_errors=True)
    for _ in range(_TRIES):
        shutil.rmtree(partial, ignore_errors=True)
        done = numbers(source / "commits")
        if not done or done[-1] < 1:
            raise MigrationError("the active generation has not completed a second micro-batch yet")
        last = done[-1] - 1
        try:
            found = Batch(str(uuid.uuid4()), last, *batch_vectors(source, last, initial))
            _fill(source, partial, found)
        except (FileNotFoundError, CheckpointMissingError):
            continue
        _sync(partial)
        partial.rename(target)
        sync_folder(target.parent)
        return found
    raise MigrationError(f"the checkpoint of the active generation kept changing while it was being copied: {source}")


def _fill(source: Path, target: Path, found: Batch) -> None:
    for log, newest in (("offsets", found.batch_id + 1), ("commits", found.batch_id)):
        for number in numbers(source / log):
            if number <= newest:
                _copy(source / log / str(number), target / log / str(number))
    write_file(target / "metadata", json.dumps({"id": found.query_id}).encode())
    for folder, _, names in os.walk(source / "state", onerror=_gone):
        within = target / Path(folder).relative_to(source)
        make_private(within)
        for name in names:
            if _belongs(name, found.batch_id + 1):
                _link(Path(folder) / name, within / name)


def _belongs(name: str, newest: int) -> bool:
    """Whether a file is complete, and not of a later version of its store."""
    plain = name.lstrip(".")
    version = plain.partition("_")[0]
    later = version.isdecimal() and plain.endswith((".zip", ".changelog", ".crc")) and int(version) > newest
    return not later and ".tmp" not in name


def _gone(error: OSError) -> None:
    raise error


def _copy(source: Path, target: Path) -> None:
    """Small files, with the checksums that Hadoop keeps beside them."""
    write_file(target, source.read_bytes())
    beside = source.with_name(f".{source.name}.crc")
    if beside.exists():
        write_file(target.with_name(beside.name), beside.read_bytes())


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:  # a file system without links
        shutil.copyfile(source, target)


def _sync(root: Path) -> None:
    for folder, _, _ in os.walk(root):
        sync_folder(folder)
