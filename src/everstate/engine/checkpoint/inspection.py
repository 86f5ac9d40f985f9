"""Checks a checkpoint before a query starts on it.

Spark takes a checkpoint that is not there for a new query, and state that is not there for empty state. So everything
that the next batch will build on is looked at first, against the log's own record of what was published.
"""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any

from everstate.engine.checkpoint.changelog import lineage
from everstate.engine.checkpoint.checkpoint import (
    RETAINED_BATCHES,
    batch_end,
    damaged,
    numbers,
    query_id,
    read_commit,
    read_verified,
    verify,
)
from everstate.errors import CheckpointDamagedError, CheckpointMissingError
from everstate.generations.state.folder import CURE
from everstate.log import vectors

if TYPE_CHECKING:
    from pathlib import Path

    from everstate.generations.state.folder import OutputFolder, OutputRecord
    from everstate.log.descriptions import Commit


def inspect(
    folder: OutputFolder, record: OutputRecord | None, last: Commit | None, *, output: str, operators: int
) -> None:
    """Make sure that an output's state is whole and belongs to what the log holds.

    Args:
        folder: The output's folder.
        record: What the folder says that it holds; None if it holds nothing.
        last: The last batch that the log has of this output.
        output: Its name.
        operators: How many stateful steps its query has.

    Raises:
        CheckpointMissingError: If something is not there.
        CheckpointDamagedError: If something is not what it was.
    """
    if record is None:
        if last is not None or folder.checkpoint.exists():
            what = (
                f"the state of output {output!r}"
                if last is None
                else f"the state of output {output!r}, which has published batch {last.batch_id},"
            )
            raise CheckpointMissingError(f"{what} is missing: {folder.record_file} is not there", hint=CURE)
        return
    checkpoint = folder.checkpoint
    if not checkpoint.exists():
        if last is not None:
            raise CheckpointMissingError(f"the checkpoint of output {output!r} is missing: {checkpoint}", hint=CURE)
        return
    _check_identity(checkpoint, last, output)
    planned, done = numbers(checkpoint / "offsets"), numbers(checkpoint / "commits")
    _check_batches(folder, planned, done, last, output)
    if done:
        _check_state(checkpoint, done, record.shards, operators)


def orderly_end(checkpoint: Path) -> dict[str, Any]:
    """How Spark's logs end, to be remembered at an orderly stop."""
    planned, done = numbers(checkpoint / "offsets"), numbers(checkpoint / "commits")
    return {"planned": planned[-1] if planned else None, "done": done[-1] if done else None}


def _check_identity(checkpoint: Path, last: Commit | None, output: str) -> None:
    begun = any(numbers(checkpoint / name) for name in ("offsets", "commits"))
    if not begun and last is None and not (checkpoint / "metadata").exists():
        return  # stopped before Spark had written anything
    identity = query_id(checkpoint)
    if last is not None and identity != last.query_id:
        raise CheckpointMissingError(
            f"the checkpoint of output {output!r} is not the one that published batch {last.batch_id}: "
            f"it belongs to query {identity}, but the log knows {last.query_id}",
            hint=CURE,
        )


def _check_batches(folder: OutputFolder, planned: list[int], done: list[int], last: Commit | None, output: str) -> None:
    checkpoint = folder.checkpoint
    for name, found in (("offsets", planned), ("commits", done)):
        # Spark has removed none of the newest; what it may have removed lies before them.
        first = min(found[0], max(0, found[-1] - RETAINED_BATCHES + 2)) if found else 0
        gaps = sorted(set(range(first, found[-1] + 1)) - set(found)) if found else []
        if gaps:
            raise CheckpointMissingError(f"{checkpoint / name / str(gaps[0])} is missing", hint=CURE)
    newest_planned, newest_done = planned[-1] if planned else -1, done[-1] if done else -1
    published = last.batch_id if last is not None else -1
    stopped = folder.read_stopped() or {}
    # A batch is planned, then published, then done: each can be one ahead of the next, never more and never behind.
    expected_planned = max(newest_done, published, _number(stopped.get("planned")))
    expected_done = max(newest_planned - 1, published - 1, _number(stopped.get("done")))
    if newest_planned < expected_planned:
        raise CheckpointMissingError(f"{checkpoint / 'offsets' / str(expected_planned)} is missing", hint=CURE)
    if newest_done < expected_done:
        raise CheckpointMissingError(f"{checkpoint / 'commits' / str(expected_done)} is missing", hint=CURE)
    if newest_done > published:
        raise CheckpointDamagedError(
            f"the checkpoint of output {output!r} has completed batch {newest_done}, but the log has it only up to "
            f"batch {published}: they are from different moments",
            hint=CURE,
        )
    for batch in planned:
        end = batch_end(checkpoint, batch)
        if last is not None and batch == published and vectors.to_json(end) != vectors.to_json(last.end):
            raise damaged(checkpoint / "offsets" / str(batch), "the log has a different end for this batch")


