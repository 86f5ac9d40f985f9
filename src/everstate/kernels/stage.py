"""Runs a stage of a unit: the nodes in order, each by its kernel, rows passed on by edge.

`ingest` is stage 0, where records are read; `run_stage` is every later stage, on one shard. `pipeline.py` calls both,
for Spark and for everyone else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from everstate.kernels import stream_time
from everstate.kernels.ledger import Ledger
from everstate.kernels.migration.convert import migrate
from everstate.kernels.migration.tables import table_of
from everstate.kernels.operations.kernel import EndKernel, RowKernel, StateKernel
from everstate.kernels.operations.kernels import KERNELS, state_kernel
from everstate.kernels.parcel import (
    COUNTS,
    DEAD_LETTERS,
    MARKS,
    OUT,
    PARTS,
    RECORDS,
    SIDES,
    SPLITS,
    TOLD,
    Parcel,
)
from everstate.kernels.records.times import heard
from everstate.kernels.rows import PART, STREAM_TIME, TOPIC, TS, empty
from everstate.kernels.steps import apart, noted
from everstate.topology.nodes import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from everstate.kernels.migration.convert import Migration
    from everstate.kernels.order import Order
    from everstate.kernels.shard import Shard
    from everstate.kernels.steps import Step
    from everstate.topology.unit import Edge, Unit

#: Is shown the rows that a node gives, by its number.
Witness: TypeAlias = "Callable[[int, pl.DataFrame], None]"


def ingest(
    unit: Unit,
    topic: str,
    partition: int,
    records: pl.DataFrame,
    ledger: Ledger,
    witness: Witness | None = None,
    order: Order | None = None,
    *,
    step: int | None = None,
) -> list[Parcel]:
    """Stage 0: decode the records of one split and run the stateless nodes downstream of their sources.

    Args:
        unit: The unit.
        topic: Where the records come from.
        partition: Its partition.
        records: key, value, ts and offset of a contiguous range, in offset order.
        ledger: Takes what cannot be decoded.
        witness: Is shown the rows that each node gives.
        order: The recorded micro-batches, if several of them are repeated.
        step: The number of the step to which the records belong; None if there is but one.

    Returns:
        Parcels for later stages, among them the mark of this split; dead letters stay in the ledger.
    """
    place = unit.topics.index(topic)
    if records.is_empty():
        return [Parcel(1, MARKS, SPLITS, stream_time.mark(place, partition, 0, 0, None))] if unit.hears_all else []
    given, times = _decoded(unit, topic, partition, records, ledger)
    start, end = records["offset"][0], records["offset"][-1] + 1
    whole = stream_time.mark(place, partition, start, end, times[TS].max())  # type: ignore[arg-type]  # of integers
    parcels = [Parcel(1, MARKS, SPLITS, whole)]
    if order is not None and unit.timed:
        cuts = order.cuts(place, partition, start, end)
        parcels.append(Parcel(1, MARKS, PARTS, stream_time.parts(whole, times, cuts)))
    for number, node in unit.members(0):
        feeds = [given[edge.source] for edge in unit.into(number) if edge.source in given]
        kernel = KERNELS[type(node)]
        if feeds and isinstance(kernel, RowKernel):
            given[number] = kernel.update(node, _together(feeds), ledger)
        if number in given:
            if witness is not None:
                witness(number, given[number])
            parcels += _sent(unit, number, given[number], ledger, step)
    return parcels


def _decoded(
    unit: Unit, topic: str, partition: int, records: pl.DataFrame, ledger: Ledger
) -> tuple[dict[int, pl.DataFrame], pl.DataFrame]:
    """The rows of the sources of a topic, and offset and time of all that moves time.

    Where time decides, what cannot be decoded has none: it must not close a window for what can. Elsewhere stream time
    only orders rows, and every record counts, as it always has.
    """
    sources = [(n, node) for n, node in unit.members(0) if not node.inputs and node.endpoint == topic]
    streams = [number for number, node in sources if node.kind is Kind.STREAM]
    said = heard(records) if streams and unit.hears_all else None
    order, times = stream_time.of_records(records, said)
    place = unit.topics.index(topic)
    positioned = records.with_columns(
        pl.lit(place, pl.UInt16).alias(TOPIC), pl.lit(partition, pl.Int32).alias(PART), order
    )
    rows: dict[int, pl.DataFrame] = {}
    for number, node in sources:
        kernel = KERNELS[type(node)]
        if isinstance(kernel, RowKernel):
            rows[number] = kernel.update(node, positioned, ledger)
    if not (unit.dated and streams):
        return rows, times
    frames, times = stream_time.of_rows([rows[number] for number in streams], said)
    return {**rows, **dict(zip(streams, frames, strict=True))}, times


def run_stage(
    unit: Unit,
    stage: int,
    arrivals: list[Parcel],
    shard: Shard,
    migration: Migration | None = None,
    witness: Witness | None = None,
) -> list[Parcel]:
    """One later stage on one shard.

    Args:
        unit: The unit.
        stage: Which stage.
        arrivals: The parcels addressed to it, from all tasks and earlier stages.
        shard: The shard's state; the caller closes it.
        migration: The state is that of an earlier version: it is converted first, and the table is derived from it.
        witness: Is shown the rows that each node gives.

    Returns:
        Parcels for later stages and out of the unit; marks are passed on as long as a stage follows.
    """
    marks = [parcel for parcel in arrivals if parcel.node == MARKS]
    _take_told(unit, marks, shard)
    before, clock = dict(shard.stream_times), shard.clock
    sent = [Parcel(stage + 1, MARKS, parcel.port, parcel.frame) for parcel in marks if stage < unit.depth]
    shard.building = unit.building
    if migration is not None:
        migrate(unit, stage, shard, migration)
    order, steps = shard.order, apart(unit, arrivals, shard.order, shard.repeats)
    if unit.goes_one_by_one:
        shard.order = None  # each step is one micro-batch, as a live one is
    last: list[pl.DataFrame] = []
    for place, step in enumerate(steps):
        shard.clock = clock if place == len(steps) - 1 else step.clock(order, clock)
        given = _run(unit, stage, step, shard, None if place else migration, witness)
        for number, rows in given.items():
            if unit.nodes[number] is unit.output:
                last.append(rows)
            else:
                sent += _sent(unit, number, rows, shard.ledger, step.number)
    if last:
        settled = migration is None and len(steps) == 1
        shard.times_before = before
        sent.append(_published(unit, _together(last), shard, settled=settled))
    return [parcel for parcel in sent if parcel.frame.height or parcel.stage == OUT]


def _run(
    unit: Unit,
    stage: int,
    step: Step,
    shard: Shard,
    migration: Migration | None,
    witness: Witness | None,
) -> dict[int, pl.DataFrame]:
    """A micro-batch, or a step of one: the rows that each node of the stage gives, and those that the last one gets."""
    arrivals = step.arrivals
    shard.repeats, shard.times_before = step.repeats, dict(shard.stream_times)
    splits = _take_marks(arrivals, shard)
    given: dict[int, pl.DataFrame] = {}
    for number, node in unit.members(stage):
        inputs = [_input(unit, edge, arrivals, given, splits) for edge in unit.into(number)]
        kernel = KERNELS[type(node)]
        if isinstance(kernel, EndKernel):
            given[number] = inputs[0]
            continue
        shard.feeds = unit.clocks[number]
        shard.frontier = stream_time.frontier(shard.stream_times, shard.feeds) if node.timed else None
        before = table_of(unit, number, shard) if migration is not None and number == migration.derives_from else None
        if all(rows.is_empty() for rows in inputs) and not (node.timed or node.clocked):
            rows = empty(node.schema.polars)
        elif isinstance(kernel, StateKernel):
            moves = unit.followed_by_order[number]
            rows = kernel.update(node, unit.stores[number], inputs, shard, emit_moves=moves)
        else:
            rows = kernel.update(node, _together(inputs), shard.ledger)
        if before is not None:
            rows = pl.concat([before, rows.select(before.columns)])
        given[number] = rows
        if witness is not None:
            witness(number, rows)
    return given


def _take_told(unit: Unit, heard: list[Parcel], shard: Shard) -> None:
    """Take what is heard of a micro-batch as a whole."""
    for parcel in heard:
        if parcel.port == TOLD:
            clock, first, last = parcel.frame.row(0)
            shard.clock, shard.repeats = clock, None if first is None else (first, last)
    marks = [parcel.frame for parcel in heard if parcel.port == SPLITS]
    if marks and unit.timed:
        watched = pl.concat(marks).filter(pl.col(TOPIC).is_in(unit.watched))
        stream_time.require_known(shard.stream_times, watched, unit.topics)


def _take_marks(arrivals: list[Parcel], shard: Shard) -> pl.DataFrame | None:
    """Take what is heard of time; gives the stream time before each split."""
    by_port: dict[int, list[pl.DataFrame]] = {}
    for parcel in arrivals:
        if parcel.node == MARKS:
            by_port.setdefault(parcel.port, []).append(parcel.frame)
    shard.marks = pl.concat(by_port[PARTS]) if PARTS in by_port else None
    return stream_time.advance(shard.stream_times, pl.concat(by_port[SPLITS])) if SPLITS in by_port else None


def _together(frames: list[pl.DataFrame]) -> pl.DataFrame:
    return frames[0] if len(frames) == 1 else pl.concat(frames, how="diagonal")


def _published(unit: Unit, rows: pl.DataFrame, shard: Shard, *, settled: bool) -> Parcel:
    """The records of the output; `settled` if the rows are those of one micro-batch, as the last step left them."""
    number = len(unit.nodes) - 1
    kernel = KERNELS[type(unit.output)]
    assert isinstance(kernel, EndKernel)
    sources = unit.topics if unit.caused else ()
    shard.feeds = unit.clocks[number]
    settled = settled and _is_settled(unit, number)
    records = kernel.records(unit.output, rows, shard, settled=settled, sources=sources)
    return Parcel(OUT, number, RECORDS, records)


def _is_settled(unit: Unit, number: int) -> bool:
    """Whether an output gets the changes of a step as it left them: one per key and side, each with an effect."""
    (edge,) = unit.into(number)
    kernel = state_kernel(unit.nodes[edge.source])
    settles = kernel is not None and kernel.settled
    return settles and not edge.exchange and not unit.followed_by_order[edge.source]


def farewell(unit: Unit, ledger: Ledger) -> list[Parcel]:
    """What a ledger holds, as parcels out of the unit."""
    last = len(unit.nodes) - 1
    parcels = []
    letters = ledger.letters()
    if letters.height:
        parcels.append(Parcel(OUT, last, DEAD_LETTERS, letters))
    aside = ledger.sides()
    for place, side in enumerate(unit.sides):
        if side.topic in aside:
            parcels.append(Parcel(OUT, last, SIDES + place, aside[side.topic]))
    if ledger.counts:
        counts = {"name": list(ledger.counts), "count": list(ledger.counts.values())}
        parcels.append(Parcel(OUT, last, COUNTS, pl.DataFrame(counts, schema={"name": pl.String, "count": pl.Int64})))
    return parcels


def _input(
    unit: Unit, edge: Edge, arrivals: list[Parcel], given: dict[int, pl.DataFrame], splits: pl.DataFrame | None
) -> pl.DataFrame:
    """The rows on one port: from a node of this stage, or from all parcels that arrived for it."""
    if not edge.exchange:
        return given[edge.source]
    frames = [p.frame for p in arrivals if (p.node, p.port) == (edge.target, edge.port)]
    if not frames:
        return _nothing(unit, edge)
    rows = pl.concat(frames, how="diagonal")
    if splits is not None and unit.stages[edge.source] == 0 and STREAM_TIME in rows.columns:
        rows = stream_time.across_splits(rows, splits)
    return rows


def _nothing(unit: Unit, edge: Edge) -> pl.DataFrame:
    """No rows, in the shape that the target would have got."""
    # Preparing no rows reports nothing, so the ledger is not needed.
    return _prepared(unit, edge, empty(unit.nodes[edge.source].schema.polars), _SILENT)


def _sent(unit: Unit, number: int, rows: pl.DataFrame, ledger: Ledger, step: int | None) -> list[Parcel]:
    """Parcels for the edges that leave the stage, their rows prepared for the node that takes them."""
    parcels = []
    for edge in unit.out_of(number):
        if edge.exchange and rows.height:
            frame = _prepared(unit, edge, rows, ledger)
            parcel = Parcel(unit.stages[edge.target], edge.target, edge.port, frame, edge.everywhere)
            parcels.append(noted(parcel, step))
    return parcels


def _prepared(unit: Unit, edge: Edge, rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    target = unit.nodes[edge.target]
    kernel = state_kernel(target)
    if kernel is None:
        return rows
    return kernel.prepare(target, edge.port, rows, ledger, emit_moves=unit.followed_by_order[edge.target])


_SILENT = Ledger((), "skip")
