"""Sources: the records of a topic as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from everstate.kernels.records.decode import decode_records
from everstate.kernels.rows import KEY, OFF, OP, SYSTEM, TOMBSTONE, TS
from everstate.topology.nodes import Kind

if TYPE_CHECKING:
    from everstate.kernels.ledger import Ledger
    from everstate.topology.nodes import Source


def decoded(node: Source, records: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    """The rows of these records; a table's have `$tombstone`.

    Args:
        node: The node.
        records: key, value, ts and offset with their position and stream time.
        ledger: Takes what cannot be decoded, and counts what a stream leaves out.
    """
    table = node.kind is Kind.TABLE
    found = decode_records(records, key=node.key, schema=node.declared, fmt=node.format, table=table)
    if found.bad.height:
        bad = found.bad.rename({"offset": OFF, "ts": TS, "key": KEY})
        ledger.dead(bad, bad["reason"], node)
    ledger.drop("null_value", found.dropped)
    rows = found.rows.hstack([pl.Series(OP, [1], dtype=pl.Int8).new_from_index(0, found.rows.height)])
    extra = [TOMBSTONE] if table else []
    return rows[[*SYSTEM, *extra, *node.schema.names]]
