"""The order in which rows of several partitions count as having arrived.

Steps that depend on the order of arrival see the rows of a live micro-batch by stream time and position. A
recalculation puts many such batches into one, so it needs to know where each of them ended: the order log. The epoch of
a row is the first of those vectors that covers it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from everstate.kernels.rows import OFF, PART, STREAM_TIME, TOPIC

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

#: By row, which of the recorded micro-batches it was in.
EPOCH: Final = "$epoch"
_ARRIVAL: Final = [STREAM_TIME, TOPIC, PART, OFF]


class Order:
    """Epochs of rows.

    Args:
        vectors: Where live micro-batches ended, the oldest first: topic to partition to the next offset.
        topics: The unit's topics; rows name theirs by its place here.
    """

    def __init__(self, vectors: Sequence[Mapping[str, Mapping[int, int]]], topics: Sequence[str]) -> None:
        self._last = len(vectors)
        #: The wall clock of each micro-batch, in milliseconds; None if it was not recorded.
        self.clocks: npt.NDArray[np.int64] | None = None
        #: By topic and partition, the first micro-batch that knew of it.
        self.begins: dict[tuple[int, int], int] = {}
        #: By micro-batch, the stream times that partitions were given: topic, partition, time.
        self.given: dict[int, list[tuple[int, int, int]]] = {}
        self._ends: dict[tuple[int, int], np.ndarray] = {}
        for number, topic in enumerate(topics):
            for partition in {p for vector in vectors for p in vector.get(topic, {})}:
                ends = [vector.get(topic, {}).get(partition, 0) for vector in vectors]
                self._ends[number, partition] = np.maximum.accumulate(np.array(ends, np.int64))

    @property
    def count(self) -> int:
        """How many recorded micro-batches there are."""
        return self._last

    @classmethod
    def of_columns(
        cls,
        ends: Mapping[tuple[str, int], np.ndarray],
        count: int,
        topics: Sequence[str],
        *,
        clocks: npt.NDArray[np.int64] | None = None,
        given: Iterable[tuple[int, str, int, int]] = (),
    ) -> Order:
        """The same from where the micro-batches ended by topic and partition, for as many as there are in months.

        Args:
            ends: By topic and partition, the end of each micro-batch; below 0 where it has none.
            count: How many micro-batches there were.
            topics: The unit's topics.
            clocks: The wall clock of each, in milliseconds.
            given: Stream times that partitions were given: micro-batch, topic, partition, time.
        """
        order = cls([], topics)
        order._last, order.clocks = count, clocks
        for number, topic, partition, time in given:
            order.given.setdefault(number, []).append((topics.index(topic), partition, time))
        for (topic, partition), column in ends.items():
            if topic in topics:
                place = (topics.index(topic), partition)
                order._ends[place] = np.maximum.accumulate(np.maximum(column, 0))
                order.begins[place] = int(np.argmax(column >= 0)) if count else 0
        return order

    def steps(
        self, first: Collection[int], then: Collection[int], *, apart: bool = False, changing: bool = False
    ) -> npt.NDArray[np.int64]:
        """By micro-batch, the number of its step: they are one step until rows of `first` come after some of `then`.

        Args:
            first: Topics whose rows count before those of others in a micro-batch.
            then: Topics whose rows depend on them.
            apart: Every micro-batch may have rows that depend on them.
            changing: In every micro-batch something may change that others depend on.

        Example:
            >>> order = Order([{"s": {0: n}, "t": {0: m}} for n, m in [(0, 5), (2, 5), (4, 5), (4, 6), (5, 7)]], "st")
            >>> order.steps({1}, {0}).tolist()
            [0, 0, 0, 1, 1, 2]
        """
        comes, meets = self._advancing(first) | changing, self._advancing(then) | apart
        before = np.concatenate([[0], np.cumsum(meets)])[:-1]  # how many before this one have rows of `then`
        last = np.maximum.accumulate(np.where(comes, np.arange(len(comes)), -1))  # the newest with rows of `first`
        since = np.concatenate([[-1], last])[:-1]
        begins = comes & (before > np.where(since >= 0, before[since], 0))
        return np.cumsum(begins)

    def _advancing(self, topics: Collection[int]) -> npt.NDArray[np.bool_]:
        """Whether each micro-batch has read records of these topics; so may what comes after all of them."""
        found = np.zeros(self._last, np.bool_)
        for (topic, _), column in self._ends.items():
            if topic in topics:
                found |= np.diff(column, prepend=0) > 0
        return np.append(found, True)

    def cuts(self, topic: int, partition: int, start: int, end: int) -> npt.NDArray[np.int64]:
        """The offsets inside a range of a partition at which micro-batches ended."""
        ends = self._ends.get((topic, partition))
        if ends is None:
            return np.empty(0, np.int64)
        first, last = np.searchsorted(ends, [start, end - 1], side="right")
        return np.unique(ends[first:last])

    def epochs(self, rows: pl.DataFrame) -> pl.Series:
        """By row, the first vector that covers it; what none covers came after all of them."""
        found = np.full(rows.height, self._last, np.int64)
        topics, partitions, offsets = (rows[name].to_numpy() for name in (TOPIC, PART, OFF))
        for (topic, partition), ends in self._ends.items():
            here = (topics == topic) & (partitions == partition)
            found[here] = np.searchsorted(ends, offsets[here], side="right")
        return pl.Series(EPOCH, found)


def by_arrival(rows: pl.DataFrame, order: Order | None) -> pl.DataFrame:
    """Rows of a stream in the order in which they count as having arrived.

    Args:
        rows: A rows frame.
        order: Where earlier micro-batches ended; None for the rows of one live micro-batch.

    Example:
        >>> rows = pl.DataFrame({STREAM_TIME: [1, 2], TOPIC: [0, 0], PART: [0, 1], OFF: [7, 3]})
        >>> by_arrival(rows, None)[OFF].to_list()
        [7, 3]
        >>> by_arrival(rows, Order([{"t": {0: 5, 1: 4}}, {"t": {0: 9, 1: 4}}], ["t"]))[OFF].to_list()
        [3, 7]
    """
    if order is None:
        return rows.sort(_ARRIVAL, maintain_order=True)
    return rows.with_columns(order.epochs(rows)).sort([EPOCH, *_ARRIVAL], maintain_order=True).drop(EPOCH)
