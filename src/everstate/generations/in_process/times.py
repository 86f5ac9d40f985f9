"""Where somebody has moved stream time by hand, as a test does: between two records of each partition.

A recalculation finds it in the same place, whatever its micro-batches are.
"""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING

from everstate.kernels.parcel import MARKS, Parcel
from everstate.kernels.stream_time import mark
from everstate.log import vectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.log.descriptions import Vector


class Times:
    """Stream times by topic, partition and offset: records from there on are not older than that.

    Example:
        >>> times = Times()
        >>> times.move({"orders": {0: 5}}, 1000)
        >>> times.cuts("orders", 0, 0, 9), times.cuts("orders", 0, 6, 9)
        ([5], [])
    """

    def __init__(self) -> None:
        self._moved: dict[tuple[str, int], list[tuple[int, int]]] = {}

    def copy(self) -> Times:
        """The same at this moment; what is added to one does not show in the other."""
        other = Times()
        other._moved = {place: list(moved) for place, moved in self._moved.items()}
        return other

    def move(self, position: Vector, ts: int) -> None:
        """From this position on, stream time is at least `ts`."""
        for topic, partition, offset in vectors.positions(position):
            insort(self._moved.setdefault((topic, partition), []), (offset, ts))

    def cuts(self, topic: str, partition: int, start: int, end: int) -> list[int]:
        """The offsets inside a range at which it has to be cut, so that a mark can stand between two splits."""
        moved = self._moved.get((topic, partition), ())
        return sorted({offset for offset, _ in moved if start < offset < end})

    def marks(self, topics: Sequence[str], start: Vector, end: Vector) -> list[Parcel]:
        """What the shards hear of it in a micro-batch."""
        return [
            Parcel(1, MARKS, 0, mark(topics.index(topic), partition, offset, offset, ts))
            for topic, partition, until in vectors.positions(end)
            for offset, ts in self._moved.get((topic, partition), ())
            if topic in topics and vectors.offset_at(start, topic, partition) <= offset <= until
        ]
