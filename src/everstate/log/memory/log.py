"""The log in memory as a `Log`: each operation in a few lines, the work is in the modules beside."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakValueDictionary

from everstate.errors import LogError, TopicRecreatedError
from everstate.log import leasing
from everstate.log.arrival import completed
from everstate.log.checks import check_split_size
from everstate.log.crash import Crash, crash_point
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
from everstate.log.memory import commits, publishing, reading, upkeep
from everstate.log.memory.store import State, Store
from everstate.log.timing import Clock, wall_clock
from everstate.schema.topic_names import is_internal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    import polars as pl

    from everstate.log.arrival import Appends
    from everstate.log.stops import Stops

SCHEME = "memory:"
_stores: WeakValueDictionary[str, Store] = WeakValueDictionary()


class MemoryLog:
    """Topics in memory, for one process and for simulations of several.

    Args:
        clock: Gives the time in milliseconds; tests set their own.

    Example:
        >>> import polars as pl
        >>> from everstate.log import TopicConfig
        >>> log = MemoryLog()
        >>> log.create_topic("orders", TopicConfig(partitions=2))
        >>> log.append("orders", pl.DataFrame({"key": [b"o1"], "value": [b"12"], "ts": [0]}))
        >>> log.latest("orders")["value"].to_list()
        [b'12']
    """

    def __init__(self, *, clock: Clock = wall_clock) -> None:
        self._begin(Store.empty(clock()), clock, None)

    def _begin(self, store: Store, clock: Clock, holder: Holder | None) -> None:
        self._store, self._clock, self._holder, self._ended = store, clock, holder, False
        _stores[store.name] = store

    @classmethod
    def opened(cls, name: str, *, clock: Clock = wall_clock) -> MemoryLog:
        """The log of this process that has that name.

        Raises:
            LogError: If there is none.
        """
        store = _stores.get(name)
        if store is None:
            raise LogError(
                f"there is no log {SCHEME}{name} in this process",
                hint="A log in memory is known only in the process that made it, and only as long as it is used there.",
            )
        return cls._of(store, clock, None)

    @classmethod
    def _of(cls, store: Store, clock: Clock, holder: Holder | None) -> Self:
        log = cls.__new__(cls)
        log._begin(store, clock, holder)  # noqa: SLF001 - its own class
        return log

    def __reduce__(self) -> tuple[Any, ...]:
        return (MemoryLog.opened, (self._store.name,))

    def __repr__(self) -> str:
        return f"MemoryLog({self.url!r})"

    def process(self, holder: Holder, *, clock: Clock | None = None) -> MemoryLog:
        """The same log as a process sees it that a simulation makes up; it runs until `end` is called."""
        self._store.running[holder] = True
        return self._of(self._store, clock or self._clock, holder)

    def end(self) -> None:
        """The process ends here and now: others find it dead, and all that it still tries raises `Crash`."""
        self._ended = True
        if self._holder is not None:
            self._store.running[self._holder] = False

    def copy(self) -> Self:
        """The same log at this moment, apart: what happens to one does not show in the other."""
        return self._of(Store(self._state, self._store.id, self._store.running), self._clock, self._holder)

    @property
    def _state(self) -> State:
        if self._ended:
            raise Crash("the process has ended")
        return self._store.state

    def _writing(self) -> AbstractContextManager[State]:
        if self._ended:
            raise Crash("the process has ended")
        return self._store.writing(self._clock())

    def _runs(self, holder: Holder) -> bool:
        known = self._store.running.get(holder)
        return leasing.runs_here(holder) if known is None else known

    def _myself(self) -> Holder:
        return self._holder or leasing.this_process()

    @property
    def id(self) -> str:
        """What state remembers the log by."""
        return self._store.id

    @property
    def url(self) -> str:
        """What `open_log` needs to open this log again, in this process."""
        return f"{SCHEME}{self._store.name}"

    def close(self) -> None:
        """Nothing has to be let go of; a later call finds everything as it was."""

    def create_topic(self, name: str, config: TopicConfig | None = None, *, exist_ok: bool = False) -> None:
        """Create a topic; with `exist_ok`, one that is there keeps its own configuration."""
        with self._writing() as state:
            state.create(name, config or TopicConfig(), exist_ok=exist_ok, now_ms=self._clock())

    def delete_topic(self, name: str, *, only: str | None = None) -> None:
        """Delete a topic with all its records; with `only`, the one that has this id, or none."""
        with self._writing() as state:
            if only not in (None, state.topic(name).id):
                return
            del state.topics[name]
        crash_point("log.delete.after_transaction")

    def topics(self, *, internal: bool = False) -> list[str]:
        """The names of all topics, sorted; those that Everstate keeps for itself are left out, or are all."""
        return sorted(name for name in self._state.topics if is_internal(name) is internal)

    def has_topic(self, name: str) -> bool:
        """Whether there is such a topic."""
        return name in self._state.topics

    def describe(self, name: str) -> TopicInfo:
        """Configuration, offsets and size of a topic."""
        topic = self._state.topic(name)
        return TopicInfo(
            name,
            topic.id,
            topic.config,
            topic.begins(),
            topic.ends(),
            sum(partition.records for partition in topic.partitions),
            sum(partition.size_bytes for partition in topic.partitions),
        )

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        """The ids of topics by name."""
        state = self._state
        return {name: state.topic(name).id for name in topics}

    def append(self, topic: str, frame: pl.DataFrame) -> None:
        """Append records, all or none of them."""
        now_ms = self._clock()
        crash_point("log.append.before_transaction")
        with self._writing() as state:
            found = state.topic(topic)
            publishing.extend(state, found, publishing.spread(found, frame, now_ms), now_ms=now_ms)
            upkeep.expire(state, topic, now_ms=now_ms)
            crash_point("log.append.inside_transaction")
        crash_point("log.append.after_transaction")

    def begin_offsets(self, topics: Sequence[str]) -> Vector:
        """The first offset of every partition."""
        state = self._state
        return {name: state.topic(name).begins() for name in topics}

    def end_offsets(self, topics: Sequence[str]) -> Vector:
        """The offset of every partition that the next record will get; one consistent state of all topics."""
        state = self._state
        return {name: state.topic(name).ends() for name in topics}

    def splits(self, topic: str, partition: int, start: int, end: int, *, max_records: int) -> list[Split]:
        """Cut a range of offsets into parts of at most so many records, in order."""
        check_split_size(max_records)
        return reading.splits(self._state.topic(topic), partition, start, end, max_records=max_records)

    def read_split(self, split: Split) -> pl.DataFrame:
        """The records of a split, in order."""
        topic = self._state.topic(split.topic)
        if topic.id != split.location:
            raise TopicRecreatedError(split.topic)
        return reading.read(topic, split.partition, split.start, split.end)

    def read(
        self, topic: str, partition: int, start: int, *, limit: int | None = None, appended: bool = False
    ) -> pl.DataFrame:
        """The records of a partition from an offset on, in order; if asked for, with the time they were appended."""
        return reading.read(self._state.topic(topic), partition, start, limit=limit, appended=appended)

    def latest(self, topic: str) -> pl.DataFrame:
        """The last record of every key, without tombstones."""
        return reading.latest(self._state.topic(topic))

    def compact(self, topic: str) -> None:
        """Drop what is superfluous."""
        self._compact(topic, due_only=False)

    def maintain(self, topic: str) -> bool:
        """Compact if it is worth it, and say so."""
        return self._compact(topic, due_only=True)

    def _compact(self, name: str, *, due_only: bool) -> bool:
        now_ms = self._clock()
        if self._state.topic(name).config.retention_ms is not None:
            with self._writing() as state:
                upkeep.expire(state, name, now_ms=now_ms)
        topic = self._state.topic(name)
        done = False
        for number in range(len(topic.partitions) if topic.config.compact else 0):
            if due_only and not upkeep.is_due(self._state, topic, number):
                continue
            crash_point("log.compact.before_swap")
            with self._writing() as state:
                topic = state.topic(name)
                partition = upkeep.compacted(state, topic, number, now_ms=now_ms)
                if partition is not None:
                    state.topics[name] = topic.with_partition(partition)
                    done = True
                    crash_point("log.compact.inside_swap")
            crash_point("log.compact.after_swap")
        return done

    def tombstones_dropped(self, positions: Vector, *, since_ms: int) -> Vector:
        """Where a consumer at these positions may have missed deletions."""
        return upkeep.tombstones_dropped(self._state, positions, since_ms=since_ms)

    def stage(self, topic: str, partition: int, frame: pl.DataFrame) -> Staged:
        """Store records without making them visible."""
        found = self._state.topic(topic)
        found.partition(partition)
        content = publishing.content_of(found, frame, self._clock())
        return self._stage(topic, [(partition, content)])[0]

    def stage_all(self, topic: str, frame: pl.DataFrame) -> list[Staged]:
        """Like `stage`, spreading the rows over partitions as `append` does."""
        return self._stage(topic, publishing.spread(self._state.topic(topic), frame, self._clock()))

    def _stage(self, topic: str, parts: Sequence[tuple[int, pl.DataFrame]]) -> list[Staged]:
        crash_point("log.stage.before_sync")
        with self._writing() as state:
            staged = publishing.stage(state, state.topic(topic), parts)
        crash_point("log.stage.after_sync")
        return staged

    def abort(self, staged: Sequence[Staged]) -> None:
        """Give up staged records; those that a commit has named meanwhile stay."""
        with self._writing() as state:
            publishing.give_up(state, staged)

    def commit(self, commit: Commit, staged: Sequence[Staged]) -> CommitResult:
        """Publish a micro-batch over all its topics, once."""
        crash_point("log.commit.before_transaction")
        with self._writing() as state:
            result = commits.commit(state, commit, staged, now_ms=self._clock())
        crash_point("log.commit.after_transaction")
        return result

    def last_commit(self, service: str, output: str, generation: str | None = None) -> Commit | None:
        """The last micro-batch that an output has published, or the last one of a generation, published or not."""
        found = commits.last_commit(self._state, service, output, generation)
        return None if found is None else commits.detached(found.commit, found.commit.committed_ms)

    def cutover(self, cutover: Cutover, staged: Sequence[Staged]) -> CommitResult | None:
        """Publish the difference between two generations, once; None if a topic has grown since it was made."""
        crash_point("log.cutover.before_transaction")
        with self._writing() as state:
            result = commits.cutover(state, cutover, staged, now_ms=self._clock())
        crash_point("log.cutover.after_transaction")
        return result

    def unfinished_cutover(self, service: str, output: str) -> str | None:
        """None: a cutover is one step here."""
        del service, output
        return None

    def order(self, service: str, output: str, topics: Sequence[str]) -> Stops:
        """The order log of an output: where its micro-batches ended in these topics, the oldest first."""
        state = self._state
        return completed(commits.stops(state, service, output), topics, _Arrivals(state))

    def acquire(self, name: str, *, holder: Holder | None = None, take_over: bool = False) -> Lease:
        """Take a lease; a dead holder's is taken at once, a live one's only with `take_over`."""
        asking = holder or self._myself()
        watch = None if take_over else leasing.watched(lambda: self._state.leases.get(name), asking, self._clock())
        with self._writing() as state:
            tenure = leasing.granted(
                name,
                state.leases.get(name),
                asking,
                self._clock(),
                take_over=take_over,
                watch=watch,
                runs=self._runs,
            )
            state.leases[name] = tenure
        return Lease(name, tenure.token, asking)

    def holder(self, name: str) -> Holder | None:
        """Who holds a lease and lives; None if nobody does."""
        tenure = self._state.leases.get(name)
        if tenure is None or not tenure.held:
            return None
        return tenure.holder if leasing.lives(tenure, self._myself(), self._clock(), self._runs) else None

    def tenure(self, name: str) -> leasing.Tenure | None:
        """What is known of a lease; None if nobody had it."""
        return self._state.leases.get(name)

    def lives(self, holder: Holder) -> bool:
        """Whether a process lives, as far as this one can tell."""
        return self._runs(holder)

    def heartbeat(self, lease: Lease) -> None:
        """Say that the holder lives."""
        with self._writing() as state:
            tenure = state.leases.get(lease.name)
            state.leases[lease.name] = leasing.renewed(lease.name, tenure, lease.token, self._clock())

    def release(self, lease: Lease) -> None:
        """Give a lease back."""
        with self._writing() as state:
            tenure = state.leases.get(lease.name)
            if tenure is not None and tenure.token == lease.token:
                state.leases[lease.name] = replace(tenure, held=False)

    def get_meta(self, service: str, name: str) -> str | None:
        """A small document that a service keeps beside its topics."""
        return self._state.documents.get(service, {}).get(name)

    def set_meta(self, service: str, name: str, value: str | None, *, leases: Sequence[Lease] = ()) -> None:
        """Store such a document, if these leases are held; None deletes it."""
        with self._writing() as state:
            for lease in leases:
                leasing.check(lease.name, state.leases.get(lease.name), lease.token)
            state.write_documents(service, {name: value})

    def metas(self, service: str, prefix: str = "") -> dict[str, str]:
        """All documents of a service whose names begin like this, by name."""
        documents = self._state.documents.get(service, {})
        return {name: value for name, value in documents.items() if name.startswith(prefix)}

    def services(self) -> list[str]:
        """The names of all services that keep documents here, sorted."""
        return sorted(service for service, documents in self._state.documents.items() if documents)

    def forget(self, service: str) -> None:
        """Drop a service's commits and documents, so that it can start from scratch."""
        with self._writing() as state:
            commits.forget(state, service)


@dataclass(frozen=True)
class _Arrivals:
    """When the records of topics came, from one state of the log."""

    state: State

    def created(self, topic: str) -> int:
        found = self.state.topics.get(topic)
        return 0 if found is None else found.created_ms

    def appends(self, topic: str) -> Mapping[int, Appends]:
        found = self.state.topics.get(topic)
        return {} if found is None else {partition.number: partition.appends() for partition in found.partitions}
