"""The driver's topics: a log in memory that also knows in which order the records of a topic came.

Partitions have no order among each other, but who reads a test wants to see what was written first.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import polars as pl

from everstate.log import records
from everstate.log.descriptions import Holder, TopicConfig
from everstate.log.memory import MemoryLog
from everstate.log.records import CONTENT, to_records

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from everstate.log.descriptions import Commit, CommitResult, Cutover, Ranges, Record, Staged

#: There is one process, and it never ends.
_MYSELF: Final = Holder("driver", 1, 0.0)
_SCHEMA: Final = {**CONTENT, "partition": pl.Int32()}


class Sent(NamedTuple):
    """A record on its way to a topic; without a partition, it goes where its key belongs."""

    key: bytes | None
    value: bytes | None
    ts: int
    partition: int | None = None
    headers: Mapping[str, bytes] | None = None


class Publication(NamedTuple):
    """What was published to take the place of something else, or to begin with.

    Attributes:
        output: By which output.
        cutover: It was a cutover; else the first micro-batch.
        ranges: Where it lies.
    """

    output: str
    cutover: bool
    ranges: Ranges


class Topics(MemoryLog):
    """All topics of a driver; its clock goes on by one with each look, so that no two things happen at once.

    Attributes:
        partitions: Partitions of a topic that somebody else writes to.
        publications: Cutovers and first micro-batches since the list was last emptied.
    """

    def __init__(self, partitions: int) -> None:
        super().__init__(clock=count(1).__next__)
        self._holder = _MYSELF
        self._store.running[_MYSELF] = True
        self.partitions = partitions
        self.publications: list[Publication] = []
        self._places: dict[str, list[int]] = {}
        self._staged: dict[str, list[int]] = {}

    def copy(self) -> Self:
        """The same topics; what is appended to one does not show in the other."""
        other = super().copy()
        places = {topic: list(places) for topic, places in self._places.items()}
        vars(other).update(partitions=self.partitions, publications=[], _places=places, _staged={})
        return other

    def ensure(self, topic: str) -> None:
        """Create a topic that somebody else writes to, unless it is there."""
        if not self.has_topic(topic):
            self.create_topic(topic, TopicConfig(partitions=self.partitions))

    def send(self, topic: str, sent: Sequence[Sent]) -> None:
        """Append records of somebody else."""
        self.ensure(topic)
        rows = [(key, value, ts, _headers(headers), place) for key, value, ts, place, headers in sent]
        self.append(topic, pl.DataFrame(rows, schema=_SCHEMA, orient="row"))

    def all(self, topic: str) -> Iterator[Record]:
        """Every record of a topic, in the order of publication."""
        if not self.has_topic(topic):
            return
        count = self.describe(topic).config.partitions
        lanes = [to_records(topic, self.read(topic, number, 0)) for number in range(count)]
        if count == 1:
            yield from lanes[0]
        for place in self._places.get(topic, ()):
            yield next(lanes[place])

    def published(self, ranges: Ranges) -> Iterator[Record]:
        """The records of a publication, topic by topic."""
        for topic, places in ranges.items():
            for record in self.all(topic):
                first, last = places.get(record.partition, (0, 0))
                if first <= record.offset < last:
                    yield record

    # -- what a log does, observed ------------------------------------------------------------------------------------

    def append(self, topic: str, frame: pl.DataFrame) -> None:
        """Append records, all or none of them."""
        placed, places = self._placed(topic, frame)
        super().append(topic, placed)
        self._places.setdefault(topic, []).extend(places)

    def stage_all(self, topic: str, frame: pl.DataFrame) -> list[Staged]:
        """Store records without making them visible."""
        placed, places = self._placed(topic, frame)
        staged = super().stage_all(topic, placed)
        if places:
            self._staged[staged[0].location] = places
        return staged

    def commit(self, commit: Commit, staged: Sequence[Staged]) -> CommitResult:
        """Publish a micro-batch."""
        result = super().commit(commit, staged)
        self._publish(staged)
        if commit.kind == "open" and commit.batch_id == 0:
            self.publications.append(Publication(commit.output, cutover=False, ranges=result.offsets or {}))
        return result

    def cutover(self, cutover: Cutover, staged: Sequence[Staged]) -> CommitResult | None:
        """Publish the difference between two generations."""
        result = super().cutover(cutover, staged)
        if result is not None:
            self._publish(staged)
            self.publications.append(Publication(cutover.commit.output, cutover=True, ranges=result.offsets or {}))
        return result

    def _placed(self, topic: str, frame: pl.DataFrame) -> tuple[pl.DataFrame, list[int]]:
        """Records with their partitions, and these in order where there are several."""
        partitions = self._state.topic(topic).partitions
        if len(partitions) == 1 or not frame.height:
            return frame, []
        turn = sum(partition.end for partition in partitions)
        places = records.partitions_for(frame, len(partitions), turn=turn).alias("partition")
        return frame.with_columns(places), places.to_list()

    def _publish(self, staged: Sequence[Staged]) -> None:
        for part in staged:
            self._places.setdefault(part.topic, []).extend(self._staged.pop(part.location, ()))


def _headers(given: Mapping[str, bytes] | None) -> list[dict[str, object]] | None:
    return [{"name": name, "value": value} for name, value in given.items()] if given else None
