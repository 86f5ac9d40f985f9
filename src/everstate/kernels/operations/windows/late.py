"""Rows that came too late for all their windows, on a topic of their own: a table by position, as dead letters are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl

from everstate.kernels.output import RECORD, letter, place_key
from everstate.kernels.records.encode import encode_values
from everstate.kernels.rows import KEY, OFF, PART, TOPIC, TS
from everstate.schema.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.kernels.ledger import Ledger
    from everstate.topology.nodes import Windowed


def late_records(node: Windowed, rows: pl.DataFrame, reasons: Sequence[str], ledger: Ledger) -> pl.DataFrame:
    """Records about rows that were too late: where each came from, why it does not count, and the row as JSON.

    Args:
        node: Whose windows they missed.
        rows: The rows, with the columns of what feeds the node.
        reasons: Which window each of them came too late for.
        ledger: Knows the names of topics and steps.
    """
    schema = Schema(node.inputs[0].schema.fields)
    step = ledger.step_of(node)
    keys, values = [], []
    contents = encode_values(rows, schema, "json")
    places = rows.select(TOPIC, PART, OFF, KEY).iter_rows()
    for (topic, partition, offset, key), content, reason in zip(places, contents, reasons, strict=True):
        place = (ledger.topics[topic], partition, offset)
        keys.append(place_key(place))
        values.append(letter(place, reason, step, key, json.loads(content)))
    return pl.DataFrame({"key": keys, "value": values, "ts": rows[TS]}, schema=RECORD)
