"""Topics: one protocol, and the logs behind it.

Read `descriptions.py` (topics, records, commits, leases as plain values), then `protocol.py` (what a log can do) and
`records.py` (the frames in which records travel). `embedded/`, `kafka/` and `memory/` are three logs, `archive/`
keeps the past of sources. What logs must agree on is beside them: `leasing.py`, `succession.py`, `last_records.py`,
`arrival.py`, `timing.py`, `upkeep.py`, `checks.py`, `digest.py`, `vectors.py` and `stops.py`. `crash.py` names the
points at which tests crash, `durable.py` and `private.py` make files, and `opening.py` opens a log by its address.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from everstate.log.descriptions import (
        Commit,
        CommitResult,
        Copy,
        Cutover,
        Holder,
        Lease,
        Record,
        Split,
        Staged,
        TopicConfig,
        TopicInfo,
        Vector,
    )
    from everstate.log.digest import combined_digest
    from everstate.log.embedded import EmbeddedLog
    from everstate.log.memory import MemoryLog
    from everstate.log.opening import open_log
    from everstate.log.protocol import Log

__all__ = [
    "Commit",
    "CommitResult",
    "Copy",
    "Cutover",
    "EmbeddedLog",
    "Holder",
    "Lease",
    "Log",
    "MemoryLog",
    "Record",
    "Split",
    "Staged",
    "TopicConfig",
    "TopicInfo",
    "Vector",
    "combined_digest",
    "open_log",
]


def __getattr__(name: str) -> Any:
    # As in the package itself: processes that only handle vectors need no log.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    homes = {
        "EmbeddedLog": "everstate.log.embedded",
        "Log": "everstate.log.protocol",
        "MemoryLog": "everstate.log.memory",
        "combined_digest": "everstate.log.digest",
        "open_log": "everstate.log.opening",
    }
    return getattr(import_module(homes.get(name, "everstate.log.descriptions")), name)
