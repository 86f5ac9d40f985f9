"""What every part of the embedded log works on: the folder, its manifest, its segment files, and the time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from everstate.log.embedded.manifest.manifest import Manifest
from everstate.log.embedded.segments import SegmentReader
from everstate.log.timing import Clock, wall_clock

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["MANIFEST_NAME", "Clock", "Store", "wall_clock"]

MANIFEST_NAME: Final = "manifest.db"


@dataclass(frozen=True)
class Store:
    """A log's folder.

    Attributes:
        trusted: The manifest was checked a moment ago by the process that passed the log on to this one.
    """

    root: Path
    clock: Clock
    trusted: bool = False
    manifest: Manifest = field(init=False)
    reader: SegmentReader = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "manifest", Manifest(self.root / MANIFEST_NAME, self.clock, trusted=self.trusted))
        object.__setattr__(self, "reader", SegmentReader(self.root))
