"""Files that tasks leave for the driver: records on their way into topics.

Tasks that calculate never produce: one that is retried or run twice only leaves a file of its own. What a commit names
is sent in one transaction, or in one for each publisher, and the files are deleted. They need not survive a power
failure, since the batch then runs again.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import polars as pl

from everstate.errors import ConfigurationError, LogError
from everstate.log import records
from everstate.log.crash import crash_point
from everstate.log.descriptions import Staged
from everstate.log.digest import content_digest
from everstate.log.durable import replacing
from everstate.log.private import create_private, make_private

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

SUFFIX: Final = ".arrow"
#: A file that nobody has asked for after so long belongs to a batch that came again.
_LITTER_S: Final = 86_400.0


@dataclass(frozen=True)
class Place:
    """Where staged records are.

    Attributes:
        file: The file.
        size: Its length.
        first: Its first row of them.
        topic_id: Of the topic that they were staged for.
    """

    file: str
    size: int
    first: int
    topic_id: str

    @classmethod
    def of(cls, part: Staged) -> Place:
        """The place of staged records."""
        return cls(**json.loads(part.location))

    def location(self) -> str:
        """As staged records carry it."""
        return json.dumps({"file": self.file, "size": self.size, "first": self.first, "topic_id": self.topic_id})


def required(root: Path | None) -> Path:
    """The folder for files on their way.

    Raises:
        ConfigurationError: If none was named.
    """
    if root is None:
        raise ConfigurationError(
            "this log was opened without a folder for records in transit",
            hint="Name one: --state-dir PATH or EVERSTATE_STATE_DIR, on a disk that all processes of the service see.",
        )
    return root


def write(
    folder: Path, topic: str, topic_id: str, groups: Sequence[tuple[int, pl.DataFrame]], *, durable: bool
) -> list[Staged]:
    """One file with the records of each partition, one after the other.

    Args:
        folder: Where.
        topic: For which topic.
        topic_id: Its id.
        groups: Partitions with their records, as `records.content` gives them.
        durable: The file has to survive a power failure.
    """
    filled = [(partition, content) for partition, content in groups if content.height]
    if not filled:
        return [Staged(topic, partition, 0, "0" * 32, "") for partition, _ in groups]
    whole = pl.concat([content for _, content in filled])
    if whole["headers"].null_count() == whole.height:
        whole = whole.drop("headers")
    make_private(folder)
    path = folder / f"{uuid4().hex}{SUFFIX}"
    crash_point("log.stage.before_sync")
    if durable:
        with replacing(path) as stream:
            whole.write_ipc(stream)
    else:
        with create_private(path) as stream:
            whole.write_ipc(stream)
    crash_point("log.stage.after_sync")
    size, first = path.stat().st_size, 0
    staged = []
    for partition, content in filled:
        location = Place(str(path), size, first, topic_id).location()
        staged.append(Staged(topic, partition, content.height, content_digest(content), location))
        first += content.height
    return staged


def check(staged: Iterable[Staged]) -> None:
    """Refuse files that are gone or cut off, before anything is sent.

    Raises:
        LogError: If one is.
    """
    for place in {Place.of(part).file: Place.of(part) for part in staged if part.rows}.values():
        path = Path(place.file)
        if not path.is_file() or path.stat().st_size != place.size:
            raise LogError(
                f"the staged file {path} is gone, or its length is not the one it was written with",
                hint="Nothing was published; run the batch again.",
            )


def content(part: Staged) -> pl.DataFrame:
    """The records that were staged."""
    if not part.rows:
        return pl.DataFrame(schema=records.CONTENT)
    place = Place.of(part)
    return read_file(Path(place.file)).slice(place.first, part.rows)


def read_file(path: Path) -> pl.DataFrame:
    """All records of a file."""
    whole = pl.read_ipc(path)
    if "headers" not in whole.columns:
        whole = whole.with_columns(pl.lit(None, dtype=records.HEADERS).alias("headers"))
    return whole


def remove(files: Iterable[str]) -> None:
    """Delete files; one that is gone is gone."""
    for file in set(files):
        Path(file).unlink(missing_ok=True)


def sweep(folder: Path, kept: Collection[str]) -> None:
    """Delete what batches have left that came again, or never came; not the files that are still to be sent."""
    if folder.is_dir():
        for path in folder.glob(f"*{SUFFIX}"):
            if str(path) not in kept and path.stat().st_mtime < time.time() - _LITTER_S:
                path.unlink(missing_ok=True)
