"""Arithmetic on vectors: one offset for each partition of each source topic.

Spark carries a vector as JSON, where partitions are text; everywhere else they are numbers.

A vector also holds what a micro-batch is told besides its records, under names that no topic can have: the wall clock,
and stream times that quiet partitions were given. What is planned so is the same when the batch comes again, and in a
recalculation. Counting and reading records leaves these names out.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from everstate.log.descriptions import Vector

#: The wall clock of a micro-batch in milliseconds, as the offset of its partition 0.
CLOCK: Final = "$clock"
#: Before the name of a topic: the stream times that its quiet partitions were given, from where they stood then.
QUIET: Final = "$time:"
#: The same, given by hand, as a test does.
MOVED: Final = "$moved:"


def from_json(text: str) -> Vector:
    """Read a vector.

    Example:
        >>> from_json('{"orders": {"0": 5}}')
        {'orders': {0: 5}}
    """
    return from_offsets(json.loads(text))


def from_offsets(offsets: dict[str, Any]) -> Vector:
    """A vector from Spark's offset: the same with partitions as text."""
    return {
        topic: {int(partition): int(offset) for partition, offset in partitions.items()}
        for topic, partitions in offsets.items()
    }


def to_json(vector: Vector) -> str:
    """Write a vector; equal vectors give equal text.

    Example:
        >>> to_json({"orders": {1: 7, 0: 5}})
        '{"orders": {"0": 5, "1": 7}}'
    """
    ordered = {topic: {str(p): vector[topic][p] for p in sorted(vector[topic])} for topic in sorted(vector)}
    return json.dumps(ordered)


def is_topic(name: str) -> bool:
    """Whether a name in a vector is that of a topic."""
    return not name.startswith("$")


def records(vector: Vector) -> Vector:
    """The topics alone.

    Example:
        >>> records({"orders": {0: 5}, "$clock": {0: 1700000000000}})
        {'orders': {0: 5}}
    """
    return {name: ends for name, ends in vector.items() if is_topic(name)}


def told(vector: Vector) -> Vector:
    """What there is besides the topics."""
    return {name: ends for name, ends in vector.items() if not is_topic(name)}


def clock_of(vector: Vector) -> int | None:
    """The wall clock of the micro-batch that ends here; None if it was not recorded."""
    return vector.get(CLOCK, {}).get(0)


def given_times(vector: Vector) -> Vector:
    """The stream times that partitions were given, because they were quiet or by hand."""
    return {name: times for name, times in vector.items() if name.startswith((QUIET, MOVED))}


def topic_of(name: str) -> str:
    """Of which topic times were given.

    Example:
        >>> topic_of("$time:orders")
        'orders'
    """
    return name.partition(":")[2]


def positions(vector: Vector) -> Iterator[tuple[str, int, int]]:
    """Topic, partition and offset, in order."""
    for topic in filter(is_topic, sorted(vector)):
        for partition in sorted(vector[topic]):
            yield topic, partition, vector[topic][partition]


def offset_at(vector: Vector, topic: str, partition: int, default: int = 0) -> int:
    """The offset of one partition; a partition that the vector does not name has not been read."""
    return vector.get(topic, {}).get(partition, default)


def lag(start: Vector, end: Vector) -> int:
    """How many records lie between two vectors."""
    return sum(max(0, offset - offset_at(start, topic, partition)) for topic, partition, offset in positions(end))


def reached(vector: Vector, target: Vector) -> bool:
    """Whether a vector is at or behind a target in all that the target names."""
    return all(offset_at(vector, name, p) >= offset for name, ends in target.items() for p, offset in ends.items())


def capped(vector: Vector, limit: Vector) -> Vector:
    """A vector that goes no further than a limit; partitions that the limit does not name are left out."""
    return {
        topic: {p: min(offset, limit[topic][p]) for p, offset in partitions.items() if p in limit[topic]}
        for topic, partitions in vector.items()
        if topic in limit
    }


def admitted(start: Vector, available: Vector, max_records: int) -> Vector:
    """Where a batch of at most so many records ends.

    Every partition gets the same share; what one does not need goes to the others. A vector is a function of the two
    vectors and the limit alone, so asking again gives the same batch.

    Example:
        >>> admitted({"t": {0: 0, 1: 0}}, {"t": {0: 2, 1: 100}}, 10)
        {'t': {0: 2, 1: 8}}
    """
    waiting = {
        (topic, partition): offset - offset_at(start, topic, partition)
        for topic, partition, offset in positions(available)
    }
    taken = _shares({place: count for place, count in waiting.items() if count > 0}, max_records)
    end: Vector = {}
    for topic, partition, offset in positions(available):
        begin = offset_at(start, topic, partition)
        # A topic that was deleted and made again ends before the vector; going back would read records twice.
        reachable = begin + taken.get((topic, partition), 0)
        end.setdefault(topic, {})[partition] = reachable if waiting[topic, partition] > 0 else max(begin, offset)
    return end


def first_of_all(topics: Collection[str], initial: Vector, start: Vector, available: Vector, target: Vector) -> Vector:
    """What may be read where some topics have to be read to a target before there is anything of the others.

    Args:
        topics: The topics that come first.
        initial: Where the first batch of all has begun.
        start: Where the next batch begins.
        available: Where the topics end.
        target: How far the first topics have to be read; what they get after that comes with the others.

    Example:
        >>> ends = {"orders": {0: 9}, "people": {0: 4}}
        >>> first_of_all(["people"], {}, {"people": {0: 1}}, ends, ends)
        {'orders': {0: 0}, 'people': {0: 4}}
        >>> first_of_all(["people"], {}, {"people": {0: 4}}, ends, ends)
        {'orders': {0: 9}, 'people': {0: 4}}
    """
    begun = any(offset > offset_at(initial, t, p) for t, p, offset in positions(start) if t not in topics)
    if begun or reached(start, {topic: target[topic] for topic in topics if topic in target}):
        return available
    return {
        topic: ends if topic in topics else {p: offset_at(start, topic, p, offset_at(initial, topic, p)) for p in ends}
        for topic, ends in available.items()
    }


def _shares(waiting: dict[tuple[str, int], int], budget: int) -> dict[tuple[str, int], int]:
    """Divide a budget evenly; those that need less leave the rest to the others."""
    shares: dict[tuple[str, int], int] = {}
    remaining = sorted(waiting.items(), key=lambda item: (item[1], item[0]))
    while remaining:
        place, count = remaining[0]
        shares[place] = min(count, max(0, budget) // len(remaining))
        budget -= shares[place]
        remaining.pop(0)
    if shares and not any(shares.values()):
        # Fewer records than partitions were asked for: one record still moves, else nothing ever would.
        shares[min(shares)] = 1
    return shares


def completed(end: Vector, start: Vector) -> Vector:
    """An end that keeps the positions of the partitions that it does not name.

    Example:
        >>> completed({"a": {0: 5}}, {"a": {0: 2, 1: 3}, "b": {0: 1}})
        {'a': {0: 5, 1: 3}, 'b': {0: 1}}
    """
    return {topic: {**start.get(topic, {}), **end.get(topic, {})} for topic in {**start, **end}}
