"""Stream-stream join: pairs of rows of one key that lie near each other in time, and rows without a partner.

Two rows are a pair if each came, by the stream time of its own partition, before the other was given up. So a row that
has come out without a partner never gets one, and pairs depend on the records alone. A row is given up, and comes out
alone if the kind of join wants it, when all that feeds the join has passed its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.kernels.changes import shaped
from everstate.kernels.operations.kernel import StateKernel
from everstate.kernels.operations.pairs import LEFT, RIGHT, results
from everstate.kernels.pages.due_index import DUE, DueIndex
from everstate.kernels.positions import position_names
from everstate.kernels.rows import CONTRIBUTION, KEY, OP, ORDER, STREAM_TIME, SYSTEM, TS, empty
from everstate.kernels.stream_time import require_open, timely
from everstate.topology.nodes.stream_joins import StreamJoin

if TYPE_CHECKING:
    from everstate.kernels.ledger import Ledger
    from everstate.kernels.shard import Shard
    from everstate.topology.nodes import Node

#: True of a row that has had a partner.
_MATCHED: Final = "$matched"
_SIDES: Final = (LEFT, RIGHT)
#: Which sides come out alone.
_ALONE: Final = {"inner": (False, False), "left": (True, False), "outer": (True, True)}
_ROW: Final = [KEY, CONTRIBUTION]
#: A join writes no times, so it takes all to which it can add.
_BEYOND: Final = 1 << 62
#: The span of time in which partners are looked for.
_SPAN: Final = "$span"


def update(
    node: StreamJoin, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Join a micro-batch's rows with each other and with those that wait for a partner.

    Args:
        node: The node.
        number: Under which it keeps its state.
        inputs: The rows of both streams.
        shard: Holds the rows that wait, and knows how far time has come.
        emit_moves: Rows of a stream do not move.
    """
    del emit_moves
    slices = shard.sliced(number)
    now = slices.reached if shard.frontier is None else max(slices.reached, shard.frontier)
    index = DueIndex(slices, max(1, max(node.closes_ms) // 4))
    counting = [_in_time(node, place, rows, shard.ledger) for place, rows in enumerate(inputs)]
    keyless = [rows.filter(pl.col(KEY).is_null()) for rows in counting]
    new = [rows.filter(pl.col(KEY).is_not_null()) for rows in counting]
    for place, came in enumerate(new):
        require_open(node, came[TS] + node.closes_ms[place], slices.reached)
    keys = pl.concat([*(rows[KEY] for rows in new), index.pop(now)]).unique(maintain_order=True).alias(KEY).to_frame()
    slices.reached = now
    stores = [shard.multi(number, place) for place in (0, 1)]
    held = [shaped(stores[p].lookup(keys), _stored(feeder)) for p, feeder in enumerate(node.inputs)]
    rows = [_together(known, came) for known, came in zip(held, new, strict=True)]
    met = _met(node, rows, [frame.height for frame in held])
    found, given = [_pairs(rows, met)], []
    for place, side in enumerate(_SIDES):
        # Where nobody comes out alone, nothing need be known, or written, of partners.
        marks = _ALONE[node.how][place]
        every = _matched(rows[place], met[side]) if marks else rows[place]
        over = every[TS] + node.closes_ms[place] <= now
        if marks:
            alone = pl.concat([every.filter(over & ~every[_MATCHED]), keyless[place]])
            found.append(_alone(node, place, alone))
        else:
            shard.ledger.drop("null_key", keyless[place].height)
        before = held[place].height
        changed = every[_MATCHED] != rows[place][_MATCHED]
        is_new = pl.int_range(every.height, eager=True) >= before
        stores[place].apply(every.filter(~over & (is_new | changed)), every[:before].filter(over[:before]).select(_ROW))
        given.append(every.filter(~over).select(KEY, (pl.col(TS) + node.closes_ms[place]).alias(DUE)))
    index.add(pl.concat(given).group_by(KEY).agg(pl.col(DUE).min()))
    return _rows(node, pl.concat(found, how="diagonal"), shard.ledger)


def _stored(feeder: Node) -> dict[str, pl.DataType]:
    """What is kept of a row."""
    return {**SYSTEM, CONTRIBUTION: pl.Binary(), _MATCHED: pl.Boolean(), **feeder.schema.polars}


def _in_time(node: StreamJoin, place: int, rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """The rows of a side that came in time; one without a key waits for nobody, so it never comes too late."""
    rows = timely(node, rows, ledger, until=_BEYOND)
    late = (rows[STREAM_TIME] >= rows[TS] + node.closes_ms[place]) & rows[KEY].is_not_null()
    ledger.drop("late", int(late.sum()))
    counting = rows.filter(~late).with_columns(pl.lit(value=False).alias(_MATCHED))
    return shaped(counting.drop(CONTRIBUTION, strict=False), _stored(node.inputs[place]))


def _together(held: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """The rows of a side, the new ones each with a name that no other row has."""
    return pl.concat([held, new.with_columns(position_names(new, held).alias(CONTRIBUTION))])


def _prefixed(rows: pl.DataFrame, side: str) -> pl.DataFrame:
    return rows.select(KEY, *(pl.col(name).alias(side + name) for name in rows.columns if name != KEY))


def _met(node: StreamJoin, rows: list[pl.DataFrame], held: list[int]) -> pl.DataFrame:
    """Which rows are pairs, by their places on both sides; those that were held on both have met before.

    Rows are looked for by key and span of time, so that a key with very many rows costs what its pairs do.
    """
    span = node.before_ms + node.after_ms + 1
    slim = [
        frame.select(KEY, pl.col(TS).alias(side + TS), pl.col(STREAM_TIME).alias(side + STREAM_TIME)).with_row_index(
            side
        )
        for frame, side in zip(rows, _SIDES, strict=True)
    ]
    first, last = ((pl.col(LEFT + TS) + apart) // span for apart in (-node.before_ms, node.after_ms))
    left = slim[0].with_columns(first.alias(_SPAN), last.alias("$last"))
    further = left.filter(pl.col("$last") > pl.col(_SPAN)).with_columns(pl.col("$last").alias(_SPAN))
    right = slim[1].with_columns((pl.col(RIGHT + TS) // span).alias(_SPAN))
    both = pl.concat([left, further]).join(right, on=[KEY, _SPAN], how="inner")
    apart = pl.col(RIGHT + TS) - pl.col(LEFT + TS)
    closes = node.closes_ms
    return both.filter(
        (pl.col(LEFT) >= held[0]) | (pl.col(RIGHT) >= held[1]),
        apart.is_between(-node.before_ms, node.after_ms),
        pl.col(LEFT + STREAM_TIME) < pl.col(RIGHT + TS) + closes[1],
        pl.col(RIGHT + STREAM_TIME) < pl.col(LEFT + TS) + closes[0],
    )


def _pairs(rows: list[pl.DataFrame], met: pl.DataFrame) -> pl.DataFrame:
    """Both sides of pairs under their prefix, with the stream time of the later one."""
    left, right = (_prefixed(frame, side)[met[side]] for frame, side in zip(rows, _SIDES, strict=True))
    later = pl.max_horizontal(LEFT + STREAM_TIME, RIGHT + STREAM_TIME).alias(STREAM_TIME)
    return left.hstack(right.drop(KEY)).with_columns(later)


def _matched(rows: pl.DataFrame, places: pl.Series) -> pl.DataFrame:
    """Rows that know whether they have ever had a partner."""
    marks = rows[_MATCHED].to_numpy().copy()
    marks[places.to_numpy()] = True
    return rows.with_columns(pl.Series(_MATCHED, marks))


def _alone(node: StreamJoin, place: int, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows without a partner; they come out when they are given up, so that is their stream time."""
    given_up = rows.select(pl.max_horizontal(STREAM_TIME, pl.col(TS) + node.closes_ms[place])).to_series()
    return _prefixed(rows, _SIDES[place]).with_columns(given_up.alias(STREAM_TIME))


def _rows(node: StreamJoin, pairs: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """What the join makes of pairs, in an order that depends on them alone."""
    if pairs.is_empty():
        return empty(dict(node.schema.polars))
    sides = zip(node.inputs[0].key.names, node.inputs[1].key.names, node.key.names, strict=True)
    keys = [pl.coalesce(LEFT + left, RIGHT + right).alias(name) for left, right, name in sides]
    missing = [name for feeder, side in zip(node.inputs, _SIDES, strict=True) for name in _lacking(pairs, feeder, side)]
    pairs = pairs.with_columns(missing) if missing else pairs
    order = [side + name for side in _SIDES for name in ORDER]
    pairs = pairs.with_columns(keys).sort(STREAM_TIME, *order, nulls_last=True)
    found = results(node, pairs, ledger, op=1).with_columns(pl.lit(1, pl.Int8).alias(OP))
    return found.select(*SYSTEM, *node.schema.names)


def _lacking(pairs: pl.DataFrame, feeder: Node, side: str) -> list[pl.Expr]:
    """The columns of a side that no pair has."""
    columns = {side + name: dtype for name, dtype in _stored(feeder).items() if name != KEY}
    return [pl.lit(None, dtype).alias(name) for name, dtype in columns.items() if name not in pairs.columns]


KERNELS: Final = {StreamJoin: StateKernel(update)}
