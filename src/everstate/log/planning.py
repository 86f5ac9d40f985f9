"""Where the next micro-batch of an output ends, and what it is told besides its records.

The clock that a micro-batch goes by, and stream times that quiet partitions are given, are planned with it: they are
part of the vector at which it ends. So a batch that comes again finds the same ones, and so does a recalculation, which
ends its batches on recorded vectors. Planned by no clock but the caller's.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np

from everstate.log import vectors
from everstate.log.stops import UNNAMED, Stops
from everstate.log.vectors import CLOCK, QUIET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from everstate.log.descriptions import Vector
    from everstate.topology.unit import Unit

#: Without records, the clock moves so often.
TICK_MS: Final = 1000
#: A partition that never had a record is passed over after this time.
EMPTY_MS: Final = 60_000


@dataclass(frozen=True, kw_only=True)
class Timing:
    """What an output has to do with time.

    Attributes:
        ordered: Its micro-batches follow the recorded ones.
        clocked: It goes by the wall clock.
        waits: For each step that goes by stream time, the topics whose partitions it waits for.
        idle_ms: By topic, after how long a quiet partition is passed over; others are waited for.
        first: The topics that are read to their end before there is anything of the others.
        tick_ms: How often the clock moves without records.
    """

    ordered: bool = False
    clocked: bool = False
    waits: tuple[tuple[str, ...], ...] = ()
    idle_ms: dict[str, int] = field(default_factory=dict)
    first: tuple[str, ...] = ()
    tick_ms: int = TICK_MS

    @classmethod
    def of(cls, unit: Unit) -> Self:
        """That of a unit."""
        return cls(
            ordered=unit.recorded,
            clocked=unit.clocked,
            waits=unit.waits,
            idle_ms=unit.idle_ms,
            first=unit.loaded_first,
            tick_ms=unit.tick_ms,
        )

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Self:
        """What `to_document` wrote."""
        waits = tuple(tuple(topics) for topics in document["waits"])
        return cls(**{**document, "waits": waits, "first": tuple(document["first"])})

    def to_document(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    @property
    def matters(self) -> bool:
        """Whether it has anything to do with time or the order of arrival."""
        return self.ordered or self.clocked or bool(self.waits)

    @property
    def watched(self) -> tuple[str, ...]:
        """The topics for whose partitions a step waits."""
        return tuple(sorted({topic for topics in self.waits for topic in topics}))

    def noted(self, start: Vector, end: Vector) -> bool:
        """Whether the order log must know of a micro-batch: where it ends decides results."""
        return self.ordered or vectors.given_times(start) != vectors.given_times(end)

    def within(self, vector: Vector) -> Vector:
        """How far time may come for an output that must not go beyond a vector."""
        names = {f"{QUIET}{topic}" for topic in self.watched}
        names |= {CLOCK} & vector.keys() if self.clocked else set()
        return {name: vector.get(name, {}) for name in names}

    def needed(self, target: Vector) -> Vector:
        """What has to be reached of a target: times that no longer count cannot be."""
        quiet = {
            name: {p: time for p, time in times.items() if vectors.offset_at(target, vectors.topic_of(name), p) == 0}
            for name, times in target.items()
            if name.startswith(QUIET) and vectors.topic_of(name) not in self.idle_ms
        }
        return {**target, **quiet}


class Given(NamedTuple):
    """A stream time that a partition was given: records from the offset on are not older than that."""

    topic: str
    partition: int
    offset: int
    time: int


@dataclass(frozen=True)
class Told:
    """What a micro-batch is told besides its records.

    Attributes:
        clock: The wall clock, in milliseconds; None if it does not go by it.
        epochs: Which of the recorded micro-batches it repeats, as a range; None for none.
        times: The stream times that partitions are given.
    """

    clock: int | None = None
    epochs: tuple[int, int] | None = None
    times: tuple[Given, ...] = ()

    def __bool__(self) -> bool:
        return self != Told()

    def to_json(self) -> str:
        """As text."""
        return json.dumps([self.clock, self.epochs, self.times])

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` wrote."""
        clock, epochs, times = json.loads(text)
        return cls(clock, tuple(epochs) if epochs else None, tuple(Given(*given) for given in times))


