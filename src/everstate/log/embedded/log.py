"""The embedded log as a `Log`: each operation in one or two lines, the work is in the modules beside."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from everstate.errors import LogError
from everstate.errors.exhaustion import naming
from everstate.log import leasing
from everstate.log.arrival import completed
from everstate.log.crash import crash_point
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
from everstate.log.embedded import commits, cutovers, documents, order_log, publishing, reading
from everstate.log.embedded import leases as lease_rows
from everstate.log.embedded.arrival import ManifestArrivals
from everstate.log.embedded.manifest import catalogue
from everstate.log.embedded.segments import APPENDED, Place
from everstate.log.embedded.store import Clock, Store, wall_clock
from everstate.log.embedded.upkeep import compaction, garbage, tending
from everstate.log.records import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from everstate.log.stops import Stops


class EmbeddedLog:
    """Topics in a folder, for any number of processes on one machine.

    Args:
        path: The folder; it is created if it is not there.
        clock: Gives the time in milliseconds; tests set their own.
        trusted: Another process has just looked whether the manifest is whole.

    Example:
        >>> import tempfile
        >>> import polars as pl
        >>> from everstate.log import TopicConfig
        >>> log = EmbeddedLog(tempfile.mkdtemp())
        >>> log.create_topic("orders", TopicConfig(partitions=2))
        >>> log.append("orders", pl.DataFrame({"key": [b"o1"], "value": [b"12"], "ts": [0]}))
        >>> log.latest("orders")["value"].to_list()
        [b'12']
    """

    def __init__(self, path: Path | str, *, clock: Clock = wall_clock, trusted: bool = False) -> None:
        self._store = Store(Path(path).absolute(), clock, trusted)
        self._tender = tending.Tender(self._store)

    def __reduce__(self) -> tuple[Any, ...]:
        # A connection cannot travel to another process, the folder's name can.
        return (_reopened, (str(self.path),))

    def __repr__(self) -> str:
        return f"EmbeddedLog({str(self.path)!r})"

    @property
    def id(self) -> str | None:
        """What state remembers the log by; None as long as it is not there."""
        with self._store.manifest.reading() as database:
            row = database.execute("SELECT * FROM log").fetchone()
        return None if row is None else str(row["identity"])

    @property
    def path(self) -> Path:
        """The log's folder."""
        return self._store.root

    @property
    def url(self) -> str:
        """What `open_log` needs to open this log again in another process."""
        return str(self.path)

    def close(self) -> None:
        """Finish what tends the topics and close the manifest's connections; a later call opens new ones."""
        self._tender.finish()
        self._store.manifest.close()

    def create_topic(self, name: str, config: TopicConfig | None = None, *, exist_ok: bool = False) -> None:
        """Create a topic; with `exist_ok`, one that is there keeps its own configuration."""
        with self._store.manifest.writing() as database:
            catalogue.create(database, name, config or TopicConfig(), exist_ok=exist_ok, now_ms=self._store.clock())

    def delete_topic(self, name: str, *, only: str | None = None) -> None:
        """Delete a topic with all its records; with `only`, the one that has this id, or none.

        Raises:
            LogError: If the topic is gone, and files of it are not.
        """
        with self._store.manifest.writing() as database:
            if only not in (None, catalogue.topic_named(database, name).identity):
                return
            files = catalogue.delete(database, name)
        crash_point("log.delete.after_transaction")
        try:
            garbage.collect(self._store)
        except OSError as error:
            left = [self.path / file for file in files if (self.path / file).exists()]
            if left:
                raise _left_over(name, left, error) from error

    def topics(self, *, internal: bool = False) -> list[str]:
        """The names of all topics, sorted; those that Everstate keeps for itself are left out, or are all."""
        with self._store.manifest.reading() as database:
            return catalogue.names(database, internal=internal)

    def has_topic(self, name: str) -> bool:
        """Whether there is such a topic."""
        with self._store.manifest.reading() as database:
            return catalogue.exists(database, name)

    def describe(self, name: str) -> TopicInfo:
        """Configuration, offsets and size of a topic."""
        with self._store.manifest.reading() as database:
            return catalogue.describe(database, name)

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        """The ids of topics by name."""
        with self._store.manifest.reading() as database:
            return {name: catalogue.topic_named(database, name).identity for name in topics}

    def append(self, topic: str, frame: pl.DataFrame) -> None:
        """Append records, all or none of them; durable when this returns."""
        with naming(f"records of topic {topic!r} cannot be written below {self.path}"):
            publishing.append(self._store, topic, frame)
        self._tender.appended(topic)

    def begin_offsets(self, topics: Sequence[str]) -> Vector:
        """The first offset of every partition."""
        with self._store.manifest.reading() as database:
            return {name: catalogue.offsets(database, catalogue.topic_named(database, name))[0] for name in topics}

    def end_offsets(self, topics: Sequence[str]) -> Vector:
        """The offset of every partition that the next record will get; one consistent state of all topics."""
        with self._store.manifest.reading() as database:
            return {name: catalogue.offsets(database, catalogue.topic_named(database, name))[1] for name in topics}

    def splits(self, topic: str, partition: int, start: int, end: int, *, max_records: int) -> list[Split]:
        """Cut a range of offsets into parts of at most so many records, in order."""
        return reading.splits(self._store, Place(topic, partition), start, end, max_records=max_records)

    def read_split(self, split: Split) -> pl.DataFrame:
        """The records of a split, in order."""
        return reading.read_split(self._store, split)

    def read(
        self, topic: str, partition: int, start: int, *, limit: int | None = None, appended: bool = False
    ) -> pl.DataFrame:
        """The records of a partition from an offset on, in order; if asked for, with the time they were appended."""
        columns = [*SCHEMA, APPENDED] if appended else None
        return reading.read(self._store, Place(topic, partition), start, limit=limit, columns=columns)

    def latest(self, topic: str) -> pl.DataFrame:
        """The last record of every key, without tombstones."""
        return reading.latest(self._store, topic)

    def compact(self, topic: str) -> None:
        """Drop what is superfluous, merge small files, and delete files that nobody needs."""
        with naming(f"topic {topic!r} cannot be compacted below {self.path}"):
            compaction.compact(self._store, topic)

    def maintain(self, topic: str) -> bool:
        """Compact or merge if it is worth it, and say so."""
        with naming(f"topic {topic!r} cannot be compacted below {self.path}"):
            return compaction.maintain(self._store, topic)

    def tombstones_dropped(self, positions: Vector, *, since_ms: int) -> Vector:
        """Where a consumer at these positions may have missed deletions."""
        with self._store.manifest.reading() as database:
            return compaction.tombstones_dropped(database, positions, since_ms=since_ms)

    def stage(self, topic: str, partition: int, frame: pl.DataFrame) -> Staged:
        """Store records durably without making them visible."""
        with naming(f"records of topic {topic!r} cannot be written below {self.path}"):
            return publishing.stage(self._store, topic, partition, frame)

    def stage_all(self, topic: str, frame: pl.DataFrame) -> list[Staged]:
        """Store records of any partitions in one file, without making them visible."""
        with naming(f"records of topic {topic!r} cannot be written below {self.path}"):
            return publishing.stage_all(self._store, topic, frame)

    def abort(self, staged: Sequence[Staged]) -> None:
        """Give up staged records; those that a commit has named meanwhile stay."""
        publishing.abort(self._store, staged)

    def commit(self, commit: Commit, staged: Sequence[Staged]) -> CommitResult:
        """Publish a micro-batch over all its topics, once."""
        return commits.commit(self._store, commit, staged)

    def last_commit(self, service: str, output: str, generation: str | None = None) -> Commit | None:
        """The last micro-batch that an output has published, or the last one of a generation, published or not."""
        with self._store.manifest.reading() as database:
            return commits.last_commit(database, service, output, generation)

    def cutover(self, cutover: Cutover, staged: Sequence[Staged]) -> CommitResult | None:
        """Publish the difference between two generations, once; None if a topic has grown since it was made."""
        return cutovers.cutover(self._store, cutover, staged)

    def unfinished_cutover(self, service: str, output: str) -> str | None:
        """None: a cutover is one step here."""
        del service, output
        return None

    def order(self, service: str, output: str, topics: Sequence[str]) -> Stops:
        """The order log of an output: where its micro-batches ended in these topics, the oldest first."""
        with self._store.manifest.reading() as database:
            stops = order_log.read(database, service, output)
        return completed(stops, topics, ManifestArrivals(self._store))

    def acquire(self, name: str, *, holder: Holder | None = None, take_over: bool = False) -> Lease:
        """Take a lease; a dead holder's is taken at once, a live one's only with `take_over`."""
        asking, now_ms = holder or leasing.this_process(), self._store.clock()
        watch = None if take_over else lease_rows.watched(self._store.manifest, name, asking, now_ms)
        with self._store.manifest.writing() as database:
            now_ms = self._store.clock()
            return lease_rows.acquire(database, name, asking, take_over=take_over, now_ms=now_ms, watch=watch)

    def holder(self, name: str) -> Holder | None:
        """Who holds a lease and lives; None if nobody does."""
        with self._store.manifest.reading() as database:
            return lease_rows.holder(database, name, now_ms=self._store.clock())

    def tenure(self, name: str) -> leasing.Tenure | None:
        """What is known of a lease; None if nobody had it."""
        with self._store.manifest.reading() as database:
            return lease_rows.tenure_of(database, name)

    def lives(self, holder: Holder) -> bool:
        """Whether a process lives, as far as this one can tell."""
        return leasing.runs_here(holder)

    def heartbeat(self, lease: Lease) -> None:
        """Say that the holder lives."""
        with self._store.manifest.writing() as database:
            lease_rows.heartbeat(database, lease, now_ms=self._store.clock())

    def release(self, lease: Lease) -> None:
        """Give a lease back."""
        with self._store.manifest.writing() as database:
            lease_rows.release(database, lease)

    def get_meta(self, service: str, name: str) -> str | None:
        """A small document that a service keeps beside its topics."""
        with self._store.manifest.reading() as database:
            return documents.read_one(database, service, name)

    def set_meta(self, service: str, name: str, value: str | None, *, leases: Sequence[Lease] = ()) -> None:
        """Store such a document, if these leases are held; None deletes it."""
        with self._store.manifest.writing() as database:
            for lease in leases:
                lease_rows.check(database, lease.name, lease.token)
            documents.write(database, service, {name: value})

    def metas(self, service: str, prefix: str = "") -> dict[str, str]:
        """All documents of a service whose names begin like this, by name."""
        with self._store.manifest.reading() as database:
            return documents.read(database, service, prefix)

    def services(self) -> list[str]:
        """The names of all services that keep documents here, sorted."""
        with self._store.manifest.reading() as database:
            return documents.services(database)

    def forget(self, service: str) -> None:
        """Drop a service's commits and documents, so that it can start from scratch."""
        with self._store.manifest.writing() as database:
            commits.forget(database, service)
            documents.forget(database, service)


def _reopened(path: str) -> EmbeddedLog:
    return EmbeddedLog(path, trusted=True)


def _left_over(topic: str, left: Sequence[Path], error: OSError) -> LogError:
    """What is said if a topic is gone, and some of its files are not."""
    files = "1 file" if len(left) == 1 else f"{len(left)} files"
    return LogError(
        f"topic {topic!r} is deleted, but {files} of it could not be removed: {left[0]}: {error.strerror or error}",
        hint=f"They are no longer read. Make sure that {left[0].parent} can be written to: what is left there goes "
        "when the log is next tidied up, which any service that runs on it does.",
    )
