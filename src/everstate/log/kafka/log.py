"""Apache Kafka as a `Log`: each operation in a few lines, the work is in the modules beside."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from everstate.errors import UnsupportedError
from everstate.log import leasing, records
from everstate.log.arrival import completed
from everstate.log.checks import check_keys, unknown_partition
from everstate.log.crash import crash_point
from everstate.log.descriptions import TopicConfig
from everstate.log.kafka import markers, staging
from everstate.log.kafka.arrival import RecordArrivals
from everstate.log.kafka.clients import Clients
from everstate.log.kafka.commits import Commits
from everstate.log.kafka.cutovers import cutover, pending_key
from everstate.log.kafka.failures import naming
from everstate.log.kafka.private import PrivateTables
from everstate.log.kafka.reading import Reader
from everstate.log.kafka.registry import Registry, service_of
from everstate.log.kafka.settings import SCHEME, ClientSettings, check_servers
from everstate.log.kafka.shares import Shares
from everstate.log.kafka.topics import Topics
from everstate.log.kafka.upkeep import tombstones_dropped
from everstate.log.kafka.writer import Writer
from everstate.log.records import SCHEMA
from everstate.log.timing import wall_clock
from everstate.schema.topic_names import is_internal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

    from everstate.log.descriptions import (
        Commit,
        CommitResult,
        Cutover,
        Holder,
        Lease,
        Split,
        Staged,
        TopicInfo,
        Vector,
    )
    from everstate.log.kafka.shares import Places, Share
    from everstate.log.kafka.writer import Transaction
    from everstate.log.stops import Stops


class KafkaLog:
    """Topics of a Kafka cluster.

    Args:
        servers: Hosts and ports of brokers, with commas between them.
        settings: Security and the like; by default what the environment says.
        staging: A folder for records on their way and for private tables, which all processes of a service see.
        trusted: Another process has reached the brokers at this address: they are waited for.
    """

    def __init__(
        self,
        servers: str,
        *,
        settings: ClientSettings | None = None,
        staging: Path | str | None = None,
        trusted: bool = False,
    ) -> None:
        check_servers(servers)
        self._servers = servers
        self._settings = ClientSettings.from_environment() if settings is None else settings
        self._settings.require_use()
        self._staging = None if staging is None else Path(staging)
        self._clients = Clients(servers, self._settings, reached=trusted)
        self._topics = Topics(self._clients)
        self._reader = Reader(self._clients, self._topics)
        self._registry = Registry(self._clients, self._reader)
        self._private = PrivateTables(self._staging, self._registry)
        self._shares = Shares(self._registry)
        self._commits = Commits(self._registry, self._reader, self._private, self._shares)
        self._appender = Writer(self._clients, self._topics, f"es/append/{uuid4().hex}", lambda _: None, lambda _: None)

    def __reduce__(self) -> tuple[Any, ...]:
        # Connections cannot travel to another process, addresses can.
        return (_reopened, (self._servers, self._settings, self._staging))

    def __repr__(self) -> str:
        return f"KafkaLog({self.url!r})"

    @property
    def id(self) -> str | None:
        """The cluster's own id."""
        with naming("the cluster cannot be asked for its id"):
            return str(self._clients.admin().list_topics(topic="__everstate", timeout=30).cluster_id)

    @property
    def url(self) -> str:
        """The address, without anything that is secret."""
        return f"{SCHEME}{self._servers}"

    @property
    def staging(self) -> Path | None:
        """The folder for records on their way."""
        return self._staging

    @property
    def settings(self) -> ClientSettings:
        """What its clients are told."""
        return self._settings

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        self._appender.drop()
        self._registry.close()
        self._clients.close()

    # -- topics -----------------------------------------------------------------------------------------------------

    def create_topic(self, name: str, config: TopicConfig | None = None, *, exist_ok: bool = False) -> None:
        """Create a topic; with `exist_ok`, one that is there keeps its own configuration."""
        where = self._private if is_internal(name) else self._topics
        where.create(name, config or TopicConfig(), exist_ok=exist_ok)

    def delete_topic(self, name: str, *, only: str | None = None) -> None:
        """Delete a topic with all its records; with `only`, the one that has this id, or none.

        The broker deletes by name: one that is created in its place at that very moment goes, too.
        """
        if only not in (None, self.topic_ids([name])[name]):
            return
        (self._private if is_internal(name) else self._topics).delete(name)
        crash_point("log.delete.after_transaction")

    def topics(self, *, internal: bool = False) -> list[str]:
        """The names of all topics, sorted; those that Everstate keeps for itself are left out, or are all."""
        return self._private.names() if internal else self._topics.names()

    def has_topic(self, name: str) -> bool:
        """Whether there is such a topic."""
        return self._private.find(name) is not None if is_internal(name) else self._topics.exists(name)

    def describe(self, name: str) -> TopicInfo:
        """Configuration and offsets of a topic."""
        return self._private.describe(name) if is_internal(name) else self._topics.describe(name)

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        """The ids of topics by name."""
        found = self._topics.ids([name for name in topics if not is_internal(name)])
        return {name: found[name] if name in found else self._private.required(name).id for name in topics}

    def begin_offsets(self, topics: Sequence[str]) -> Vector:
        """The first offset of every partition."""
        found = self._topics.begins([name for name in topics if not is_internal(name)])
        return {name: found[name] if name in found else self._private.describe(name).start for name in topics}

    def end_offsets(self, topics: Sequence[str]) -> Vector:
        """The offset of every partition up to which all is decided; an open transaction of anybody's holds it back."""
        found = self._topics.ends([name for name in topics if not is_internal(name)])
        return {name: found[name] if name in found else self._private.required(name).ends() for name in topics}

    def held_back(self, topics: Sequence[str]) -> dict[tuple[str, int], int]:
        """The partitions where an open transaction hides records, each with the offset of the first."""
        written = self._topics.ends(topics, committed=False)
        ends = self._topics.ends(topics)
        return {
            (topic, number): end
            for topic, numbers in ends.items()
            for number, end in numbers.items()
            if end < written[topic].get(number, 0)
        }

    # -- records ----------------------------------------------------------------------------------------------------

    def append(self, topic: str, frame: pl.DataFrame) -> None:
        """Append records in one transaction."""
        groups = self._spread(topic, frame)
        crash_point("log.append.before_transaction")

        def fill(transaction: Transaction) -> None:
            for partition, content in groups:
                transaction.rows(topic, partition, content)
            crash_point("log.append.inside_transaction")

        self._appender.run((), lambda _fresh: (None, fill))
        crash_point("log.append.after_transaction")

    def _spread(self, topic: str, frame: pl.DataFrame) -> list[tuple[int, pl.DataFrame]]:
        """Records as they are written, by the partition to which they go."""
        config = self._config(topic)
        content = records.content(frame, now_ms=wall_clock())
        check_keys(topic, config, content)
        if not content.height:
            return []
        chosen = content.with_columns(frame["partition"]) if "partition" in frame.columns else content
        # Where a round goes on is not known to others; the time will do.
        turn = sum(self.end_offsets([topic])[topic].values()) if content["key"].null_count() else 0
        partitions = records.partitions_for(chosen, config.partitions, turn=turn)
        groups = content.with_columns(partitions.alias("partition")).partition_by(
            "partition", maintain_order=True, include_key=False, as_dict=True
        )
        return [(int(place[0]), group) for place, group in sorted(groups.items())]

    def _config(self, topic: str) -> TopicConfig:
        if is_internal(topic):
            return self._private.required(topic).config
        return self._topics.config(topic)

    def splits(self, topic: str, partition: int, start: int, end: int, *, max_records: int) -> list[Split]:
        """Cut a range of offsets into parts of at most so many records, in order."""
        where = self._private if is_internal(topic) else self._reader
        return where.splits(topic, partition, start, end, max_records=max_records)

    def read_split(self, split: Split) -> pl.DataFrame:
        """The records of a split, in order."""
        return (self._private if is_internal(split.topic) else self._reader).read_split(split)

    def read(
        self, topic: str, partition: int, start: int, *, limit: int | None = None, appended: bool = False
    ) -> pl.DataFrame:
        """The records of a partition from an offset on, in order; if asked for, with the time they were appended."""
        where = self._private if is_internal(topic) else self._reader
        found = where.read(topic, partition, start, limit=limit)
        return found if appended else found.select(*SCHEMA)

    def latest(self, topic: str) -> pl.DataFrame:
        """The last record of every key, without tombstones."""
        return (self._private if is_internal(topic) else self._reader).latest(topic)

    def compact(self, topic: str) -> None:
        """Refused: Kafka compacts by itself.

        Raises:
            UnsupportedError: With the settings that decide when.
        """
        self.describe(topic)
        raise UnsupportedError(
            f"topic {topic!r} is compacted by Kafka, not by Everstate",
            hint="When that happens is decided by its settings: min.cleanable.dirty.ratio, segment.ms, "
            "max.compaction.lag.ms (kafka-configs.sh --bootstrap-server HOST:PORT --alter --topic T --add-config ...).",
        )

    def maintain(self, topic: str) -> bool:
        """Nothing to do: Kafka looks after its topics."""
        self.topic_ids([topic])
        return False

    def tombstones_dropped(self, positions: Vector, *, since_ms: int) -> Vector:
        """Where a consumer at these positions may have missed deletions; Kafka does not say where it has."""
        return tombstones_dropped(self._topics, positions, since_ms=since_ms, now_ms=wall_clock())

    # -- commits ----------------------------------------------------------------------------------------------------

    def stage(self, topic: str, partition: int, frame: pl.DataFrame) -> Staged:
        """Write records to a file, for a commit."""
        config = self._config(topic)
        if not 0 <= partition < config.partitions:
            raise unknown_partition(topic, config, partition)
        content = records.content(frame, now_ms=wall_clock())
        check_keys(topic, config, content)
        return self._stage(topic, [(partition, content)])[0]

    def stage_all(self, topic: str, frame: pl.DataFrame) -> list[Staged]:
        """Write records of any partitions to one file, for a commit."""
        return self._stage(topic, self._spread(topic, frame))

    def _stage(self, topic: str, groups: Sequence[tuple[int, pl.DataFrame]]) -> list[Staged]:
        if not groups:
            return []
        if is_internal(topic):
            return self._private.stage(topic, groups)
        folder = staging.required(self._staging) / "staged"
        return staging.write(folder, topic, self._topics.id_of(topic), groups, durable=False)

    def abort(self, staged: Sequence[Staged]) -> None:
        """Delete staged files, unless a commit has named them."""
        self._commits.give_up(staged)

    def commit(self, commit: Commit, staged: Sequence[Staged]) -> CommitResult:
        """Publish a micro-batch over all its topics, once."""
        return self._commits.commit(commit, staged)

    def spread(self, publishers: int, run: Callable[[Sequence[Share]], Sequence[Places]]) -> None:
        """Have large batches sent by several publishers; see `everstate.log.abilities`."""
        self._shares.spread(publishers, run)

    def send(self, share: Share) -> Places:
        """Send the share of one publisher, once."""
        return self._shares.send(share)

    def last_commit(self, service: str, output: str, generation: str | None = None) -> Commit | None:
        """The last micro-batch that an output has published, or the last one of a generation, published or not."""
        found = markers.last_marker(self._registry.commits(service).read(), output, generation)
        return None if found is None else found.commit

    def cutover(self, cutover: Cutover, staged: Sequence[Staged]) -> CommitResult | None:
        """Publish the difference between two generations; None if a topic has grown since it was made."""
        return _cutover(self._commits, cutover, staged)

    def unfinished_cutover(self, service: str, output: str) -> str | None:
        """The generation whose cutover has begun and not ended."""
        found = self._registry.commits(service).read().get(pending_key(output))
        return None if found is None else markers.pending_generation(found)

    def order(self, service: str, output: str, topics: Sequence[str]) -> Stops:
        """The order log of an output: where its micro-batches ended in these topics, the oldest first."""
        stops = markers.stops(self._registry.commits(service).read(), output)
        return completed(stops, topics, RecordArrivals(self._reader))

    # -- leases and documents ---------------------------------------------------------------------------------------

    def acquire(self, name: str, *, holder: Holder | None = None, take_over: bool = False) -> Lease:
        """Take a lease; a dead holder's is taken at once, a live one's only with `take_over`."""
        lease = self._registry.acquire(name, holder or leasing.this_process(), take_over=take_over)
        if self._staging is not None:
            staging.sweep(self._staging / "staged", self._commits.unsent(service_of(name)))
            self._private.sweep()
        return lease

    def holder(self, name: str) -> Holder | None:
        """Who holds a lease and lives; None if nobody does."""
        return self._registry.holder(name, leasing.this_process())

    def tenure(self, name: str) -> leasing.Tenure | None:
        """What is known of a lease; None if nobody had it."""
        return self._registry.tenure(name)

    def lives(self, holder: Holder) -> bool:
        """Whether a process lives, as far as this one can tell."""
        return leasing.runs_here(holder)

    def heartbeat(self, lease: Lease) -> None:
        """Say that the holder lives."""
        self._registry.heartbeat(lease)

    def release(self, lease: Lease) -> None:
        """Give a lease back."""
        self._registry.release(lease)

    def get_meta(self, service: str, name: str) -> str | None:
        """A small document that a service keeps beside its topics."""
        return self._registry.documents(service, name).get(name)

    def set_meta(self, service: str, name: str, value: str | None, *, leases: Sequence[Lease] = ()) -> None:
        """Store such a document, if these leases are held; None deletes it."""
        self._registry.write_document(service, name, value, leases)

    def metas(self, service: str, prefix: str = "") -> dict[str, str]:
        """All documents of a service whose names begin like this, by name."""
        return self._registry.documents(service, prefix)

    def services(self) -> list[str]:
        """The names of all services that keep documents here, sorted."""
        return self._registry.services()

    def forget(self, service: str) -> None:
        """Drop a service's commits and documents, so that it can start over."""
        self._commits.forget(service)
        self._registry.forget(service)


_cutover = cutover


def _reopened(servers: str, settings: ClientSettings, folder: Path | None) -> KafkaLog:
    return KafkaLog(servers, settings=settings, staging=folder, trusted=True)
