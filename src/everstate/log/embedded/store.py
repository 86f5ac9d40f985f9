"""What every part of the embedded log works on: the folder, its manifest, its segment files, and the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from everstate.log.embedded.catalogue import TOPICS_FOLDER
from everstate.log.embedded.manifest import Manifest
from everstate.log.embedded.segments import SegmentReader, sync_folder
from everstate.topology.errors import LogError

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST_NAME: Final = "manifest.db"
Clock = Callable[[], int]


def wall_clock() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True)
class Store:
    """A log's folder."""

    root: Path
    clock: Clock
    manifest: Manifest = field(init=False)
    reader: SegmentReader = field(init=False)

    def __post_init__(self) -> None:
        try:
            self.make_folder(self.root / TOPICS_FOLDER)
        except OSError as error:
            raise LogError(
                f"the log's folder {self.root} cannot be used: {error.strerror}",
                hint="Name another folder with --log PATH or EVERSTATE_LOG.",
            ) from error
        object.__setattr__(self, "manifest", Manifest(self.root / MANIFEST_NAME))
        object.__setattr__(self, "reader", SegmentReader(self.root))

    def make_folder(self, folder: Path) -> None:
        """Create a folder, and make its name durable."""
        if folder.is_dir():
            return
        existing = next(parent for parent in folder.parents if parent.is_dir())
        folder.mkdir(parents=True, exist_ok=True)
        for parent in folder.parents:
            sync_folder(parent)
            if parent == existing:
                return
