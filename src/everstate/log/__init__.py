"""Topics: one protocol, and the logs behind it."""

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
    combined_digest,
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
