"""The first row of each id: rows of one id that lie less than a given time apart are one row, and the first counts.

Which of them is the first is a matter of arrival, so it is decided in the order of stream time, topic, partition and
offset, as for functions with state. What has passed is kept by slices as long as the time itself: of one id a slice
holds at most one row, and a row has to be compared with its own slice and both neighbours.

A row that is older than the stream time of its own partition by that time or more may have passed before, and nobody
remembers: it passes, is counted, and is not remembered either. So it follows from the row alone whether it is
compared, and what is compared is always there: a row of stream time s that is, is later than s - w, and what it can
meet is later than s - 2w.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.kernels.keying import key_parts
from everstate.kernels.operations.kernel import StateKernel
from everstate.kernels.order import by_arrival
from everstate.kernels.records.keys import encode_keys
from everstate.kernels.rows import CONTRIBUTION, KEY, OP, STREAM_TIME, SYSTEM, TS
from everstate.topology.nodes.timed import Dedup

if TYPE_CHECKING:
    from everstate.kernels.ledger import Ledger
    from everstate.kernels.pages.slices import Slices
    from everstate.kernels.shard import Shard

_SLICE: Final = "$slice"
_NONE: Final = pl.Series([], dtype=pl.Binary)
#: A slice has at least this many slices' time before nothing can meet its rows.
_LIFE: Final = 3


def prepare(node: Dedup, port: int, rows: pl.DataFrame, ledger: Ledger, *, emit_moves: bool = False) -> pl.DataFrame:
    """Rows on their way to the shard of their id.

    Args:
        node: The node.
        port: Its one input.
        rows: Rows as the feeder gives them.
        ledger: Takes rows whose id cannot be made, and counts those without one.
        emit_moves: Makes no difference here.

    Returns:
        The rows with the id in `$key` and their own key in `$ck`.
    """
    del port, emit_moves
    rows, parts = key_parts(node.keying, rows, ledger, node)
    ids = encode_keys(parts, node.keying.key).alias(KEY)
    rows = rows.select(*SYSTEM, pl.col(KEY).alias(CONTRIBUTION), *node.schema.names).with_columns(ids)
    if not ids.null_count():
        return rows
    ledger.drop("null_key", rows.filter(ids.is_null() & (rows[OP] > 0)).height)
    return rows.filter(ids.is_not_null())


def update(
    node: Dedup, number: int, inputs: list[pl.DataFrame], shard: Shard, *, emit_moves: bool = False
) -> pl.DataFrame:
    """Let the first rows of a micro-batch pass.

    Args:
        node: The node.
        number: Under which it keeps its state.
        inputs: What `prepare` gave, from all tasks.
        shard: Holds the ids that have passed with their times, and knows how far time has come.
        emit_moves: Rows of a stream do not move.
    """
    del emit_moves
    slices = shard.sliced(number)
    if shard.frontier is not None:
        slices.reached = max(slices.reached, shard.frontier)
    rows = by_arrival(inputs[0], shard.order)
    compared = rows[STREAM_TIME] < rows[TS] + node.within_ms
    shard.ledger.note("unchecked", int((~compared).sum()))
    seen = rows.filter(compared).select(KEY, TS, (pl.col(TS) // node.within_ms).alias(_SLICE))
    first = _first(seen, _held(seen, slices), node.within_ms)
    _remember(seen.filter(first), slices, node.within_ms)
    stays = ~compared
    stays = stays.scatter(compared.arg_true(), first) if first.len() else stays
    passed = rows.filter(stays).with_columns(pl.col(CONTRIBUTION).alias(KEY))
    return passed.select(*SYSTEM, *node.schema.names)


def _held(seen: pl.DataFrame, slices: Slices) -> dict[tuple[bytes, int], int]:
    """When these ids have passed, by id and slice, as far as it can matter."""
    found: dict[tuple[bytes, int], int] = {}
    for number in slices.numbers:
        wanted = seen.filter(pl.col(_SLICE).is_between(number - 1, number + 1)).select(KEY).unique()
        if wanted.height:
            held = slices[number].keyed(0).lookup(wanted)
            found |= {(key, number): ts for key, ts in held.select(KEY, TS).iter_rows()} if held.height else {}
    return found


def _first(seen: pl.DataFrame, passed: dict[tuple[bytes, int], int], within: int) -> pl.Series:
    """Whether each row passes, in order; each is compared with those that did before."""
    stays = []
    for key, ts, here in seen.iter_rows():
        times = (passed.get((key, here + step)) for step in (-1, 0, 1))
        first = all(time is None or abs(ts - time) >= within for time in times)
        if first:
            passed[key, here] = ts
        stays.append(first)
    return pl.Series(stays, dtype=pl.Boolean)


def _remember(passed: pl.DataFrame, slices: Slices, within: int) -> None:
    """Keep what later rows may have to be compared with, and nothing else."""
    for number in slices.numbers:
        if (number + _LIFE) * within <= slices.reached:
            slices.drop(number)
    lasting = passed.filter((pl.col(_SLICE) + _LIFE) * within > slices.reached)
    for (number,), part in sorted(lasting.partition_by(_SLICE, as_dict=True).items()):
        slices[int(number)].keyed(0).apply(part.select(KEY, TS), _NONE)


KERNELS: Final = {Dedup: StateKernel(update, prepare=prepare)}
