"""What passes through a log, whichever it is: topics, records, commits, cutovers and leases as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from everstate.log.digest import combined_digest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

#: Topic to partition to the next offset to read.
Vector: TypeAlias = dict[str, dict[int, int]]
#: Topic to partition to the range of offsets (first, one after the last).
Ranges: TypeAlias = dict[str, dict[int, tuple[int, int]]]
#: What a commit means: `open` publishes, `closed` belongs to a generation that is being built and writes to topics of
#: its own, `cutover` publishes the difference between two generations and makes the newer one the active one.
CommitKind: TypeAlias = Literal["open", "closed", "cutover"]

DAY_MS: Final = 86_400_000


@dataclass(frozen=True, kw_only=True)
class TopicConfig:
    """How a topic keeps its records.

    Attributes:
        partitions: Into how many partitions keys are spread.
        compact: Keep the last record of each key (a table's topic), instead of every record.
        retention_ms: Age by record timestamp after which records may go; None keeps them for ever.
        delete_retention_ms: How long a compacted topic keeps a tombstone after it was appended, so that consumers that
            are behind still learn of the deletion.
        append_time: The log's own time takes the place of that in the records, where a log can do so.
        replication: On how many brokers, where a log has several; None for what is usual. Like the next one, it says
            where records are and not what they are, so it does not count in comparisons.
        min_isr: How many of these must have a record before it counts.
    """

    partitions: int = 1
    compact: bool = False
    retention_ms: int | None = None
    delete_retention_ms: int = DAY_MS
    append_time: bool = False
    replication: int | None = field(default=None, compare=False)
    min_isr: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class TopicInfo:
    """A topic as it is now: `start` and `end` are the first offset and the next one to be written, by partition.

    Attributes:
        id: Of this topic alone, for ever: one that is deleted and created again gets a different one.
        records: How many there are; None where nobody counts them.
        size_bytes: How much room they take; None where that is not known.
    """

    name: str
    id: str
    config: TopicConfig
    start: dict[int, int]
    end: dict[int, int]
    records: int | None
    size_bytes: int | None

    @property
    def most_records(self) -> int:
        """How many records there can be at most: where they are not counted, offsets may have gaps."""
        if self.records is not None:
            return self.records
        return sum(end - self.start[partition] for partition, end in self.end.items())


@dataclass(frozen=True)
class Record:
    """One record, for code that looks at single ones (the command line, tests)."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    ts: int
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True)
class Split:
    """A contiguous range of one partition that one task reads.

    Attributes:
        location: Where the bytes are, in the log's own notation. A split is valid for as long as its records are:
            compaction may move them, reading then finds them again.
    """

    topic: str
    partition: int
    start: int
    end: int
    location: str


@dataclass(frozen=True)
class Staged:
    """Records that are stored durably but are not part of their topic until a commit names them.

    Attributes:
        digest: A digest of keys and values that does not depend on the order of the rows; see `combined_digest`.
        location: Where the bytes are, in the log's own notation.
    """

    topic: str
    partition: int
    rows: int
    digest: str
    location: str


@dataclass(frozen=True)
class Batch:
    """Which micro-batch of a generation it is.

    Attributes:
        query_id: Of the checkpoint that it belongs to: two queries of one process may not have the same.
        batch_id: Its number there; -1 for what stands before the first.
        start: Where in its sources it begins; the end of the batch before.
        end: Where it ends.
        times: The stream time of each partition then, by topic, where a step waits for it; -1 for none.
    """

    query_id: str
    batch_id: int
    start: Vector
    end: Vector
    times: Vector = field(default_factory=dict, compare=False)


