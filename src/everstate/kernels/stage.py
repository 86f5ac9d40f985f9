"""Runs a stage of a unit: the nodes in order, each by its kernel, rows passed on by edge.

`ingest` is stage 0, where records are read; `run_stage` is every later stage, on one shard. `pipeline.py` calls both,
for Spark and for everyone else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from everstate.kernels import (
    aggregate,
    decode,
    fold,
    foreign_join,
    join,
    latest,
    output,
    rekey,
    stateful,
    stateless,
    stream_time,
)
from everstate.kernels.ledger import Ledger
from everstate.kernels.migration import migrate
from everstate.kernels.parcel import COUNTS, DEAD_LETTERS, MARKS, OUT, RECORDS, Parcel
from everstate.kernels.rows import KEY, OFF, OP, PART, STREAM_TIME, SYSTEM, TOPIC, TS, empty
from everstate.kernels.standing import standing
from everstate.topology.nodes import (
    Aggregate,
    Fold,
    ForeignJoin,
    Join,
    Kind,
    Latest,
    Node,
    Output,
    RekeyTable,
    Source,
    Stateful,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from everstate.kernels.migration import Migration
    from everstate.kernels.shard import Shard
    from everstate.topology.unit import Edge, Unit

#: Is shown the rows that a node gives, by its number.
Witness: TypeAlias = "Callable[[int, pl.DataFrame], None]"

#: The kernels of nodes that keep state.
_STATEFUL: dict[type[Node], Any] = {
    Latest: latest,
    Aggregate: aggregate,
    Fold: fold,
    RekeyTable: rekey,
    Join: join,
    ForeignJoin: foreign_join,
    Stateful: stateful,
}


def ingest(
    unit: Unit, topic: str, partition: int, records: pl.DataFrame, ledger: Ledger, witness: Witness | None = None
) -> list[Parcel]:
    """Stage 0: decode the records of one split and run the stateless nodes behind their sources.

    Args:
        unit: The unit.
        topic: Where the records come from.
        partition: Its partition.
        records: key, value, ts and offset of a contiguous range, in offset order.
        ledger: Takes what cannot be decoded.
        witness: Is shown the rows that each node gives.

    Returns:
        Parcels for later stages, among them the mark of this split; dead letters stay in the ledger.
    """
    place = unit.topics.index(topic)
    positioned = records.with_columns(
        pl.lit(place, pl.UInt16).alias(TOPIC),
        pl.lit(partition, pl.Int32).alias(PART),
        stream_time.within_split(),
    )
    parcels = []
    if records.height:
        start, end = records["offset"][0], records["offset"][-1] + 1
        parcels.append(Parcel(1, MARKS, 0, stream_time.mark(place, partition, start, end, records["ts"].max())))  # type: ignore[arg-type]  # a maximum of integers
    given: dict[int, pl.DataFrame] = {}
    for number, node in unit.members(0):
        if isinstance(node, Source):
            rows = _decoded(node, positioned, ledger) if node.topic == topic else None
        else:
            feeds = [given[edge.source] for edge in unit.into(number) if edge.source in given]
            rows = stateless.update(node, pl.concat(feeds, how="diagonal"), ledger) if feeds else None
        if rows is not None:
            given[number] = rows
            if witness is not None:
                witness(number, rows)
            parcels += _sent(unit, number, rows, ledger)
    return parcels


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
        migration: The state is that of an earlier version: it is converted first, and the table begins anew.
        witness: Is shown the rows that each node gives.

    Returns:
        Parcels for later stages and out of the unit; marks are passed on as long as a stage follows.
    """
    marks = [parcel.frame for parcel in arrivals if parcel.node == MARKS]
    splits = stream_time.advance(shard.stream_times, pl.concat(marks)) if marks else None
    sent = [Parcel(stage + 1, MARKS, 0, frame) for frame in marks if stage < unit.depth]
    given: dict[int, pl.DataFrame] = {}
    if migration is not None:
        migrate(unit, stage, shard, migration)
    for number, node in unit.members(stage):
        inputs = [_input(unit, edge, arrivals, given, splits) for edge in unit.into(number)]
        if isinstance(node, Output):
            settled = migration is None and _is_settled(unit, number)
            sent.append(Parcel(OUT, number, RECORDS, output.update(node, inputs[0], settled=settled)))
            continue
        before = standing(unit, number, shard) if migration is not None and number == migration.anew else None
        if all(rows.is_empty() for rows in inputs):
            rows = empty(node.schema.polars)
        elif type(node) in _STATEFUL:
            # A table's row may move in time although its columns stay; a stream's rows stand as they are.
            moves = {"emit_moves": latest.uses_order(unit, number)} if node.kind is Kind.TABLE else {}
            rows = _STATEFUL[type(node)].update(node, unit.stores[number], inputs, shard, **moves)
        else:
            rows = stateless.update(node, pl.concat(inputs, how="diagonal"), shard.ledger)
        if before is not None:
            rows = pl.concat([before, rows.select(before.columns)])
        given[number] = rows
        if witness is not None:
            witness(number, rows)
        sent += _sent(unit, number, rows, shard.ledger)
    return [parcel for parcel in sent if parcel.frame.height or parcel.stage == OUT]


