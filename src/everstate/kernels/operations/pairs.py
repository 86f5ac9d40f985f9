"""Pairs of a left and a right row: the time and the columns of what a join makes of them.

A frame of pairs has `$key` and the key columns of the result, and each side's time, position and columns under that
side's prefix. A side that is missing has no time. Beside these it may have the time and position of what happened last
to each side in this micro-batch, be it a deletion.

A result has the time and position of the later of the two rows, so that they depend on these rows alone and not on
which arrived first: operations that order rows need that. Where none follows, what happened last counts instead, as in
Kafka Streams: a row that has lost its partner is as late as the partner's deletion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import polars as pl

from everstate.kernels.functions import Outcome, guarded, row_values
from everstate.kernels.operations.stateless import with_results
from everstate.kernels.positions import precedes
from everstate.kernels.records.keys import decode_keys
from everstate.kernels.rows import KEY, OP, ORDER, STREAM_TIME, SYSTEM, TS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from everstate.kernels.ledger import Ledger
    from everstate.topology.functions import Function
    from everstate.topology.nodes import (
        ForeignJoin,
        HistoryJoin,
        Join,
        Node,
        StreamGlobalJoin,
        StreamJoin,
        StreamTableForeignJoin,
        StreamTableJoin,
        TableGlobalJoin,
    )

#: What gives pairs.
AnyJoin: TypeAlias = (
    "Join | ForeignJoin | StreamJoin | StreamTableJoin | StreamTableForeignJoin | StreamGlobalJoin | HistoryJoin"
    " | TableGlobalJoin"
)

LEFT: Final = "$left:"
RIGHT: Final = "$right:"
#: The right row's key in a foreign-key join, where `$key` is the left one.
FOREIGN: Final = "$foreign"
#: Time and position of the rows.
ROWS: Final = (LEFT, RIGHT)
#: Time and position of what happened last to each side.
CAUSES: Final = ("$left cause:", "$right cause:")


def columns_of(feeder: Node, prefix: str) -> dict[str, pl.DataType]:
    """What is kept of a side: time, position and the columns that are not its key."""
    kept = {**{name: SYSTEM[name] for name in ORDER}, **feeder.values.polars}
    return {prefix + name: dtype for name, dtype in kept.items()}


def prefixed(rows: pl.DataFrame, feeder: Node, prefix: str) -> pl.DataFrame:
    """A side's rows, ready to be joined by `$key`."""
    return rows.select(KEY, *(pl.col(name).alias(prefix + name) for name in (*ORDER, *feeder.values.names)))


def present(prefix: str) -> pl.Expr:
    """Whether a side is there."""
    return pl.col(prefix + TS).is_not_null()


def later(one: str, other: str) -> list[pl.Expr]:
    """Time and position of the later of two rows, of which one may be missing."""
    takes_other = pl.col(one + TS).is_null() | (
        pl.col(other + TS).is_not_null()
        & precedes([pl.col(one + name) for name in ORDER], [pl.col(other + name) for name in ORDER])
    )
    return [pl.when(takes_other).then(pl.col(other + name)).otherwise(pl.col(one + name)).alias(name) for name in ORDER]


def results(
    node: AnyJoin,
    pairs: pl.DataFrame,
    ledger: Ledger,
    *,
    op: int,
    times: tuple[str, str] = ROWS,
) -> pl.DataFrame:
    """What the join has for these pairs: `$key`, time, position and the node's columns; at most one row a pair.

    Args:
        node: The join.
        pairs: The pairs; those that the kind of join leaves out are left out here. Where they have a stream time, so
            have the results.
        ledger: Takes the pairs for which the joiner raised.
        op: -1 for pairs of the past, whose failures have been reported before.
        times: `ROWS` or `CAUSES`.
    """
    kinds = {"inner": present(LEFT) & present(RIGHT), "left": present(LEFT), "outer": present(LEFT) | present(RIGHT)}
    pairs = pairs.filter(kinds[node.how])
    if node.joiner is not None:
        return _called(node, node.joiner, pairs, _as_rows(node, pairs, op, times), ledger)
    left = (pl.col(LEFT + name).alias(name) for name in node.inputs[0].values.names)
    right = (pl.col(RIGHT + name).alias(new) for name, new in node.renamed)
    own = [STREAM_TIME] if STREAM_TIME in pairs.columns else []
    return pairs.select(KEY, *later(*times), *own, *node.key.names, *left, *right)


def _called(node: AnyJoin, joiner: Function, pairs: pl.DataFrame, rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """The joiner's results; a pair for which it gives None has no row, as in Kafka Streams."""
    keys = pairs.select(node.key.names).get_columns()
    right_keys = keys if FOREIGN not in pairs.columns else decode_keys(pairs[FOREIGN], node.inputs[1].key)[0].values()
    left, right = _values(pairs, node.inputs[0], LEFT, keys), _values(pairs, node.inputs[1], RIGHT, right_keys)
    outcome = guarded(joiner, zip(left, right, strict=True))
    given = {number: result for number, result in outcome.results.items() if result is not None}
    return with_results(node, rows, Outcome(given, outcome.failures), joiner, ledger)


def _values(pairs: pl.DataFrame, feeder: Node, prefix: str, keys: Iterable[pl.Series]) -> list[object]:
    """A side's rows as the joiner sees them, with these as their key's columns; None where the side is missing."""
    values = [pl.col(prefix + name).alias(name) for name in feeder.values.names]
    own_keys = [key.alias(name) for key, name in zip(keys, feeder.key.names, strict=True)]
    there = pairs.select(present(prefix)).to_series()
    return [
        value if is_there else None
        for value, is_there in zip(row_values(pairs.select(*own_keys, *values), feeder.schema), there, strict=True)
    ]


def _as_rows(node: AnyJoin, pairs: pl.DataFrame, op: int, times: tuple[str, str]) -> pl.DataFrame:
    """Pairs as a rows frame, each side in a column of its own: what a dead letter shows."""
    sides = [
        pl.struct(pl.col(prefix + name).alias(name) for name in feeder.values.names).alias(name)
        for name, prefix, feeder in zip(_unused(node.key.names), (LEFT, RIGHT), node.inputs, strict=True)
        if feeder.values.names
    ]
    order = later(*times)
    system = {KEY: pl.col(KEY), OP: pl.lit(op, pl.Int8).alias(OP), **dict(zip(ORDER, order, strict=True))}
    system[STREAM_TIME] = pl.col(STREAM_TIME) if STREAM_TIME in pairs.columns else order[0].alias(STREAM_TIME)
    return pairs.select(*(system[name] for name in SYSTEM), *node.key.names, *sides)


def _unused(taken: Sequence[str]) -> tuple[str, str]:
    """Names for both sides that the key does not have."""
    left, right = "left", "right"
    while left in taken or right in taken:
        left, right = left + "_", right + "_"
    return left, right