def _number(value: object) -> int:
    return value if isinstance(value, int) else -1


def _check_state(checkpoint: Path, done: list[int], shards: int, operators: int) -> None:
    """What each store's next version builds on."""
    newest = [read_commit(checkpoint, batch) for batch in done][-1].state_ids
    path = checkpoint / "commits" / str(done[-1])
    if sorted(newest) != [str(number) for number in range(operators)]:
        raise damaged(path, f"it names the state of {len(newest)} steps instead of {operators}")
    for operator, partitions in newest.items():
        if len(partitions) != shards:
            raise damaged(path, f"it names {len(partitions)} shards instead of {shards}")
        _check_description(checkpoint / "state" / operator)
        for partition in range(shards):
            store = checkpoint / "state" / operator / str(partition)
            _check_store(store, done[-1] + 1, partitions[partition])


def _check_description(folder: Path) -> None:
    """Spark's own description of a stateful step."""
    for name, pattern in (("_metadata", "*/*"), ("_stateSchema", "*/*")):
        files = [path for path in (folder / name).glob(pattern) if not path.name.startswith(".")]
        if not files:
            raise CheckpointMissingError(f"{folder / name} is missing or empty", hint=CURE)
        for path in files:
            read_verified(path)


def _check_store(store: Path, version: int, identity: str) -> None:
    """What Spark loads for a version: its snapshot, or the newest of its lineage with all changes since."""
    newest = _snapshot(store, version, identity)
    if newest.exists():
        _check_snapshot(newest)
        return
    changes = _changes(store, version, identity)
    try:
        versions = {**lineage(_check_file(changes)), version: identity}
    except ValueError as error:
        raise damaged(changes, error) from error
    found = [number for number in sorted(versions) if _snapshot(store, number, versions[number]).exists()]
    first = min(versions)
    if found:
        _check_snapshot(_snapshot(store, found[-1], versions[found[-1]]))
    elif first != 1:
        raise CheckpointMissingError(f"{_snapshot(store, first, versions[first])} is missing", hint=CURE)
    since = found[-1] if found else 0
    for number in range(since + 1, version + 1):
        if number not in versions:
            raise damaged(changes, f"its lineage leaves out version {number}")
        _check_file(_changes(store, number, versions[number]))


def _snapshot(store: Path, version: int, identity: str) -> Path:
    return store / f"{version}_{identity}.zip"


def _changes(store: Path, version: int, identity: str) -> Path:
    return store / f"{version}_{identity}.changelog"


def _check_file(path: Path) -> bytes:
    content = read_verified(path)
    beside = path.with_name(f"{path.name}.crc")
    if not beside.exists():
        return content
    try:
        size = int(json.loads(read_verified(beside))["mainFileSize"])
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(beside, error) from error
    if size != len(content):
        raise damaged(path, f"it has {len(content)} bytes instead of {size}")
    return content


def _check_snapshot(path: Path) -> None:
    _check_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            lines = archive.read("metadata").decode().splitlines()
        files = json.loads(lines[1]).get("sstFiles") or []
    except (zipfile.BadZipFile, KeyError, ValueError, IndexError) as error:
        raise damaged(path, error) from error
    for file in files:
        table = path.parent / "SSTs" / file["dfsSstFileName"]
        if not table.exists():
            raise CheckpointMissingError(f"{table} is missing", hint=CURE)
        if table.stat().st_size != file["sizeBytes"]:
            raise damaged(table, f"it has {table.stat().st_size} bytes instead of {file['sizeBytes']}")
        verify(table, table.read_bytes())
