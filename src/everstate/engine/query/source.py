"""A unit's topics as one Spark streaming source.

The source hands out *addresses* of records, not records: the task that decodes them reads them itself, so payloads do
not travel from Python through Spark's JVM and back. One vector over all topics says where a micro-batch ends.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from everstate.errors import OffsetOutOfRangeError, TombstonesMissedError, TopicRecreatedError
from everstate.errors.carrying import carried
from everstate.log import vectors
from everstate.log.timing import wall_clock

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from everstate.log.descriptions import Split, Vector
    from everstate.log.planning import Planner, Told
    from everstate.log.protocol import Log

FORMAT: Final = "everstate"
#: In the place of a topic: at this address is what a batch is told besides its records.
TOLD: Final = "$told"
#: The columns that the source gives: where to find a contiguous range of records.
ADDRESS: Final = "topic string, partition int, start long, end long, location string"


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """What a source is told.

    Attributes:
        url: Which log.
        topics: Which topics.
        initial: Where a new query begins.
        order: Service and output whose order log batches have to follow; empty if they follow none.
        recorded: So many of it count.
        end: Nothing is read from this vector on; None for no end.
        max_records: The most records of a batch.
        tasks: How many tasks should share a batch.
        ids: The ids of the topics that the query has read so far, by name; one with another id has only the name.
        tables: Those of the topics whose rows are kept until they are deleted there.
        checked_ms: When it was last known that none of these deletions had been missed.
        past: Where records are that the topics no longer have.
        task_records: A task is not given fewer records than this as long as there is one task to share them.
        timing: What the unit has to do with time; None for nothing.
        live: Partitions may be found quiet; a recalculation repeats when they were.
        owner: Service, output and generation.
    """

    url: str
    topics: tuple[str, ...]
    initial: Vector
    end: Vector | None
    max_records: int
    tasks: int
    order: tuple[str, ...] = ()
    recorded: int = 0
    ids: dict[str, str] | None = None
    tables: tuple[str, ...] = ()
    checked_ms: int = 0
    past: dict[str, Any] | None = None
    task_records: int = 10_000
    timing: dict[str, Any] | None = None
    live: bool = True
    owner: tuple[str, ...] = ()

    def to_spark(self) -> dict[str, str]:
        """As Spark carries options: text by name."""
        document = dict(self.__dict__)
        return {"document": json.dumps(document)}

    @classmethod
    def from_spark(cls, options: Any) -> SourceOptions:
        """The options that `to_spark` wrote."""
        document = json.loads(options["document"])
        for name in ("initial", "end"):
            document[name] = None if document[name] is None else vectors.from_offsets(document[name])
        return cls(
            **{
                **document,
                "topics": tuple(document["topics"]),
                "order": tuple(document["order"]),
                "tables": tuple(document["tables"]),
                "owner": tuple(document["owner"]),
            }
        )


class LogSource(DataSource):
    """Spark's entry point: `spark.readStream.format("everstate")`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def schema(self) -> str:
        """The columns of an address."""
        return ADDRESS

    def streamReader(self, schema: Any) -> LogReader:  # noqa: N802 - Spark's name
        """A reader for one query."""
        del schema
        return LogReader(SourceOptions.from_spark(self.options))


class SplitGroup(InputPartition):
    """The addresses that one task reads."""

    def __init__(self, addresses: list[tuple[str, int, int, int, str]]) -> None:
        super().__init__(addresses)


class LogReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches over the topics of one unit."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._target: tuple[Vector, int] | None = None
        self._log: Log | None = None
        self._seen: dict[str, str] | None = None
        self._planned_by: Planner | None = None
        self._since_ms: int | None = None

    def initialOffset(self) -> dict[str, dict[int, int]]:  # noqa: N802 - Spark's name
        """Where a new query begins; decided once and stored by the engine, since a topic's first offset may move."""
        return self._options.initial

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """At most so many records a batch."""
        return ReadMaxRows(self._options.max_records)

    @carried()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, dict[int, int]]:  # noqa: N802 - Spark's name
        """Where the next micro-batch ends."""
        begin = vectors.from_offsets(start)
        self._require_same_topics()
        ends = self._open().end_offsets(self._options.topics)
        _require_reachable(begin, ends)
        available, now_ms = (self._limited(ends), wall_clock()) if self._target is None else self._target
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else vectors.lag(begin, available)
        return self._planner().end(begin, available, most, now_ms)

    @carried()
    def reportLatestOffset(self) -> dict[str, dict[int, int]]:  # noqa: N802 - Spark's name
        """Where the topics end now."""
        return self._available()

    @carried()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Remember where the topics end and what time it is, and stop there."""
        self._target = self._available(), wall_clock()

    @carried()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The batch, divided between tasks."""
        self._require_same_topics()
        begin, finish = vectors.from_offsets(start), vectors.from_offsets(end)
        self._require_every_deletion(begin)
        total = vectors.lag(begin, finish)
        share = max(self._options.task_records, -(-total // self._options.tasks))
        told = self._planner().told(begin, finish) if self._options.timing is not None else None
        cuts = {(at.topic, at.partition, at.offset) for at in told.times} if told else set()
        splits = [
            split
            for topic, partition, until in vectors.positions(finish)
            if (since := vectors.offset_at(begin, topic, partition)) < until
            for split in self._cut(topic, partition, since, until, share, cuts)
        ]
        if self._options.timing is not None:
            splits += self._besides(begin, finish, told)
        return [SplitGroup(addresses) for addresses in grouped(splits, self._options.tasks)]

    def _besides(self, begin: Vector, finish: Vector, told: Told | None) -> list[Split]:
        """An address without records for each partition that has none in the batch, and one for what it is told."""
        from everstate.log.descriptions import Split  # noqa: PLC0415 - as the log, see below

        quiet = [
            Split(topic, partition, end, end, "")
            for topic, partition, end in vectors.positions(finish)
            if end == vectors.offset_at(begin, topic, partition)
        ]
        return [*quiet, *([Split(TOLD, 0, 0, 0, told.to_json())] if told else [])]

    def _cut(
        self, topic: str, partition: int, start: int, end: int, share: int, cuts: Collection[tuple[str, int, int]]
    ) -> Iterator[Split]:
        """The splits of a range, with an address without records wherever a mark has to stand between two of them."""
        from everstate.log.descriptions import Split  # noqa: PLC0415 - as the log, see below

        for cut in sorted({at for *place, at in cuts if place == [topic, partition] and start < at < end}):
            yield from self._splits(topic, partition, start, cut, share)
            yield Split(topic, partition, cut, cut, "")
            start = cut
        yield from self._splits(topic, partition, start, end, share)

    def _splits(self, topic: str, partition: int, start: int, end: int, share: int) -> list[Split]:
        if self._options.past is None:
            return self._open().splits(topic, partition, start, end, max_records=share)
        from everstate.log.archive.reading import Past, splits  # noqa: PLC0415 - as the log, see below

        past = Past.from_document(self._options.past)
        return splits(self._open(), past, topic, partition, start, end, max_records=share)

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """The addresses of one task."""
        return iter(partition.value)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing to do: the log remembers what an output has read."""

    def stop(self) -> None:
        """Close the log."""
        if self._log is not None:
            self._log.close()

    def _planner(self) -> Planner:
        """What plans the batches; the order log is read once, since a recalculation only needs the past."""
        if self._planned_by is None:
            from everstate.log.planning import Planner, Timing  # noqa: PLC0415 - as the log, see below
            from everstate.log.stops import Stops  # noqa: PLC0415 - as the log, see below

            options, stops = self._options, Stops.of([])
            if options.order:
                # As many as the tasks know: the active generation goes on and adds to it.
                stops = self._open().order(options.order[0], options.order[1], options.topics)[: options.recorded]
            timing = Timing.from_document(options.timing) if options.timing is not None else Timing()
            self._planned_by = Planner(
                timing,
                stops,
                limit=options.end,
                times=self._times_at,
                live=options.live,
                initial=options.initial,
            )
        return self._planned_by

    def _times_at(self, position: Vector) -> Vector | None:
        """The stream times at the end of the last batch; None if they are not known."""
        last = self._open().last_commit(*self._options.owner)
        if last is None:
            return {} if position == self._options.initial else None
        return last.times if last.end == position else None

    def _require_same_topics(self) -> None:
        """Refuse topics that were deleted and created again: offsets of the old ones mean nothing in them."""
        if self._seen is None:
            self._seen = dict(self._options.ids or {})
        for topic, identity in self._open().topic_ids(self._options.topics).items():
            if self._seen.setdefault(topic, identity) != identity:
                raise TopicRecreatedError(topic)

    def _require_every_deletion(self, begin: Vector) -> None:
        """Refuse to go on after compaction has dropped deletions that lie ahead: rows that were read would stay."""
        positions = {topic: begin[topic] for topic in self._options.tables if topic in begin}
        if self._since_ms is None:
            unread = all(self._options.initial.get(topic) == offsets for topic, offsets in positions.items())
            self._since_ms = wall_clock() - 1 if unread else self._options.checked_ms
        for topic in self._open().tombstones_dropped(positions, since_ms=self._since_ms):
            raise TombstonesMissedError(
                f"topic {topic!r} was compacted while it was read: rows that were deleted there would be kept here",
                hint="Rebuild the output from its sources: everstate run SERVICE.py --recalculate OUTPUT. "
                f"If this happens again, topic {topic!r} keeps tombstones for too short a time.",
            )

    def _available(self) -> Vector:
        return self._limited(self._open().end_offsets(self._options.topics))

    def _limited(self, ends: Vector) -> Vector:
        """Where the topics end, or the end that was asked for if that comes first."""
        return ends if self._options.end is None else vectors.capped(ends, self._options.end)

    def _open(self) -> Log:
        # Only the process that plans needs the log; importing it in every worker that passes addresses on would cost
        # each of them the start of Polars.
        if self._log is None:
            from everstate.log.opening import open_log  # noqa: PLC0415

            self._log = open_log(self._options.url, trusted=True)
        return self._log


def grouped(splits: Sequence[Split], tasks: int) -> list[list[tuple[str, int, int, int, str]]]:
    """Divide splits between tasks: neighbours stay together, and the largest share is as small as that allows.

    A micro-batch may have no records at all: where topics are empty, it only tells which partitions there are.

    Example:
        >>> from everstate.log.descriptions import Split
        >>> [len(group) for group in grouped([Split("t", 0, n, n + 1, "") for n in range(5)], 2)]
        [3, 2]
    """
    total = sum(split.end - split.start for split in splits) or 1
    groups: list[list[tuple[str, int, int, int, str]]] = []
    taken = 0
    for split in splits:
        # A split belongs to the task in whose equal share of the batch it begins.
        number = min(tasks - 1, taken * tasks // max(1, total))
        while len(groups) <= number:
            groups.append([])
        groups[number].append((split.topic, split.partition, split.start, split.end, split.location))
        taken += split.end - split.start
    return [group for group in groups if group]


def _require_reachable(position: Vector, ends: Vector) -> None:
    """Refuse to wait for offsets that a topic had once: it was deleted and made again, and its records are others."""
    for topic, partition, offset in vectors.positions(position):
        if offset > vectors.offset_at(ends, topic, partition, default=offset):
            raise OffsetOutOfRangeError(
                f"{topic}/{partition} ends at offset {ends[topic][partition]}, but was read up to {offset} before",
                hint="The topic was created again or restored from an older copy. Restore it, or rebuild the state: "
                "everstate clear SERVICE.py, then run it again.",
            )
