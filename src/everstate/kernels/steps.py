"""Live micro-batches that one repeats, gone through one after the other where rows look up what has come by then.

A row sees a table as it was at the end of the live micro-batch in which the row arrived. A recalculation puts many of
these into one, and what they leave of the table together is not what each of them left. So all that leads to such a
look-up, aggregations and joins among it, runs by *steps*: each is a micro-batch to the kernels, though all share one
state, and one call of Spark's.

Most micro-batches of a live run read no row of the table. As long as only rows that look something up come, or only
rows that are looked up, recorded micro-batches are one step.

Steps that depend on the order of arrival go by the position of rows, which says in which micro-batch each was read.
Where a join of streams or a timer feeds them, a row comes later than that, so every recorded micro-batch is a step of
its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from everstate.kernels.parcel import MARKS, SPLITS, TOLD, Parcel
from everstate.kernels.rows import OFF, PART, TOPIC, TS
from everstate.kernels.stream_time import MARK

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from everstate.kernels.order import Order
    from everstate.topology.unit import Unit

#: By row on its way between stages, the step in which it was given.
STEP: Final = "$step"


def cut(
    unit: Unit, topic: str, partition: int, records: pl.DataFrame, order: Order | None
) -> Iterator[tuple[int | None, pl.DataFrame]]:
    """The records of a split by step, in order; all of them under None where there is but one.

    Args:
        unit: The unit.
        topic: Where the records come from.
        partition: Its partition.
        records: A contiguous range, in offset order.
        order: Where earlier micro-batches ended, if this one repeats several of them.
    """
    if order is None or not _in_steps(unit) or records.is_empty():
        yield None, records
        return
    places = records.select(
        pl.lit(unit.topics.index(topic), pl.UInt16).alias(TOPIC),
        pl.lit(partition, pl.Int32).alias(PART),
        pl.col("offset").alias(OFF),
    )
    for (number,), part in records.with_columns(_steps(unit, places, order)).group_by(STEP, maintain_order=True):
        yield int(number), part.drop(STEP)


def noted(parcel: Parcel, step: int | None) -> Parcel:
    """A parcel that says in which step it was given."""
    if step is None:
        return parcel
    return replace(parcel, frame=parcel.frame.with_columns(pl.lit(step, pl.Int64).alias(STEP)))


@dataclass(frozen=True, eq=False)
class Step:
    """A micro-batch, or a step of one.

    Attributes:
        number: Its number; None if there is but one.
        repeats: Which of the recorded micro-batches it repeats, as a range; None for none.
        arrivals: What has arrived in it.
    """

    number: int | None
    repeats: tuple[int, int] | None
    arrivals: list[Parcel]

    def clock(self, order: Order | None, whole: int | None) -> int | None:
        """The recorded clock at its end.

        Args:
            order: Where earlier micro-batches ended, if it repeats some of them.
            whole: The clock at the end of the micro-batch of which it is a step.
        """
        if order is None or order.clocks is None or self.repeats is None or not self.repeats[1]:
            return whole
        return int(order.clocks[self.repeats[1] - 1])


def apart(unit: Unit, arrivals: list[Parcel], order: Order | None, repeats: tuple[int, int] | None) -> list[Step]:
    """The steps of what has arrived for a stage, in order.

    Args:
        unit: The unit.
        arrivals: The parcels.
        order: Where earlier micro-batches ended, if this one repeats several of them.
        repeats: Which of them it repeats, as a range.
    """
    if order is None or not _in_steps(unit):
        return [Step(None, repeats, arrivals)]
    found: dict[int, list[Parcel]] = {}
    for parcel in arrivals:
        frame = parcel.frame
        if parcel.node == MARKS:
            if parcel.port == TOLD:
                continue
            frame = frame.with_columns(_steps_of_marks(unit, frame, order))
        for (number,), part in frame.group_by(STEP, maintain_order=True):
            found.setdefault(int(number), []).append(replace(parcel, frame=part.drop(STEP), everywhere=False))
    numbers = _numbers(unit, order)
    first, last = repeats or (0, 0)
    if unit.timed or unit.clocked:  # time may have passed in steps without rows
        for number in np.unique(numbers[first:last]).tolist():
            found.setdefault(number, [])
    ends = np.searchsorted(numbers, np.arange(int(numbers[-1]) + 1), side="right")
    steps = []
    for number, arrived in sorted(found.items()):
        reached = last if number == max(found) else min(last, int(ends[number]))
        steps.append(Step(number, None if repeats is None else (first, max(first, reached)), arrived))
        first = max(first, reached)
    return _known_from_the_first(arrivals, steps or [Step(None, repeats, [])], order)


def _known_from_the_first(arrivals: list[Parcel], steps: list[Step], order: Order) -> list[Step]:
    """Steps of which the first has heard of all partitions: who waits for them must know that they are there.

    One that the topic got later is not there before the step in which it is given a time.
    """
    splits = [parcel.frame for parcel in arrivals if (parcel.node, parcel.port) == (MARKS, SPLITS)]
    if not splits:
        return steps
    places = pl.concat(splits).select(TOPIC, PART).unique(maintain_order=True)
    known_by = steps[0].repeats[1] if steps[0].repeats is not None else 0
    later = [place for place, begins in order.begins.items() if begins > known_by]
    places = places.filter([place not in later for place in places.iter_rows()])
    there = places.with_columns(start=pl.lit(0, pl.Int64), end=pl.lit(0, pl.Int64)).with_columns(
        pl.lit(None, pl.Int64).alias(TS)
    )
    known = Parcel(steps[0].arrivals[0].stage if steps[0].arrivals else 0, MARKS, SPLITS, there)
    return [replace(steps[0], arrivals=[known, *steps[0].arrivals]), *steps[1:]]


def _in_steps(unit: Unit) -> bool:
    return unit.goes_one_by_one or bool(unit.looking_up)


def _numbers(unit: Unit, order: Order) -> npt.NDArray[np.int64]:
    """By recorded micro-batch, the number of its step. Timers may look something up, too, and time delete what is."""
    if unit.goes_one_by_one:
        return np.arange(order.count + 1)
    by_time = {"apart": unit.looking_up_by_time, "changing": unit.looked_up_by_time}
    return order.steps(unit.looked_up, unit.looking_up, **by_time)


def _steps_of_marks(unit: Unit, marks: pl.DataFrame, order: Order) -> pl.Series:
    """By mark, its step; a time that a partition was given belongs to who gave it, not to the partition's next row."""
    epochs = order.epochs(marks.rename({"start": OFF})).to_numpy().copy()
    gave = {given: number for number, some in order.given.items() for given in some}
    for place, (topic, partition, start, end, time) in enumerate(marks.select(*MARK).iter_rows() if gave else ()):
        if start == end:
            epochs[place] = gave.get((topic, partition, time), epochs[place])
    return pl.Series(STEP, _numbers(unit, order)[epochs], dtype=pl.Int64)


def _steps(unit: Unit, rows: pl.DataFrame, order: Order) -> pl.Series:
    """By row, the step in which it arrived."""
    return pl.Series(STEP, _numbers(unit, order)[order.epochs(rows).to_numpy()], dtype=pl.Int64)
