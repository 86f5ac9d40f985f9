"""The stream time of rows that one output writes and another reads: header `es-st`.

On a topic that Everstate has written, records lie in the order of micro-batches, not of time: after an hour's stop one
micro-batch spans an hour, and its shards follow one another. Whoever took the order of records for that of time would
drop most of them as late. So each record of a stream says which stream time its row had, and below which one no later
record of its partition will be: the frontier of who has written it. Both are numbers of milliseconds in the header
`es-st`, `1714564800000,1714564740000`; the second is left out as long as it is not known.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from everstate.kernels.records import utf8
from everstate.kernels.rows import OFF, STREAM_TIME, TS

#: The header.
HEADER: Final = "es-st"
#: Beside key, value and time, what a record of a stream says: its row's stream time, and the least of all later ones.
TOLD: Final[dict[str, pl.DataType]] = {"st": pl.Int64(), "least": pl.Int64()}

_TEXT: Final = pl.concat_str(*TOLD, separator=",", ignore_nulls=True)


def told(rows: pl.DataFrame, before: int | None, now: int | None) -> list[pl.Series]:
    """What records say of time.

    Args:
        rows: Their rows, in order of stream time.
        before: The frontier before the micro-batch: no row of it is below that.
        now: The frontier after it, if nobody else writes further rows of it; else None.
    """
    times = rows[STREAM_TIME].fill_null(rows[TS])
    known = pl.Series("least", [before], pl.Int64).new_from_index(0, rows.height)
    if now is not None:
        following = times.shift(-1, fill_value=now)
        known = pl.select(pl.min_horizontal(pl.lit(following), pl.lit(now))).to_series()
    return [times.alias("st"), known.alias("least")]


def headers(own: list[tuple[str, bytes]], records: pl.DataFrame) -> pl.Series:
    """The headers of records that say something of time.

    Args:
        own: What all of them have as well.
        records: `st` and `least`.
    """
    count = records.height
    # Laid end to end and cut into lists: an expression that puts each list together takes ten times as long.
    places = np.empty((count, len(own) + 1), np.uint32)
    places[:, :-1] = np.arange(len(own))
    places[:, -1] = np.arange(len(own), len(own) + count)
    values = pl.concat([pl.Series([value for _, value in own], dtype=pl.Binary), text(records).cast(pl.Binary)])
    names = pl.Series([*(name for name, _ in own), HEADER]).gather(np.tile(np.arange(len(own) + 1), count))
    fields = [names.alias("name"), values.gather(places.ravel()).alias("value")]
    return pl.DataFrame(fields).to_struct("headers").reshape((count, len(own) + 1)).arr.to_list()


def text(said: pl.DataFrame) -> pl.Series:
    """The header's text, from both numbers."""
    return said.select(_TEXT.alias(HEADER)).to_series()


def heard(records: pl.DataFrame) -> pl.DataFrame | None:
    """What records say of time: `$off`, `$at` (the record's own time), `st` and `least`; None if none of them does.

    Args:
        records: `offset`, `ts` and `headers`, in offset order.
    """
    if "headers" not in records.columns or records["headers"].null_count() == records.height:
        return None
    named = _named(records.select(pl.col("offset").alias(OFF), pl.col("ts").alias("$at"), "headers"))
    if named.is_empty():
        return None
    named = named.with_columns(utf8.text(named["headers"].struct.field("value")).str.splitn(",", 2).alias("headers"))
    parts = enumerate(TOLD.items())
    numbers = [
        pl.col("headers").struct.field(f"field_{n}").cast(kind, strict=False).alias(name) for n, (name, kind) in parts
    ]
    return named.select(OFF, "$at", *numbers).filter(pl.col("st").is_not_null() & (pl.col("st") >= 0))


def _named(records: pl.DataFrame) -> pl.DataFrame:
    """The records that have the header, with it alone."""
    last = records["headers"].list.last()
    if (last.struct.field("name") == HEADER).fill_null(value=False).all():  # as Everstate writes them
        return records.with_columns(last)
    single = records.explode("headers").filter(pl.col("headers").struct.field("name") == HEADER)
    return single.unique(OFF, keep="last", maintain_order=True)


def running(rows: pl.DataFrame, said: pl.DataFrame | None) -> pl.DataFrame:
    """Stream times of the rows of a split, by offset: `$off`, `$st`, and `least`, which no later row is below.

    A row that says nothing has come at its own time, and those after it are no older, as in any partition; one that
    says what its stream time was is believed as far as it does not contradict that.

    Args:
        rows: `$off` and `$ts` in offset order, each offset once.
        said: What their records say; one that is about another time than the row's is not believed.
    """
    if said is None:
        return rows.select(OFF, pl.col(TS).cum_max().alias(STREAM_TIME), pl.col(TS).cum_max().alias("least"))
    rows = rows.join(said, on=OFF, how="left", maintain_order="left")
    believed = (pl.col("st").is_not_null() & (pl.col("$at") == pl.col(TS))).fill_null(value=False)
    own = pl.when(believed).then("st").otherwise(TS)
    least = pl.when(believed).then("least").otherwise(TS).cum_max().forward_fill()
    return rows.select(OFF, pl.max_horizontal(own, least.shift(1)).alias(STREAM_TIME), least.alias("least"))
