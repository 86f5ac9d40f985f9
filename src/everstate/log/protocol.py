"""What a log can do, whichever it is: the words, the descriptions and the operations.

The embedded log and Kafka stand behind the same protocol and pass the same contract suite. Records travel as Polars
frames, never one by one; see `everstate.log.records` for their columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from everstate.log.stops import Stops

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
    """

    partitions: int = 1
    compact: bool = False
    retention_ms: int | None = None
    delete_retention_ms: int = DAY_MS


@dataclass(frozen=True)
class TopicInfo:
    """A topic as it is now: `start` and `end` are the first offset and the next one to be written, by partition.

    Attributes:
        id: Of this topic alone, for ever: one that is deleted and created again has another.
    """

    name: str
    id: str
    config: TopicConfig
    start: dict[int, int]
    end: dict[int, int]
    records: int
    size_bytes: int


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
        ordered: Whether the output's results depend on the order of arrival, so that `order` must know of the batch.
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
    committed_ms: int | None = field(default=None, compare=False)

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
        offsets: What the batch occupies now; after a correction, only what the correction added.
    """

    status: Literal["committed", "skipped", "corrected"]
    offsets: Ranges


@dataclass(frozen=True, kw_only=True)
class Cutover:
    """One generation of an output takes the place of another, in one step.

    Attributes:
        commit: Of kind `cutover`: the newer generation, with the last batch that its query has completed.
        leases: All of them must be held.
        expected: Where the topics ended to which the difference was made; if they have grown, nothing happens.
        documents: The service's documents that change with it.
        copies: Name of a new topic to the topic that it keeps as that is before the cutover.
        drops: Topics that are no longer needed.
    """

    commit: Commit
    leases: tuple[Lease, ...]
    expected: Vector
    documents: Mapping[str, str | None] = field(default_factory=dict)
    copies: Mapping[str, str] = field(default_factory=dict)
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


@runtime_checkable
class Log(Protocol):
    """Topics, and atomic commits to them."""

    @property
    def id(self) -> str | None:
        """What state remembers the log by: of this log alone, for ever. None as long as it has not been created."""
        ...

    @property
    def url(self) -> str:
        """What `open_log` needs to open this log again in another process."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...

    def create_topic(self, name: str, config: TopicConfig | None = None, *, exist_ok: bool = False) -> None:
        """Create a topic; with `exist_ok`, one that is there keeps its own configuration."""
        ...

    def delete_topic(self, name: str) -> None:
        """Delete a topic with all its records."""
        ...

    def topics(self) -> list[str]:
        """The names of all topics, sorted; those that Everstate keeps for itself are left out."""
        ...

    def has_topic(self, name: str) -> bool:
        """Whether there is such a topic."""
        ...

    def describe(self, name: str) -> TopicInfo:
        """Configuration, offsets and size of a topic."""
        ...

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        """The ids of topics by name (see `TopicInfo`), cheap enough to be asked for with every batch."""
        ...

    def append(self, topic: str, frame: pl.DataFrame) -> None:
        """Append records, all or none of them. Partitions by key as Kafka does unless the frame has `partition`."""
        ...

    def begin_offsets(self, topics: Sequence[str]) -> Vector:
        """The first offset of every partition."""
        ...

    def end_offsets(self, topics: Sequence[str]) -> Vector:
        """The offset of every partition that the next record will get."""
        ...

    def splits(self, topic: str, partition: int, start: int, end: int, *, max_records: int) -> list[Split]:
        """Cut a range of offsets into parts of at most so many records, in order."""
        ...

    def read_split(self, split: Split) -> pl.DataFrame:
        """The records of a split, in order."""
        ...

    def read(
        self, topic: str, partition: int, start: int, *, limit: int | None = None, appended: bool = False
    ) -> pl.DataFrame:
        """The records of a partition from an offset on, in order.

        Args:
            topic: The topic.
            partition: Of which partition.
            start: The first offset.
            limit: The most records; None for all that are there.
            appended: Add the column `appended`: when the log got each record, null where it does not know.
        """
        ...

    def latest(self, topic: str) -> pl.DataFrame:
        """The last record of every key, without tombstones: the table that the topic holds now."""
        ...

    def compact(self, topic: str) -> None:
        """Drop what retention and, on a compacted topic, newer records of the same key have made superfluous."""
        ...

    def maintain(self, topic: str) -> bool:
        """Compact if it is worth it, and say so; cheap enough to be called after every batch."""
        ...

    def tombstones_dropped(self, positions: Vector, *, since_ms: int) -> Vector:
        """Where a consumer at these positions may have missed deletions.

        A consumer that took longer than the topic's `delete_retention_ms` cannot see tombstones that were compacted
        away; it has to compare what it has with `latest`.

        Args:
            positions: Where the consumer goes on.
            since_ms: When it read up to there.

        Returns:
            The partitions concerned, each with the offset after the last tombstone that is gone; empty if all is well.
        """
        ...

    def stage(self, topic: str, partition: int, frame: pl.DataFrame) -> Staged:
        """Store records durably without making them visible; any process may do it."""
        ...

    def stage_all(self, topic: str, frame: pl.DataFrame) -> list[Staged]:
        """Like `stage`, spreading the rows over partitions as `append` does, for little more than the cost of one."""
        ...

    def abort(self, staged: Sequence[Staged]) -> None:
        """Give up staged records; those that a commit has named meanwhile stay."""
        ...

    def commit(self, commit: Commit, staged: Sequence[Staged]) -> CommitResult:
        """Publish a micro-batch over all its topics, once.

        Raises:
            FencedError: If the lease belongs to another process by now.
            CommitConflictError: If the batch does not follow on the last one.
        """
        ...

    def last_commit(self, service: str, output: str, generation: str | None = None) -> Commit | None:
        """The last micro-batch that an output has published, or the last one of a generation, published or not."""
        ...

    def cutover(self, cutover: Cutover, staged: Sequence[Staged]) -> CommitResult | None:
        """Publish the difference between two generations, once.

        Returns:
            What was published; None, and nothing was done, if a topic has grown since the difference was made.

        Raises:
            FencedError: If one of the leases belongs to another process by now.
        """
        ...

    def order(self, service: str, output: str, topics: Sequence[str]) -> Stops:
        """The order log of an output: where its micro-batches ended in these topics, the oldest first.

        Only batches that were committed as `ordered` are in it. A topic that the output did not read then had got as
        far as it was when the batch was committed.
        """
        ...

    def acquire(self, name: str, *, holder: Holder | None = None, take_over: bool = False) -> Lease:
        """Take a lease; a dead holder's is taken at once, a live one's only with `take_over`.

        Raises:
            LeaseHeldError: If the holder lives.
        """
        ...

    def holder(self, name: str) -> Holder | None:
        """Who holds a lease and lives; None if nobody does."""
        ...

    def lives(self, holder: Holder) -> bool:
        """Whether a process lives, as far as this one can tell; of one on another machine it cannot."""
        ...

    def heartbeat(self, lease: Lease) -> None:
        """Say that the holder lives.

        Raises:
            FencedError: If the lease belongs to another process by now.
        """
        ...

    def release(self, lease: Lease) -> None:
        """Give a lease back; without effect if it is no longer held."""
        ...

    def get_meta(self, service: str, name: str) -> str | None:
        """A small document that a service keeps beside its topics."""
        ...

    def set_meta(self, service: str, name: str, value: str | None, *, leases: Sequence[Lease] = ()) -> None:
        """Store such a document, if these leases are held; None deletes it.

        Raises:
            FencedError: If one of the leases belongs to another process by now.
        """
        ...

    def metas(self, service: str, prefix: str = "") -> dict[str, str]:
        """All documents of a service whose names begin like this, by name."""
        ...

    def forget(self, service: str) -> None:
        """Drop a service's commits and documents, so that it can start anew. Topics and leases stay as they are."""
        ...