class Planner:
    """Plans the micro-batches of one output.

    Args:
        timing: What it has to do with time.
        stops: The recorded micro-batches that a recalculation repeats; none for a live output.
        limit: How far time may come; None for no limit.
        times: Gives the stream times of all partitions at the end of the last micro-batch, which is the vector that is
            passed; None if they are not known.
        live: Partitions may be found quiet.
        tick_ms: How often the clock moves without records, if not as often as the output asks for.
        noting: The clock is noted with each micro-batch although the output does not go by it: a later version may.
        initial: Where its first micro-batch of all has begun.
    """

    def __init__(
        self,
        timing: Timing,
        stops: Stops,
        *,
        limit: Vector | None = None,
        times: Callable[[Vector], Vector | None] = lambda _: None,
        live: bool = True,
        tick_ms: int | None = None,
        noting: bool = False,
        initial: Vector | None = None,
    ) -> None:
        self.stops = suited(stops, timing)
        self._timing = timing
        self._limit = limit or {}
        self._times = times
        self._live = live
        self._tick_ms = timing.tick_ms if tick_ms is None else tick_ms
        self._noting = noting
        self._initial = initial or {}
        self._loading: Vector | None = None
        self._given = [
            (number, name, given)
            for number, name, given in given_by(self.stops)
            if name not in self._limit or given.time <= self._limit[name].get(given.partition, UNNAMED)
        ]
        self._stood: dict[tuple[str, int], tuple[int, int]] = {}

    def end(self, begin: Vector, available: Vector, most: int, now_ms: int) -> Vector:
        """Where the next micro-batch ends; where it begins, if there is nothing to do.

        Args:
            begin: Where the last one ended.
            available: Where the topics end.
            most: At most so many records.
            now_ms: The wall clock.
        """
        stop = self.stops.after(begin, most) if self._timing.ordered else None
        if stop is not None:
            read = vectors.completed(vectors.capped(available, vectors.records(stop)), begin)
            return {**read, **_together(vectors.told(begin), self._within(vectors.told(stop)))}
        known = self._with_known(begin, available, now_ms)
        readable = self._loaded(begin, known.available)
        end: Vector = {**vectors.told(begin), **vectors.admitted(begin, readable, most)}
        end = _together(end, known.given)
        for _, name, given in self._given if not self._timing.ordered else ():
            if given.offset <= vectors.offset_at(end, given.topic, given.partition, default=UNNAMED):
                end = _together(end, {name: {given.partition: given.time}})
        return self._clocked(begin, end, now_ms)

    def _loaded(self, begin: Vector, available: Vector) -> Vector:
        """What may be read, as long as the topics that come first have not been read as far as they go now."""
        if self._loading is None:
            self._loading = available
        return vectors.first_of_all(self._timing.first, self._initial, begin, available, self._loading)

    def told(self, begin: Vector, end: Vector) -> Told:
        """What a micro-batch is told."""
        first, last = self.stops.passed(begin), self.stops.passed(end)
        repeated, times = set(), []
        for number, name, given in self._given:
            repeated.add((name, given.partition, given.time))
            offset = vectors.offset_at(end, given.topic, given.partition, default=UNNAMED)
            passes = vectors.offset_at(begin, given.topic, given.partition) <= given.offset <= offset
            if first <= number < last if self._timing.ordered else passes:
                times.append(given)
        times += [
            Given(vectors.topic_of(name), partition, vectors.offset_at(end, vectors.topic_of(name), partition), time)
            for name, partitions in vectors.given_times(end).items()
            for partition, time in partitions.items()
            if begin.get(name, {}).get(partition) != time and (name, partition, time) not in repeated
        ]
        matters = self._timing.ordered and len(self.stops) and (self._timing.clocked or self._given)
        epochs = (first, last) if matters else None
        return Told(vectors.clock_of(end) if self._timing.clocked else None, epochs, tuple(times))

    def _within(self, told: Vector) -> Vector:
        """As far as the limit allows."""
        return {
            name: {p: min(at, self._limit[name][p]) for p, at in ends.items() if p in self._limit[name]}
            if name in self._limit
            else ends
            for name, ends in told.items()
        }

    def _clocked(self, begin: Vector, end: Vector, now_ms: int) -> Vector:
        """With the clock, which never goes back; without records it moves now and then."""
        if not self._timing.clocked:
            noted = self._noting and end != begin
            return {**end, CLOCK: {0: max(now_ms, vectors.clock_of(begin) or 0)}} if noted else end
        before = vectors.clock_of(begin)
        now = self._within({CLOCK: {0: max(now_ms, before or 0)}})[CLOCK][0]
        tick_ms = 0 if CLOCK in self._limit else self._tick_ms
        if before is not None and (now <= before or (end == begin and now - before < tick_ms)):
            return end
        return {**end, CLOCK: {0: now}}

    # -- quiet partitions ---------------------------------------------------------------------------------------------

    def _with_known(self, begin: Vector, available: Vector, now_ms: int) -> _Known:
        """What is to be read, and the times that quiet and new partitions are given."""
        quiet = self._quiet(begin, available, now_ms) if self._live else set()
        new = {
            (topic, partition)
            for topic in self._timing.watched
            if topic in begin
            for partition in available.get(topic, {})
            if partition not in begin[topic] and not self._has_been_given(topic, partition)
        }
        if not quiet and not new:
            return _Known(available, {})
        times = self._times(begin)
        if times is None:
            # A new partition is not read before it is known what its first record must not belong to.
            left = {t: {p: end for p, end in ends.items() if (t, p) not in new} for t, ends in available.items()}
            return _Known(left, {})
        given: Vector = {}
        for topic, partition in quiet | new:
            reached = self._reached(topic, times, available, quiet | new)
            if reached is not None and reached > times.get(topic, {}).get(partition, UNNAMED):
                given.setdefault(f"{QUIET}{topic}", {})[partition] = reached
                if (topic, partition) in new:
                    # Its records come with the next batch, so that the time stands before them.
                    available = {**available, topic: {**available[topic], partition: 0}}
        return _Known(available, given)

    def _has_been_given(self, topic: str, partition: int) -> bool:
        return any((given.topic, given.partition) == (topic, partition) for _, _, given in self._given)

    def _quiet(self, begin: Vector, available: Vector, now_ms: int) -> set[tuple[str, int]]:
        """The partitions that have been read and have stood still for long enough."""
        found = set()
        for topic in self._timing.watched:
            for partition, end in available.get(topic, {}).items():
                place = (topic, partition)
                stood, since = self._stood.get(place, (UNNAMED, now_ms))
                if stood != end:
                    since = now_ms
                self._stood[place] = (end, since)
                patience = self._timing.idle_ms.get(topic, EMPTY_MS if end == 0 else None)
                if end == 0 and patience is not None:
                    patience = min(patience, EMPTY_MS)
                read = partition in begin.get(topic, {}) and begin[topic][partition] == end
                if patience is not None and read and now_ms - since >= patience:
                    found.add(place)
        return found

    def _reached(self, topic: str, times: Vector, available: Vector, passed_over: set[tuple[str, int]]) -> int | None:
        """How far the steps that wait for a topic have come without some partitions; None if none of them has."""
        found = []
        for topics in self._timing.waits:
            rest = [
                times.get(each, {}).get(partition)
                for each in topics
                for partition in available.get(each, {})
                if (each, partition) not in passed_over
            ]
            known = [time for time in rest if time is not None and time != UNNAMED]
            if topic in topics and known and len(known) == len(rest):
                found.append(min(known))
        return max(found, default=None)


