"""Topics: one protocol, and the logs behind it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from everstate.log.digest import combined_digest
    from everstate.log.embedded import EmbeddedLog
    from everstate.log.opening import open_log
    from everstate.log.protocol import (
        Commit,
        CommitResult,
        Cutover,
        Holder,
        Lease,
        Log,
        Record,
        Split,
        Staged,
        TopicConfig,
        TopicInfo,
        Vector,
    )

__all__ = [
    "Commit",
    "CommitResult",
    "Cutover",
    "EmbeddedLog",
    "Holder",
    "Lease",
    "Log",
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
        "combined_digest": "everstate.log.digest",
        "open_log": "everstate.log.opening",
    }
    return getattr(import_module(homes.get(name, "everstate.log.protocol")), name)
