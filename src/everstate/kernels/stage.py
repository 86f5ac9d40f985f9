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
from everstate.kernels.rows import OFF, PART, STREAM_TIME, TOPIC, TS, empty
from everstate.topology.nodes import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from everstate.kernels.migration.convert import Migration
    from everstate.kernels.order import Order
    from everstate.kernels.shard import Shard
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

    Returns:
        Parcels for later stages, among them the mark of this split; dead letters stay in the ledger.
    """
    place = unit.topics.index(topic)
    if records.is_empty():
        return [Parcel(1, MARKS, SPLITS, stream_time.mark(place, partition, 0, 0, None))] if unit.timed else []
    positioned = records.with_columns(
        pl.lit(place, pl.UInt16).alias(TOPIC),
        pl.lit(partition, pl.Int32).alias(PART),
        stream_time.within_split(),
    )
    given, times = _decoded(unit, topic, positioned, ledger)
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
            parcels += _sent(unit, number, given[number], ledger)
    return parcels


def _decoded(
    unit: Unit, topic: str, records: pl.DataFrame, ledger: Ledger
) -> tuple[dict[int, pl.DataFrame], pl.DataFrame]:
    """The rows of the sources of a topic, and offset and time of all that moves time.

    Where time decides, what cannot be decoded has none: it must not close a window for what can. Elsewhere stream time
    only orders rows, and every record counts, as it always has.
    """
    rows: dict[int, pl.DataFrame] = {}
    for number, node in unit.members(0):
        kernel = KERNELS[type(node)]
        if not node.inputs and node.endpoint == topic and isinstance(kernel, RowKernel):
            rows[number] = kernel.update(node, records, ledger)
    streams = [number for number in rows if unit.nodes[number].kind is Kind.STREAM]
    if not (unit.timed and streams):
        return rows, records.select(pl.col("offset").alias(OFF), pl.col("ts").alias(TS))
    frames = stream_time.of_rows([rows[number] for number in streams])
    times = pl.concat([frame.select(OFF, TS) for frame in frames])
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
    heard = [parcel for parcel in arrivals if parcel.node == MARKS]
    splits = _take_marks(unit, heard, shard)
    sent = [Parcel(stage + 1, MARKS, parcel.port, parcel.frame) for parcel in heard if stage < unit.depth]
    given: dict[int, pl.DataFrame] = {}
    shard.building = unit.building
    if migration is not None:
        migrate(unit, stage, shard, migration)
    for number, node in unit.members(stage):
        inputs = [_input(unit, edge, arrivals, given, splits) for edge in unit.into(number)]
        kernel = KERNELS[type(node)]
        if isinstance(kernel, EndKernel):
            settled = migration is None and _is_settled(unit, number)
            sources = unit.topics if unit.caused else ()
            found = kernel.records(node, inputs[0], settled=settled, sources=sources)
            sent.append(Parcel(OUT, number, RECORDS, found))
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
        sent += _sent(unit, number, rows, shard.ledger)
    return [parcel for parcel in sent if parcel.frame.height or parcel.stage == OUT]


def _take_marks(unit: Unit, heard: list[Parcel], shard: Shard) -> pl.DataFrame | None:
    """Take what is heard of time; gives the stream time before each split."""
    by_port: dict[int, list[pl.DataFrame]] = {}
    for parcel in heard:
        by_port.setdefault(parcel.port, []).append(parcel.frame)
    for told in by_port.get(TOLD, ()):
        clock, first, last = told.row(0)
        shard.clock, shard.repeats = clock, None if first is None else (first, last)
    shard.marks = pl.concat(by_port[PARTS]) if PARTS in by_port else None
    if SPLITS not in by_port:
        return None
    marks = pl.concat(by_port[SPLITS])
    if unit.timed:
        watched = marks.filter(pl.col(TOPIC).is_in(unit.watched))
        stream_time.require_known(shard.stream_times, watched, unit.topics)
    return stream_time.advance(shard.stream_times, marks)


def _together(frames: list[pl.DataFrame]) -> pl.DataFrame:
    return frames[0] if len(frames) == 1 else pl.concat(frames, how="diagonal")


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


def _sent(unit: Unit, number: int, rows: pl.DataFrame, ledger: Ledger) -> list[Parcel]:
    """Parcels for the edges that leave the stage, their rows prepared for the node that takes them."""
    parcels = []
    for edge in unit.out_of(number):
        if edge.exchange and rows.height:
            frame = _prepared(unit, edge, rows, ledger)
            parcels.append(Parcel(unit.stages[edge.target], edge.target, edge.port, frame))
    return parcels


def _prepared(unit: Unit, edge: Edge, rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    target = unit.nodes[edge.target]
    kernel = state_kernel(target)
    if kernel is None:
        return rows
    return kernel.prepare(target, edge.port, rows, ledger, emit_moves=unit.followed_by_order[edge.target])


_SILENT = Ledger((), "skip")
