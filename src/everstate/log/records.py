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

from functools import cache
from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.errors import LogError
from everstate.log.descriptions import Record
from everstate.schema.partitioner import partition_of

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
        # Column by column: an expression costs more than all else that is done with a few records.
        columns = {name: _column(frame, name, kind) for name, kind in CONTENT.items()}
        if "ts" not in frame.columns:
            columns["ts"] = pl.Series("ts", [now_ms], pl.Int64).new_from_index(0, frame.height)
        elif columns["ts"].null_count():
            columns["ts"] = columns["ts"].fill_null(now_ms)
        return pl.DataFrame(list(columns.values()))
    except pl.exceptions.PolarsError as error:
        raise LogError(f"these are not records: {error}", hint="See everstate.log.records for the types.") from error


def _column(frame: pl.DataFrame, name: str, kind: pl.DataType) -> pl.Series:
    if name not in frame.columns:
        return _null(name).new_from_index(0, frame.height)
    column = frame.get_column(name)
    return column if column.dtype == kind else column.cast(kind)


@cache
def _null(name: str) -> pl.Series:
    return pl.Series(name, [None], CONTENT[name])


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
