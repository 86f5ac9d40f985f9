"""The live micro-batches that a micro-batch repeats: for steps that depend on where each of them ended.

Live, a micro-batch is one *epoch*. A recalculation puts many recorded micro-batches into one, and a step that goes by
the clock, sets timers or depends on the order of arrival has to go through them one by one, as the live run did:

    for epoch in epochs(inputs, shard):
        # 1. what is due by the clock: epoch.clock
        # 2. the rows of tables, then those of streams: epoch.inputs, by port
        # 3. what is due by event time: epoch.frontier

An epoch may have no rows at all: then only the clock, or the stream time of a quiet partition, has moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from everstate.kernels.order import EPOCH, by_arrival
from everstate.kernels.rows import OFF
from everstate.kernels.stream_time import MARK, advance, frontier

if TYPE_CHECKING:
    import polars as pl

    from everstate.kernels.order import Order
    from everstate.kernels.shard import Shard


@dataclass(frozen=True, eq=False)
class Epoch:
    """One live micro-batch, as a step sees it.

    Attributes:
        inputs: The rows of each port in the order of arrival.
        clock: The recorded wall clock, in milliseconds; None if the output does not use it, or it is not known.
        frontier: The stream time that everything which feeds the step has reached after these rows; None if it is not
            known yet. Rows of later epochs have a stream time at or above it.
    """

    inputs: list[pl.DataFrame]
    clock: int | None
    frontier: int | None


def epochs(inputs: list[pl.DataFrame], shard: Shard) -> list[Epoch]:
    """The live micro-batches that this one repeats, in order; of a live one, that one alone.

    Rows are those of each live micro-batch exactly, as long as they have kept their position; so are its clock and its
    frontier.

    Args:
        inputs: What arrived on each port.
        shard: Knows where earlier micro-batches ended, and what was heard of time in this one.
    """
    if shard.order is None:
        return [Epoch([by_arrival(rows, None) for rows in inputs], shard.clock, shard.frontier)]
    parts = [
        {
            int(number): part
            for (number,), part in rows.with_columns(shard.order.epochs(rows))
            .partition_by(EPOCH, as_dict=True, include_key=False)
            .items()
        }
        for rows in inputs
    ]
    nothing = [rows.clear() for rows in inputs]
    found = []
    reached = frontier(shard.times_before, shard.feeds)
    heard = _heard(shard, shard.order)
    for number in sorted(set(heard).union(*parts)):
        clock, reached = heard.get(number, (_clock(shard, shard.order, number), reached))
        rows = [
            by_arrival(part[number], None) if number in part else none
            for part, none in zip(parts, nothing, strict=True)
        ]
        found.append(Epoch(rows, clock, reached))
    if shard.frontier is not None and (reached is None or reached < shard.frontier):
        # Time that was given beside the records and that the order log does not have, since the output did not read
        # these topics then: what follows this step takes it for reached, so whatever is due by then must come now.
        found.append(Epoch(nothing, shard.clock, shard.frontier))
    return found


def _heard(shard: Shard, order: Order) -> dict[int, tuple[int | None, int | None]]:
    """By epoch, the clock and how far everything that feeds the step had come then."""
    first, last = shard.repeats or (0, 0)
    given = {number: order.given[number] for number in order.given if first <= number < last}
    marks: dict[int, pl.DataFrame] = {}
    if shard.marks is not None:
        numbered = shard.marks.with_columns(order.epochs(shard.marks.rename({"start": OFF})))
        found = numbered.partition_by(EPOCH, as_dict=True, include_key=False)
        marks = {int(number): part.select(*MARK) for (number,), part in found.items()}
    known = dict(shard.times_before)
    begins = sorted(((number, place) for place, number in order.begins.items()), reverse=True)
    heard: dict[int, tuple[int | None, int | None]] = {}
    reached = None
    for number in sorted({*marks, *given, *(range(first, last) if order.clocks is not None else ())}):
        moved = number in marks or number in given or not heard
        while begins and begins[-1][0] <= number:
            topic, partition = begins.pop()[1]
            known.setdefault(f"{topic}/{partition}", None)
            moved = True
        if number in marks:
            advance(known, marks[number])
        for topic, partition, time in given.get(number, ()):
            place = f"{topic}/{partition}"
            known[place] = max(time, known.get(place) or time)
        if moved:
            reached = frontier(known, shard.feeds)
        heard[number] = (_clock(shard, order, number), reached)
    return heard


def _clock(shard: Shard, order: Order, number: int) -> int | None:
    """The clock of an epoch; what came after all that was recorded has that of this micro-batch."""
    if shard.clock is None or order.clocks is None or number >= len(order.clocks):
        return shard.clock
    return int(order.clocks[number])
