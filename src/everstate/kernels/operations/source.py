"""Sources: the records of a topic as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.kernels.expressions import evaluate
from everstate.kernels.operations.kernel import RowKernel
from everstate.kernels.records.decode import decode_records
from everstate.kernels.records.keys import rewritten
from everstate.kernels.rows import KEY, OFF, OP, SYSTEM, TOMBSTONE, TS
from everstate.topology.nodes import Kind, Source

if TYPE_CHECKING:
    from everstate.kernels.ledger import Ledger

_NO_TIME: Final = "time= gives no time at or after 1970"
_TOO_FAR: Final = "time= gives a time that is too far away"
#: The last time that a row can have, so that what is added to it stays a number of 64 bits.
_LAST: Final = 1 << 62


def decoded(node: Source, records: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """The rows of these records; a table's have `$tombstone`.

    Args:
        node: The node.
        records: key, value, ts and offset with their position and stream time.
        ledger: Takes what cannot be decoded, and counts what a stream leaves out.
    """
    table = node.kind is Kind.TABLE
    found = decode_records(records, key=node.topic_key, schema=node.declared, fmt=node.format, table=table)
    if found.bad.height:
        bad = found.bad.rename({"offset": OFF, "ts": TS, "key": KEY})
        ledger.dead(bad, bad["reason"], node)
    ledger.drop("null_value", found.dropped)
    rows = found.rows.hstack([pl.Series(OP, [1], dtype=pl.Int8).new_from_index(0, found.rows.height)])
    extra = [TOMBSTONE] if table else []
    rows = rows[[*SYSTEM, *extra, *node.schema.names]]
    if node.windows is not None:  # only on the topic: inside, equal keys are equal bytes
        rows = rows.with_columns(rewritten(rows[KEY], node.topic_key, node.key).alias(KEY))
    return rows if node.time is None else _dated(node, node.time, rows, ledger)


def _dated(node: Source, time: pl.Expr, rows: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """Rows at the time that the user's expression gives; those without one are dead letters, or keep the record's."""
    rows, found = evaluate(rows, [time.alias(TS)], ledger, node)
    times = found[TS] if found[TS].dtype.is_integer() else found[TS].dt.timestamp("ms")
    usable = times.is_not_null() & (times >= 0) & (times <= _LAST)
    if node.on_missing_time == "record":
        times = times.zip_with(usable.fill_null(value=False), rows[TS])
    elif not usable.all():
        far = (times > _LAST).fill_null(value=False).filter(~usable)
        ledger.dead(rows.filter(~usable), [_TOO_FAR if beyond else _NO_TIME for beyond in far], node)
        rows, times = rows.filter(usable), times.filter(usable)
    return rows.with_columns(times.cast(pl.Int64).alias(TS))


KERNELS: Final = {Source: RowKernel(decoded)}