@dataclass(frozen=True, kw_only=True)
class Commit:
    """The identity of one micro-batch of one output.

    Attributes:
        generation: The version of the output that made the batch.
        query_id: Spark's id of the query; another one means another checkpoint.
        start: Where in its sources the batch begins; the end of the batch before.
        end: Where it ends.
        digest: Of all that the batch publishes, from `combined_digest`.
        token: Of the lease under which it is published.
        lease: Name of that lease; empty for the service's own name.
        kind: What it means; see `CommitKind`.
        ordered: Whether the output's results depend on where the batch ends, so that `order` must know of it.
        times: As in `Batch`.
        seen: How far it has looked in topics to which it writes itself: of a key that has got a record since, nothing
            is published. The digest is that of all that would have been.
        committed_ms: When the log recorded it; known only for commits that come from the log.
    """

    service: str
    output: str
    generation: str
    query_id: str
    batch_id: int
    start: Vector
    end: Vector
    digest: str
    token: int
    lease: str = ""
    kind: CommitKind = "open"
    ordered: bool = True
    times: Vector = field(default_factory=dict, compare=False)
    seen: Vector = field(default_factory=dict, compare=False)
    committed_ms: int | None = field(default=None, compare=False)

    @classmethod
    def of(
        cls,
        batch: Batch,
        staged: Sequence[Staged],
        lease: Lease,
        *,
        service: str,
        output: str,
        generation: str,
        kind: CommitKind,
        ordered: bool,
    ) -> Commit:
        """What is committed when a batch publishes.

        Args:
            batch: The batch.
            staged: What it publishes.
            lease: Under which.
            service: Whose batch it is.
            output: Of which output.
            generation: Of which version of it.
            kind: What it means.
            ordered: Whether the output's results depend on where the batch ends.
        """
        return cls(
            service=service,
            output=output,
            generation=generation,
            query_id=batch.query_id,
            batch_id=batch.batch_id,
            start=batch.start,
            end=batch.end,
            digest=combined_digest(staged),
            token=lease.token,
            lease=lease.name,
            kind=kind,
            ordered=ordered,
            times=batch.times,
        )

    def may_be_overtaken(self, staged: Sequence[Staged]) -> bool:
        """Whether what has come since it looked may concern what it publishes."""
        return bool(self.seen) and any(part.rows for part in staged)

    def having_seen(self, topics: Sequence[str]) -> Commit:
        """The same, where it says something of records in these of its sources: it has looked as far as it ends."""
        return replace(self, seen={topic: self.end.get(topic, {}) for topic in topics})

    @property
    def batch(self) -> Batch:
        """Which batch it is."""
        return Batch(self.query_id, self.batch_id, self.start, self.end, self.times)

    @property
    def lease_name(self) -> str:
        """The name of the lease that must be held."""
        return self.lease or self.service


@dataclass(frozen=True)
class CommitResult:
    """What a commit did.

    Attributes:
        status: `committed`, or `skipped` (the log had exactly this batch), or `corrected` (it had the batch with other
            content, and the difference was published).
        offsets: What the batch occupies now; after a correction, only what the correction added. None where the log
            is not told.
        buried: So many keys got a value at the very moment of their removal, where a log cannot prevent that.
        left_out: So many records were not published on the output's topic, since others have come for their keys.
    """

    status: Literal["committed", "skipped", "corrected"]
    offsets: Ranges | None
    left_out: int = 0
    buried: int = 0

    def counted(self, counts: Mapping[str, int]) -> dict[str, int]:
        """What a batch has counted, less the removals that were left out.

        Example:
            >>> CommitResult("committed", {}, left_out=2).counted({"removed": 5})
            {'removed': 3, 'overtaken': 2, 'buried': 0}
        """
        if not self.left_out and not self.buried:
            return dict(counts)
        removed = counts.get("removed", 0) - self.left_out
        return {**counts, "removed": removed, "overtaken": self.left_out, "buried": self.buried}


@dataclass(frozen=True, eq=False)
class Copy:
    """What a generation that is replaced keeps.

    Attributes:
        original: The topic that is kept as it is before the cutover.
        table: The last record of each of its keys then, as `Log.latest` gives it; a log that can copy a topic as it is
            need not look at it.
    """

    original: str
    table: pl.DataFrame


@dataclass(frozen=True, kw_only=True)
class Cutover:
    """One generation of an output takes the place of another, in one step.

    Attributes:
        commit: Of kind `cutover`: the newer generation, with the last batch that its query has completed.
        leases: All of them must be held.
        expected: Where the topics ended to which the difference was made; if they have grown, nothing happens.
        documents: The service's documents that change with it.
        copies: Name of a new topic to what it keeps.
        drops: Topics that are no longer needed.
    """

    commit: Commit
    leases: tuple[Lease, ...]
    expected: Vector
    documents: Mapping[str, str | None] = field(default_factory=dict)
    copies: Mapping[str, Copy] = field(default_factory=dict)
    drops: tuple[str, ...] = ()


@dataclass(frozen=True)
class Holder:
    """A process, so that another one can tell whether it still lives.

    Attributes:
        host: Where it runs.
        pid: Its number there.
        started: When it was started, in seconds since 1970: numbers are used again, so the number alone says little.
    """

    host: str
    pid: int
    started: float

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


@dataclass(frozen=True)
class Lease:
    """The right to publish under a name. Each new lease of a name has a higher token; lower ones are refused."""

    name: str
    token: int
    holder: Holder
