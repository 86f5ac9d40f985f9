"""A checkpoint that is not where Spark wrote it: a folder that was moved, or the clone that a migration begins with.

Spark's description of a stateful step names the file with the schema of its state by its whole path. Left as it is, a
moved folder does not start, and a clone depends on the generation that it was made of, which is deleted some day.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from everstate.engine.checkpoint.checkpoint import damaged
from everstate.generations.state.folder import write_file

if TYPE_CHECKING:
    from pathlib import Path


def relocate(checkpoint: Path) -> None:
    """Let a checkpoint name its own files, before a query starts on it.

    Raises:
        CheckpointDamagedError: If Spark's description of a step cannot be read.
    """
    for path in sorted((checkpoint / "state").glob("*/_metadata/*/*")):
        if path.name.isdecimal():
            _rewrite(path, checkpoint / "state" / path.parts[-4])


def _rewrite(path: Path, operator: Path) -> None:
    content = path.read_bytes()
    version, _, body = content.partition(b"\n")
    try:
        description = json.loads(body)
        for store in description["stateStoreInfo"]:
            if "stateSchemaFilePaths" in store:
                store["stateSchemaFilePaths"] = [_own(name, operator) for name in store["stateSchemaFilePaths"]]
    except (ValueError, LookupError, TypeError) as error:
        raise damaged(path, error) from error
    if description == json.loads(body):
        return
    # Without its checksums the file is taken as it is; with those of the old content it would be called damaged.
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    write_file(path, version + b"\n" + json.dumps(description, separators=(",", ":")).encode())


def _own(name: Any, operator: Path) -> Any:
    _, found, within = str(name).rpartition("/_stateSchema/")
    return f"file:{operator.absolute()}/_stateSchema/{within}" if found else name
