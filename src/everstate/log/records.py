"""The records frame: how records travel between logs and everything else.

| column | type | |
|---|---|---|
| `key` | Binary | null for a record without a key |
| `value` | Binary | null for a tombstone |
| `ts` | Int64 | milliseconds since 1970 |
| `headers` | List(Struct(name, value)) | null where there are none |
| `offset` | Int64 | only when read |
| `partition` | Int32 | when read; optional when written |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.log.protocol import Record
from everstate.topology.errors import LogError
from everstate.topology.partitioner import partition_of

if TYPE_CHECKING:
    from collections.abc import Iterator

HEADERS: Final = pl.List(pl.Struct({"name": pl.String, "value": pl.Binary}))
CONTENT: Final[dict[str, pl.DataType]] = {
    "key": pl.Binary(),
    "value": pl.Binary(),
    "ts": pl.Int64(),
    "headers": HEADERS,
}
#: When the log got a record; only where it is asked for.
APPENDED: Final = "appended"
SCHEMA: Final[dict[str, pl.DataType]] = {**CONTENT, "offset": pl.Int64(), "partition": pl.Int32()}


def empty() -> pl.DataFrame:
    """A records frame without records."""
    return pl.DataFrame(schema=SCHEMA)


def content(frame: pl.DataFrame, *, now_ms: int) -> pl.DataFrame:
    """Bring a frame that a caller wants to write into shape: the four content columns in their types.

    Missing columns are null; a missing timestamp is now.

    Raises:
        LogError: If a column is unknown or has a type that does not fit.
    """
    unknown = sorted(set(frame.columns) - set(SCHEMA))
    if unknown:
        raise LogError(
            f"records have no column {', '.join(unknown)}", hint=f"The columns of a record are: {', '.join(SCHEMA)}."
        )
    try:
        columns = [
            (pl.col(name).cast(kind) if name in frame.columns else pl.lit(None, dtype=kind)).alias(name)
            for name, kind in CONTENT.items()
        ]
        return frame.select(columns).with_columns(pl.col("ts").fill_null(now_ms))
    except pl.exceptions.PolarsError as error:
        raise LogError(f"these are not records: {error}", hint="See everstate.log.records for the types.") from error


def partitions_for(frame: pl.DataFrame, partitions: int, *, turn: int) -> pl.Series:
    """The partition of every row: the frame's own, else Kafka's choice by key, else in turn.

    Args:
        frame: Records, possibly with a `partition` column.
        partitions: How many there are.
        turn: Where the round of records without a key goes on.

    Raises:
        LogError: If the frame names a partition that the topic does not have.
    """
    named = frame["partition"].cast(pl.Int32) if "partition" in frame.columns else None
    if named is not None:
        wrong = named.filter((named < 0) | (named >= partitions))
        if len(wrong):
            raise LogError(
                f"there is no partition {wrong[0]}", hint=f"The topic has {partitions}, numbered 0 to {partitions - 1}."
            )
        if not named.null_count():
            return named
    chosen = partition_of(frame["key"], partitions)
    if named is not None:
        chosen = named.zip_with(named.is_not_null(), chosen)
    if not chosen.null_count():
        return chosen
    in_turn = ((chosen.is_null().cum_sum().cast(pl.Int64) - 1 + turn) % partitions).cast(pl.Int32)
    return chosen.zip_with(chosen.is_not_null(), in_turn)


def to_records(topic: str, frame: pl.DataFrame) -> Iterator[Record]:
    """The rows of a frame that was read, one by one."""
    for row in frame.select(*SCHEMA).iter_rows(named=True):
        headers = tuple((header["name"], header["value"]) for header in row["headers"] or ())
        yield Record(topic, row["partition"], row["offset"], row["key"], row["value"], row["ts"], headers)
