"""How long Spark takes to start on this machine: noted by each run, for the plans of the next."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Final

from everstate.engine.jvm.class_archive import cache_folder
from everstate.log.durable import replacing

if TYPE_CHECKING:
    from pathlib import Path

_START: Final = "spark_start_s"


def note_start(seconds: float) -> None:
    """Remember how long a start took; nothing depends on it, so it need not succeed."""
    with contextlib.suppress(OSError):
        file = _file()
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as written:
            written.write(json.dumps({_START: round(seconds, 2)}).encode())


def last_start() -> float | None:
    """How long the last start took; None if there was none on this machine."""
    try:
        found = json.loads(_file().read_bytes())[_START]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return float(found) if isinstance(found, (int, float)) and found > 0 else None


def _file() -> Path:
    return cache_folder() / "timings.json"