class _Known(NamedTuple):
    """What is to be read, and the times that are given."""

    available: Vector
    given: Vector


def suited(stops: Stops, timing: Timing) -> Stops:
    """Recorded micro-batches as they matter to an output.

    Each has a clock if the output goes by one. Times that were given to partitions of a topic that is no longer passed
    over do not count, but for those that partitions have begun with.
    """
    if not len(stops):
        return stops
    names = {name for name, _ in stops.places}
    watched = [name for name in names if not vectors.is_topic(name) and vectors.topic_of(name) in timing.watched]
    topics = [name for name in stops.topics if vectors.is_topic(name)]
    found = stops.having([*topics, *watched, *({CLOCK} if timing.clocked else set())])
    columns = {}
    for name, partition in found.places:
        topic = vectors.topic_of(name)
        if name.startswith(QUIET) and topic not in timing.idle_ms:
            begins = found.column(topic, partition) <= 0
            columns[name, partition] = np.maximum.accumulate(np.where(begins, found.column(name, partition), UNNAMED))
    found = found.with_columns(columns)
    return (found.clocked() if timing.clocked else found).advancing()


def given_by(stops: Stops) -> Iterator[tuple[int, str, Given]]:
    """The stream times that partitions were given, with the number of the micro-batch that did so."""
    for name, partition in stops.places:
        if not name.startswith((QUIET, vectors.MOVED)):
            continue
        topic, times = vectors.topic_of(name), np.maximum.accumulate(stops.column(name, partition))
        for number in np.flatnonzero(np.diff(times, prepend=UNNAMED) > 0).tolist():
            offset = int(stops.column(topic, partition)[number]) if (topic, partition) in stops.places else 0
            yield number, name, Given(topic, partition, max(0, offset), int(times[number]))


def _together(one: Vector, other: Vector) -> Vector:
    """Two vectors, the higher where both name a place."""
    found = {name: dict(ends) for name, ends in one.items()}
    for name, ends in other.items():
        mine = found.setdefault(name, {})
        for partition, end in ends.items():
            mine[partition] = max(end, mine.get(partition, UNNAMED))
    return found
