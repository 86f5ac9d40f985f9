"""Where many micro-batches ended, as one table of numbers: a month of them is millions of vectors.

A vector as a dictionary takes half a kilobyte; as a row of differences to the one before, compressed, some bytes.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Self, overload

import numpy as np
import numpy.typing as npt

from everstate.log.vectors import CLOCK, is_topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from everstate.log.descriptions import Vector

_Numbers = npt.NDArray[np.int64]
#: The end in a partition that a vector does not name.
UNNAMED: Final = -1
_LENGTH: Final = struct.Struct("<II")


@dataclass(frozen=True, eq=False)
class Stops(Sequence["Vector"]):
    """Vectors, the oldest first; a sequence of them, without being that many objects.

    Attributes:
        topics: Every vector names these, if only with no partition.
        places: Topic and partition of each column.
        ends: A row for each vector.
        times: When each batch was committed, in milliseconds.
    """

    topics: tuple[str, ...]
    places: tuple[tuple[str, int], ...]
    ends: _Numbers
    times: _Numbers

    @classmethod
    def of(cls, vectors: Sequence[Vector], times: Iterable[int] | None = None) -> Self:
        """These vectors.

        Example:
            >>> list(Stops.of([{"t": {0: 5}}, {"t": {0: 9, 1: 2}}]))
            [{'t': {0: 5}}, {'t': {0: 9, 1: 2}}]
        """
        places = sorted({(topic, p) for vector in vectors for topic, partitions in vector.items() for p in partitions})
        ends = np.full((len(vectors), len(places)), UNNAMED, np.int64)
        for column, (topic, partition) in enumerate(places):
            ends[:, column] = [vector.get(topic, {}).get(partition, UNNAMED) for vector in vectors]
        when = np.fromiter(times, np.int64) if times is not None else np.zeros(len(vectors), np.int64)
        return cls(tuple(sorted({topic for vector in vectors for topic in vector})), tuple(places), ends, when)

    @classmethod
    def joined(cls, parts: Sequence[Stops]) -> Self:
        """One after the other."""
        places = tuple(sorted({place for part in parts for place in part.places}))
        ends = np.full((sum(map(len, parts)), len(places)), UNNAMED, np.int64)
        row = 0
        for part in parts:
            for column, place in enumerate(part.places):
                ends[row : row + len(part), places.index(place)] = part.ends[:, column]
            row += len(part)
        times = np.concatenate([np.empty(0, np.int64), *(part.times for part in parts)])
        return cls(tuple(sorted({topic for part in parts for topic in part.topics})), places, ends, times)

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, index: int) -> Vector: ...
    @overload
    def __getitem__(self, index: slice) -> Stops: ...
    def __getitem__(self, index: int | slice) -> Vector | Stops:
        if isinstance(index, slice):
            return Stops(self.topics, self.places, self.ends[index], self.times[index])
        vector: Vector = {topic: {} for topic in self.topics}
        for (topic, partition), end in zip(self.places, self.ends[index].tolist(), strict=True):
            if end != UNNAMED:
                vector[topic][partition] = end
        return vector

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False
        return all(mine == yours for mine, yours in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash((self.places, len(self)))

    def column(self, topic: str, partition: int) -> _Numbers:
        """Where each vector ends in one partition."""
        return self.ends[:, self.places.index((topic, partition))]

    def columns(self) -> dict[tuple[str, int], _Numbers]:
        """Where each vector ends, by topic and partition."""
        return {place: self.ends[:, number] for number, place in enumerate(self.places)}

    def advancing(self) -> Stops:
        """Without vectors that do not go beyond the ones before them."""
        if not len(self):
            return self
        ends = np.maximum(self.ends, 0)
        steps = np.diff(ends, axis=0)
        if (steps >= 0).all():
            return self._taken(np.concatenate([[True], (steps > 0).any(axis=1)]))
        # A source that was left out, or made again, goes back; in between, the ends only grow.
        kept = np.zeros(len(self), np.bool_)
        last = np.full(ends.shape[1], -1, np.int64)
        cuts = [0, *(np.flatnonzero((steps < 0).any(axis=1)) + 1).tolist(), len(self)]
        for first, stop in pairwise(cuts):
            beyond = np.flatnonzero((ends[first:stop] > last).any(axis=1))
            if len(beyond):
                begin = first + int(beyond[0])
                kept[begin] = True
                kept[begin + 1 : stop] = (steps[begin : stop - 1] > 0).any(axis=1)
                last = ends[stop - 1]
        return self._taken(kept)

    def _taken(self, rows: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> Stops:
        return Stops(self.topics, self.places, self.ends[rows], self.times[rows])

    def after(self, begin: Vector, most: int) -> Vector | None:
        """The vector at which a batch ends that begins here: the furthest for so many records, or the next.

        Example:
            >>> stops = Stops.of([{"t": {0: 5}}, {"t": {0: 9}}, {"t": {0: 40}}])
            >>> [stops.after({"t": {0: begin}}, most=10) for begin in (0, 9, 40)]
            [{'t': {0: 9}}, {'t': {0: 40}}, None]
        """
        if not len(self):
            return None
        beyond = np.maximum(self.ends - self._row(begin), 0)
        counts = np.array([is_topic(name) for name, _ in self.places], np.bool_)
        lag = beyond[:, counts].sum(axis=1)
        ahead = np.flatnonzero((beyond > 0).any(axis=1))
        within = ahead[lag[ahead] <= most]
        chosen = within[-1:] if len(within) else ahead[:1]
        return self[int(chosen[0])] if len(chosen) else None

    def passed(self, vector: Vector) -> int:
        """How many of them a vector has reached, from the first on.

        Example:
            >>> Stops.of([{"t": {0: 5}}, {"t": {0: 9}}, {"t": {0: 40}}]).passed({"t": {0: 10}})
            2
        """
        beyond = np.flatnonzero((self.ends > self._row(vector)).any(axis=1))
        return int(beyond[0]) if len(beyond) else len(self)

    def _row(self, vector: Vector) -> _Numbers:
        return np.array([vector.get(name, {}).get(partition, 0) for name, partition in self.places], np.int64)

    def having(self, names: Iterable[str]) -> Stops:
        """With these names alone.

        Example:
            >>> list(Stops.of([{"t": {0: 5}, "u": {0: 1}}]).having(["t"]))
            [{'t': {0: 5}}]
        """
        kept = set(names)
        columns = [number for number, (name, _) in enumerate(self.places) if name in kept]
        places = tuple(self.places[number] for number in columns)
        return Stops(tuple(sorted(kept)), places, self.ends[:, columns], self.times)

    def clocked(self) -> Stops:
        """With the wall clock of each: where none was recorded, it is when the batch was committed.

        What was recorded is never changed: the log's clock may have been set back since, or be a different one.

        Example:
            >>> list(Stops.of([{"t": {0: 5}}, {"t": {0: 6}, "$clock": {0: 90}}], [70, 95]).clocked())
            [{'$clock': {0: 70}, 't': {0: 5}}, {'$clock': {0: 90}, 't': {0: 6}}]
            >>> list(Stops.of([{"t": {0: 5}}, {"t": {0: 6}, "$clock": {0: 60}}], [70, 65]).clocked())
            [{'$clock': {0: 60}, 't': {0: 5}}, {'$clock': {0: 60}, 't': {0: 6}}]
        """
        place = (CLOCK, 0)
        known = self.column(*place) if place in self.places else np.full(len(self), UNNAMED, np.int64)
        lacking = known == UNNAMED
        ahead = np.where(lacking, np.iinfo(np.int64).max, known)
        least = np.minimum.accumulate(ahead[::-1])[::-1]
        clock = np.maximum.accumulate(np.where(lacking, np.minimum(self.times, least), known))
        rest = [number for number, each in enumerate(self.places) if each != place]
        ends = np.column_stack([clock, self.ends[:, rest]]) if len(self) else np.empty((0, len(rest) + 1), np.int64)
        topics = tuple(sorted({*self.topics, CLOCK}))
        return Stops(topics, (place, *(self.places[number] for number in rest)), ends, self.times)

    def with_columns(self, columns: Mapping[tuple[str, int], _Numbers]) -> Stops:
        """With other numbers in some places."""
        ends = self.ends.copy()
        for place, column in columns.items():
            ends[:, self.places.index(place)] = column
        return Stops(self.topics, self.places, ends, self.times)

    def to_bytes(self) -> bytes:
        """All of it, small: differences to the row before, bytes of equal weight side by side, compressed."""
        head = json.dumps([self.topics, self.places, len(self)], separators=(",", ":")).encode()
        columns = np.column_stack([self.times, self.ends])
        columns[1:] -= columns[:-1].copy()
        numbers = np.ascontiguousarray(columns.T, "<i8")
        body = zlib.compress(numbers.view(np.uint8).reshape(-1, 8).T.tobytes(), 6)
        return _LENGTH.pack(len(head), len(body)) + head + body

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What `to_bytes` wrote.

        Example:
            >>> stops = Stops.of([{"t": {0: 5}}, {"t": {0: 9}}], [10, 20])
            >>> Stops.from_bytes(stops.to_bytes()) == stops
            True
        """
        head, body = _LENGTH.unpack_from(data)
        topics, places, count = json.loads(data[_LENGTH.size : _LENGTH.size + head])
        raw = np.frombuffer(zlib.decompress(data[_LENGTH.size + head : _LENGTH.size + head + body]), np.uint8)
        columns = np.ascontiguousarray(raw.reshape(8, -1).T).view("<i8").reshape(len(places) + 1, count)
        rows = np.cumsum(columns.T.astype(np.int64), axis=0)
        named = tuple((topic, partition) for topic, partition in places)
        return cls(tuple(topics), named, np.ascontiguousarray(rows[:, 1:]), rows[:, 0])

    def __reduce__(self) -> tuple[object, ...]:
        # A function of the module: cloudpickle would take a class method by value, with all that the module holds.
        return restored, (self.to_bytes(),)


def restored(data: bytes) -> Stops:
    """What `Stops.to_bytes` has written."""
    return Stops.from_bytes(data)
