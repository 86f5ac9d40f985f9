"""Stream time: the highest timestamp so far of a partition, in offset order.

A task sees one split of a partition. It gives each row the highest timestamp up to that row within the split, and sends
a *mark* (partition, start, end, highest timestamp) to every shard. The shard knows the stream time of every partition
from earlier batches and puts these together, so a row's stream time depends neither on how a partition was cut into
splits nor on where micro-batches ended.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from everstate.kernels.rows import OFF, PART, STREAM_TIME, TOPIC, TS

#: One split that was read: whose, from where to where, and its highest timestamp.
MARK: Final[dict[str, pl.DataType]] = {
    TOPIC: pl.UInt16(),
    PART: pl.Int32(),
    "start": pl.Int64(),
    "end": pl.Int64(),
    TS: pl.Int64(),
}


def mark(topic: int, partition: int, start: int, end: int, highest: int) -> pl.DataFrame:
    """The mark of one split."""
    return pl.DataFrame([[topic], [partition], [start], [end], [highest]], schema=MARK)


def within_split() -> pl.Expr:
    """The highest timestamp up to each record of a split, taken before any filter."""
    return pl.col("ts").cum_max().alias(STREAM_TIME)


def advance(known: dict[str, int], marks: pl.DataFrame) -> pl.DataFrame:
    """Take a batch's marks into the known stream times.

    Args:
        known: Highest timestamp by "topic/partition"; it is brought up to date.
        marks: The batch's marks, those of one split at most once.

    Returns:
        For every split, the stream time of its partition before it (null if there is none).
    """
    rows = []
    for topic, partition, start, end, highest in sorted(set(marks.iter_rows())):
        name = f"{topic}/{partition}"
        rows.append((topic, partition, start, end, highest, known.get(name)))
        known[name] = max(highest, known.get(name, highest))
    return pl.DataFrame(rows, schema={**MARK, "before": pl.Int64()}, orient="row")


def across_splits(rows: pl.DataFrame, splits: pl.DataFrame) -> pl.DataFrame:
    """Raise the rows' stream time to that of their partition before their split."""
    highest, lowest = splits["before"].max(), rows[STREAM_TIME].min()
    if highest is None or lowest is None or highest <= lowest:  # type: ignore[operator]  # numbers both
        return rows
    return rows.with_columns(pl.max_horizontal(STREAM_TIME, _before(rows, splits)).alias(STREAM_TIME))


def _before(rows: pl.DataFrame, splits: pl.DataFrame) -> pl.Series:
    """The stream time of each row's partition before its split; null if there is none."""
    partition = [TOPIC, PART]
    if splits[partition].n_unique() == splits.height:
        known = splits[[*partition, "before"]]
        return rows[partition].join(known, on=partition, how="left", maintain_order="left")["before"]
    earlier = splits.select(TOPIC, PART, pl.col("start").alias(OFF), "before").sort(OFF)
    return (
        rows[[*partition, OFF]]
        .with_row_index("$row")
        .sort(OFF)
        .join_asof(earlier, on=OFF, by=partition, strategy="backward", check_sortedness=False)
        .sort("$row")["before"]
    )