def _is_settled(unit: Unit, number: int) -> bool:
    """Whether an output gets the changes of a step as that step left them: one a key and side, each with an effect."""
    (edge,) = unit.into(number)
    feeder = unit.nodes[edge.source]
    return isinstance(feeder, Aggregate | Latest) and not edge.exchange and not latest.uses_order(unit, edge.source)


def farewell(unit: Unit, ledger: Ledger) -> list[Parcel]:
    """What a ledger holds, as parcels out of the unit."""
    last = len(unit.nodes) - 1
    parcels = []
    letters = ledger.letters()
    if letters.height:
        parcels.append(Parcel(OUT, last, DEAD_LETTERS, letters))
    if ledger.counts:
        counts = {"name": list(ledger.counts), "count": list(ledger.counts.values())}
        parcels.append(Parcel(OUT, last, COUNTS, pl.DataFrame(counts, schema={"name": pl.String, "count": pl.Int64})))
    return parcels


def _decoded(node: Source, records: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    table = node.kind is Kind.TABLE
    decoded = decode.decode_records(records, key=node.key, schema=node.declared, fmt=node.format, table=table)
    if decoded.bad.height:
        bad = decoded.bad.rename({"offset": OFF, "ts": TS, "key": KEY})
        ledger.dead(bad, bad["reason"], node)
    ledger.drop("null_value", decoded.dropped)
    rows = decoded.rows.hstack([pl.Series(OP, [1], dtype=pl.Int8).new_from_index(0, decoded.rows.height)])
    extra = ["$tombstone"] if table else []
    return rows[[*SYSTEM, *extra, *node.schema.names]]


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
    feeder, target = unit.nodes[edge.source], unit.nodes[edge.target]
    rows = empty(feeder.schema.polars)
    if isinstance(target, Latest):
        return rows.with_columns(pl.lit(value=False).alias("$tombstone"))
    if not target.rekeys(edge.port):
        return rows
    # Preparing no rows reports nothing, so the ledger is not needed.
    return _prepared(unit, edge, rows, _SILENT)


def _sent(unit: Unit, number: int, rows: pl.DataFrame, ledger: Ledger) -> list[Parcel]:
    """Parcels for the edges that leave the stage, their rows prepared for the node that takes them."""
    parcels = []
    for edge in unit.out_of(number):
        if edge.exchange and rows.height:
            target = unit.nodes[edge.target]
            frame = _prepared(unit, edge, rows, ledger) if target.rekeys(edge.port) else rows
            parcels.append(Parcel(unit.stages[edge.target], edge.target, edge.port, frame))
    return parcels


def _prepared(unit: Unit, edge: Edge, rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    target = unit.nodes[edge.target]
    moves = {"emit_moves": latest.uses_order(unit, edge.target)} if isinstance(target, Aggregate) else {}
    prepared: pl.DataFrame = _STATEFUL[type(target)].prepare(target, edge.port, rows, ledger, **moves)
    return prepared


_SILENT = Ledger((), "skip")
