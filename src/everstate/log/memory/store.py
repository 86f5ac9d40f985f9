"""What a log in memory holds, as one value, and the transactions that put another one in its place.

A transaction works on a draft with dictionaries of its own; what is in them is never changed, only replaced. So a
reader keeps what it has looked at, whatever raises in a transaction leaves everything as it was, and a copy of the
whole log costs a few microseconds.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias
from uuid import uuid4

from everstate.errors import TopicExistsError, TopicNotFoundError
from everstate.log.checks import check_config, unknown_partition
from everstate.log.memory.partition import Partition
from everstate.log.timing import Sight
from everstate.schema.topic_names import check_topic_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import polars as pl

    from everstate.log.descriptions import Commit, Holder, TopicConfig, Vector
    from everstate.log.leasing import Tenure

#: Service, output and generation; the last says whether it is of the time when the generation was built.
CommitKey: TypeAlias = tuple[str, str, str, bool]


@dataclass(frozen=True)
class Topic:
    """A topic with its records."""

    name: str
    id: str
    config: TopicConfig
    created_ms: int
    partitions: tuple[Partition, ...]

    def partition(self, number: int) -> Partition:
        """One of its partitions.

        Raises:
            LogError: If there is none of that number.
        """
        if not 0 <= number < len(self.partitions):
            raise unknown_partition(self.name, self.config, number)
        return self.partitions[number]

    def with_partition(self, partition: Partition) -> Topic:
        """The same with another state of one partition."""
        before, after = self.partitions[: partition.number], self.partitions[partition.number + 1 :]
        return replace(self, partitions=(*before, partition, *after))

    def begins(self) -> dict[int, int]:
        """The first offset of every partition."""
        return {partition.number: partition.begin for partition in self.partitions}

    def ends(self) -> dict[int, int]:
        """The next offset of every partition."""
        return {partition.number: partition.end for partition in self.partitions}


@dataclass(frozen=True)
class StagedContent:
    """Records that no commit has named yet, for a topic of this id."""

    topic_id: str
    content: pl.DataFrame


@dataclass(frozen=True)
class Extent:
    """What a commit occupies in one partition."""

    topic_id: str
    partition: int
    base: int
    end: int


@dataclass(frozen=True)
class Published:
    """A commit as the log knows it.

    Attributes:
        number: Of the commit; later ones have higher numbers.
        extents: What it has published, as long as it is the last of its output: only that one can come again.
    """

    number: int
    commit: Commit
    extents: tuple[Extent, ...] = ()


@dataclass
class State:
    """All that the log holds."""

    topics: dict[str, Topic]
    staged: dict[str, StagedContent]
    commits: dict[CommitKey, Published]
    stops: dict[tuple[str, str, str], tuple[tuple[int, Vector], ...]]
    leases: dict[str, Tenure]
    documents: dict[str, dict[str, str]]
    sight: Sight
    number: int = 0

    def draft(self) -> State:
        """The same, to be changed: dictionaries of its own with what is in these."""
        return State(
            dict(self.topics),
            dict(self.staged),
            dict(self.commits),
            dict(self.stops),
            dict(self.leases),
            dict(self.documents),
            self.sight,
            self.number,
        )

    def next_number(self) -> int:
        """A number that nothing else in this log has."""
        self.number += 1
        return self.number

    def topic(self, name: str) -> Topic:
        """The topic of that name.

        Raises:
            TopicNotFoundError: If there is none.
        """
        found = self.topics.get(name)
        if found is None:
            check_topic_name(name)
            raise TopicNotFoundError(name)
        return found

    def create(self, name: str, config: TopicConfig, *, exist_ok: bool, now_ms: int) -> None:
        """Add a topic.

        Raises:
            TopicExistsError: If there is one of that name, which is not allowed.
        """
        check_topic_name(name)
        check_config(name, config)
        if name not in self.topics:
            partitions = tuple(Partition(number) for number in range(config.partitions))
            # What batches say of an earlier topic of this name is told from what they say of this one by time.
            commits = (each.commit for each in self.commits.values())
            created_ms = max([now_ms, *((each.committed_ms or 0) + 1 for each in commits if name in each.end)])
            self.topics[name] = Topic(name, uuid4().hex, config, created_ms, partitions)
        elif not exist_ok:
            raise TopicExistsError(name)

    def copy_topic(self, original: str, name: str, *, now_ms: int) -> None:
        """A topic with the records of another, at the same offsets, in place of any of that name."""
        source = self.topic(original)
        check_topic_name(name)
        partitions = tuple(replace(partition, dropped_ms=0, dropped_to=0) for partition in source.partitions)
        self.topics[name] = replace(source, name=name, id=uuid4().hex, created_ms=now_ms, partitions=partitions)

    def write_documents(self, service: str, changed: Mapping[str, str | None]) -> None:
        """Store documents of a service; None deletes one."""
        documents = {**self.documents.get(service, {}), **changed}
        self.documents[service] = {name: value for name, value in sorted(documents.items()) if value is not None}


class Store:
    """The present state of a log, for all that use it.

    Attributes:
        id: What others remember the log by.
        name: Of this log within the process; a copy has the same id and another name.
        state: What the log holds now; never changed, only replaced.
        running: Whether processes that a simulation has made up run.
    """

    def __init__(self, state: State, identity: str, running: dict[Holder, bool] | None = None) -> None:
        self.id = identity
        self.name = uuid4().hex
        self.state = state
        self.running = dict(running or {})
        self._guard = threading.RLock()

    @classmethod
    def empty(cls, now_ms: int) -> Store:
        """A log in which there is nothing."""
        return cls(State({}, {}, {}, {}, {}, {}, Sight(now_ms, now_ms, 0)), uuid4().hex)

    @contextmanager
    def writing(self, now_ms: int) -> Iterator[State]:
        """A draft that becomes the state of the log when the block ends; if it raises, nothing happens."""
        with self._guard:
            draft = self.state.draft()
            yield draft
            draft.sight = draft.sight.at(now_ms)
            self.state = draft
