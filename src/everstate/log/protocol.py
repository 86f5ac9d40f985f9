"""What a log can do, whichever it is: the operations on what `everstate.log.descriptions` describes.

Every log stands behind this protocol and passes the same contract suite. Records travel as Polars frames, never one by
one; see `everstate.log.records` for their columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from everstate.log.descriptions import (
        Commit,
        CommitResult,
        Cutover,
        Holder,
        Lease,
        Split,
        Staged,
        TopicConfig,
        TopicInfo,
        Vector,
    )
    from everstate.log.leasing import Tenure
    from everstate.log.stops import Stops


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

    def delete_topic(self, name: str, *, only: str | None = None) -> None:
        """Delete a topic with all its records; with `only`, the one that has this id, or none.

        Whoever has looked before knows the id: a topic that was created in its place since then stays.
        """
        ...

    def topics(self, *, internal: bool = False) -> list[str]:
        """The names of all topics, sorted; those that Everstate keeps for itself are left out, or are all."""
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

    def unfinished_cutover(self, service: str, output: str) -> str | None:
        """The generation whose cutover has begun and not ended: the topic is partly its own. None if there is none."""
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

    def tenure(self, name: str) -> Tenure | None:
        """What is known of a lease, also of one that was given back or whose holder has died; None if nobody had it."""
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

    def services(self) -> list[str]:
        """The names of all services that keep documents here, sorted."""
        ...

    def forget(self, service: str) -> None:
        """Drop a service's commits and documents, so that it can start from scratch. Topics and leases stay."""
        ...
