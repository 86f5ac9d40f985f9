"""How far topics had got at a time: which offsets had been appended by then.

It says where a batch would have ended in a topic that its output did not read then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from everstate.log.stops import UNNAMED, Stops
from everstate.log.vectors import CLOCK, is_topic, topic_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_Numbers = npt.NDArray[np.int64]


class Appends(NamedTuple):
    """When the records of a partition came.

    Attributes:
        first: The partition's first offset.
        times: When something was appended, in the order of offsets.
        ends: The offset after the last record that was appended then.
    """

    first: int
    times: _Numbers
    ends: _Numbers


class Arrivals(Protocol):
    """What a log knows of the past of its topics."""

    def created(self, topic: str) -> int:
        """When a topic was created; 0 if it is not there."""
        ...

    def appends(self, topic: str) -> Mapping[int, Appends]:
        """When the records of a topic came, by partition; empty if it is not there."""
        ...


def completed(stops: Stops, topics: Sequence[str], arrivals: Arrivals) -> Stops:
    """Vectors that name these topics alone: what one of them does not name is filled in by its time.

    What a vector says of a topic from before that was created it says of another one, which had the name then. The
    clock stays, and so do the times that partitions of these topics were given.

    Args:
        stops: Vectors with their times.
        topics: The topics; one that does not exist has no partition.
        arrivals: When records came.
    """
    places: list[tuple[str, int]] = []
    columns: list[_Numbers] = []
    for topic in topics:
        of_another = stops.times < arrivals.created(topic)
        mine = {
            partition: np.where(of_another, UNNAMED, stops.column(topic, partition))
            for name, partition in stops.places
            if name == topic
        }
        lacking = np.all([column == UNNAMED for column in mine.values()], axis=0) if mine else np.ones(len(stops), bool)
        for partition, appends in arrivals.appends(topic).items() if lacking.any() else ():
            mine.setdefault(partition, np.full(len(stops), UNNAMED, np.int64))
            mine[partition] = mine[partition].copy()
            mine[partition][lacking] = _ends_at(appends, stops.times[lacking])
        places += [(topic, partition) for partition in sorted(mine)]
        columns += [mine[partition] for partition in sorted(mine)]
    for name, partition in stops.places:
        if name == CLOCK or (not is_topic(name) and topic_of(name) in topics):
            of_another = stops.times < (0 if name == CLOCK else arrivals.created(topic_of(name)))
            places.append((name, partition))
            columns.append(np.where(of_another, UNNAMED, stops.column(name, partition)))
    ends = np.column_stack(columns) if columns else np.empty((len(stops), 0), np.int64)
    names = (*topics, *sorted({name for name, _ in places if not is_topic(name)}))
    return Stops(names, tuple(places), ends, stops.times)


def _ends_at(appends: Appends, times: _Numbers) -> _Numbers:
    """By time, the offset that the next record was to get."""
    # A clock that was set back must not make an offset appear later than the one after it.
    seen = np.searchsorted(np.maximum.accumulate(appends.times), times, side="right")
    ends: _Numbers = np.concatenate([[appends.first], appends.ends])[seen]
    return ends
