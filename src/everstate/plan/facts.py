"""What a plan must know: the registry's generations, the log's topics, and what the user asks for, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from everstate.fingerprints.prints import UnitPrint

#: Partition to offset.
Offsets: TypeAlias = dict[int, int]
#: What a user wants to happen to an output that has changed.
OnChange: TypeAlias = Literal["recalculate", "continue", "migrate"]


@dataclass(frozen=True, kw_only=True)
class SourceFacts:
    """What the log says about a source topic now.

    Attributes:
        topic: The topic.
        exists: It is there.
        problem: Why it cannot be read; empty if it can.
        cure: What to do about that; empty if that is not known.
        records: Records that can be read, from the topic and from the service's archive of it.
        archived: How many of these only the archive has.
        kept: Further records that compaction has removed and the archive has; a step reads them that needs every one.
        missing: Records that retention has removed and no archive has.
        start: The first offset that can be read, by partition.
        end: The offset that the next record will get, by partition.
        compacted: The topic keeps only the last record of each key.
        superseded: Records that compaction has removed and no archive has; None where the log cannot tell.
        stored: The active generation holds the latest value of each key, which can stand in for missing records.
        id: Of this topic alone: one that is deleted and created again gets a different one; empty if it is not known.
    """

    topic: str
    exists: bool = True
    problem: str = ""
    cure: str = ""
    records: int = 0
    archived: int = 0
    kept: int = 0
    missing: int = 0
    start: Offsets = field(default_factory=dict)
    end: Offsets = field(default_factory=dict)
    compacted: bool = False
    superseded: int | None = None
    stored: bool = False
    id: str = ""


@dataclass(frozen=True)
class Mismatch:
    """What a sample of a generation's inputs gives differently today.

    Attributes:
        what: In words.
        step: Name of the first step that differs.
        location: The user's file and line.
        libraries: The libraries have changed, which explains it.
    """

    what: str
    step: str
    location: str = ""
    libraries: bool = False


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """One generation of an output.

    Attributes:
        print: What it is.
        generation: Its number.
        shards: Into how many shards its keys are divided.
        end: Where it stands in its sources, by topic.
        rate: Records a second of its recalculation; None if it had none.
        resumable: Its state is whole, and its sources have all that follows `end`.
        migrated: It began with the converted state of another.
        topics: Ids of the topics that it reads and writes, by name, as they were when it was made; one that is not
            known is not there.
        begins: Where its output's topic began then, by partition.
        mismatch: What its sample gives differently with the code and libraries of today; None if nothing.
    """

    print: UnitPrint
    generation: int
    shards: int = 1
    end: dict[str, Offsets] = field(default_factory=dict)
    rate: float | None = None
    resumable: bool = True
    migrated: bool = False
    topics: dict[str, str] = field(default_factory=dict)
    begins: Offsets = field(default_factory=dict)
    mismatch: Mismatch | None = None


@dataclass(frozen=True, kw_only=True)
class OutputFacts:
    """What the registry and the log know of an output.

    Attributes:
        active: The generation that publishes.
        pending: One that is being built, or was prepared by a preview.
        retained: Retired ones whose state is kept, the newest first.
        keys: Live keys on the output's topic.
        published: A generation has published to it once, whatever is there now.
        topics: Ids of the output's topic and of its dead-letter topic, by name, as far as they exist.
        begins: Where the output's topic begins, by partition.
        warnings: What whoever deploys it should know.
    """

    active: Deployed | None = None
    pending: Deployed | None = None
    retained: tuple[Deployed, ...] = ()
    keys: int = 0
    published: bool = False
    topics: dict[str, str] = field(default_factory=dict)
    begins: Offsets = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the user asks for with this run.

    Attributes:
        recalculate: Outputs to rebuild although nothing has changed.
        accept_truncated: Topics whose lost past is accepted.
        keep_topic: Topics of retired outputs stay as they are.
        shards: Shards of an output; None keeps what it has.
        file: The service's file, for commands in hints.
    """

    recalculate: tuple[str, ...] = ()
    accept_truncated: tuple[str, ...] = ()
    keep_topic: bool = False
    shards: int | None = None
    file: str = "SERVICE.py"
