"""What workers do at the two ends: rows to staged records, and records to rows."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa

from everstate.engine.query.opened import opened
from everstate.engine.query.source_task import runs
from everstate.errors.carrying import carried
from everstate.kernels.records.encode import encode_values
from everstate.kernels.records.keys import encode_keys
from everstate.kernels.records.typed_rows import DELETED, TIMESTAMP
from everstate.log.archive.reading import read_split
from everstate.log.descriptions import Split, Staged
from everstate.log.records import empty
from everstate.schema.partitioner import partition_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from everstate.kernels.records.typed_rows import DeclaredForm, Rows

#: What a task that stages records gives: JSON.
REPORT: Final = "report string"
_REPORT: Final = pa.schema({"report": pa.string()})
#: So many rows are staged together.
_TOGETHER: Final = 200_000
#: So many rows travel to Spark together.
_HANDED: Final = 10_000
#: So many of the records that could not be read are named.
_NAMED: Final = 3


@dataclass(frozen=True)
class Ends:
    """What a task has to know.

    Attributes:
        opening: The log, pickled. It may hold secrets, and is never shown.
        topic: The topic.
        form: How its records are written.
        partitions: Of the topic.
        environment: What schema registries are asked with. As secret as the log.
    """

    opening: bytes = field(repr=False)
    topic: str
    form: DeclaredForm
    partitions: int
    environment: dict[str, str] = field(default_factory=dict, repr=False)


def staging(ends: Ends, now_ms: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Stages rows as records of the topic; for `mapInArrow`."""

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with carried():
            log = opened(ends.opening, ends.environment)
            for frame in _gathered(batches):
                for part in log.stage_all(ends.topic, to_records(frame, ends, now_ms)):
                    yield pa.RecordBatch.from_pylist([{"report": json.dumps(asdict(part))}], schema=_REPORT)

    return stage


def staged_of(reports: Iterable[str]) -> list[Staged]:
    """What tasks have staged, in the same order every time."""
    parts = [Staged(**json.loads(report)) for report in reports]
    return sorted(parts, key=lambda part: (part.partition, part.digest))


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pl.DataFrame]:
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= _TOGETHER:
            yield _frame(waiting)
            waiting = []
    if sum(map(len, waiting)):
        yield _frame(waiting)


def _frame(batches: list[pa.RecordBatch]) -> pl.DataFrame:
    made = pl.from_arrow(pa.Table.from_batches(batches))
    assert isinstance(made, pl.DataFrame)
    return made


def to_records(frame: pl.DataFrame, ends: Ends, now_ms: int) -> pl.DataFrame:
    """Rows as records; one that breaks the schema is found by whoever reads the topic.

    Args:
        frame: The columns of key and value, as far as they are there, `$timestamp` and `$deleted`.
        ends: How they are written.
        now_ms: The time of a record without one.
    """
    form = ends.form
    columns = {name: type_.polars for name, type_ in form.types.items()}
    typed = frame.select(
        pl.col(name).cast(dtype) if name in frame.columns else pl.lit(None, dtype).alias(name)
        for name, dtype in columns.items()
    )
    values = encode_values(typed, form.schema, form.format)
    if DELETED in frame.columns:
        gone = frame.get_column(DELETED).fill_null(value=False)
        values = values.zip_with(~gone, pl.Series([None], dtype=pl.Binary).new_from_index(0, frame.height))
    times = pl.Series("ts", [now_ms], pl.Int64).new_from_index(0, frame.height)
    if TIMESTAMP in frame.columns:
        times = frame.get_column(TIMESTAMP).dt.epoch("ms").fill_null(now_ms)
    keys = encode_keys(typed, form.key)
    # A batch that comes again has to be the same: a row without a key goes by its value, not in turn.
    by = keys.zip_with(keys.is_not_null(), values) if keys.null_count() else keys
    places = partition_of(by, ends.partitions).fill_null(0)
    return pl.DataFrame({"key": keys, "value": values, "ts": times, "partition": places})


def handing_out(
    ends: Ends, schema: pa.Schema, unreadable: Any
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Reads the records at addresses as rows; for `mapInArrow`.

    Args:
        ends: What to read.
        schema: The columns.
        unreadable: Is told of records that are not as the output writes them now.
    """

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with carried():
            log = opened(ends.opening, ends.environment)
            addresses = [Split(**row) for batch in batches for row in batch.to_pylist()]
            for run in runs(addresses):
                frames = [read_split(log, split) if split.end > split.start else empty() for split in run]
                rows = ends.form.rows(pl.concat(frames))
                if rows.bad.height:
                    unreadable.add(_named(rows))
                yield from to_table(rows.frame, schema).to_batches(max_chunksize=_HANDED)

    return read


def to_table(frame: pl.DataFrame, schema: pa.Schema) -> pa.Table:
    """Rows in the types that Spark has."""
    return pa.table([_column(frame.get_column(column.name), column.type) for column in schema], schema=schema)


def _column(values: pl.Series, wanted: pa.DataType) -> pa.Array[Any] | pa.ChunkedArray[Any]:
    # Arrow does not cast pairs to maps, so these go through Python.
    if _has_map(wanted):
        return pa.array([_paired(value, wanted) for value in values.to_list()], wanted)
    return values.to_arrow().cast(wanted)


def _has_map(wanted: pa.DataType) -> bool:
    if pa.types.is_list(wanted):
        return _has_map(wanted.value_type)
    return pa.types.is_map(wanted) or (pa.types.is_struct(wanted) and any(_has_map(part.type) for part in wanted))


def _paired(value: Any, wanted: pa.DataType) -> Any:
    """A value whose maps are lists of pairs."""
    if value is None or not _has_map(wanted):
        return value
    if pa.types.is_map(wanted):
        return [(entry["key"], _paired(entry["value"], wanted.item_type)) for entry in value]
    if pa.types.is_list(wanted):
        return [_paired(item, wanted.value_type) for item in value]
    return {part.name: _paired(value[part.name], part.type) for part in _fields(wanted)}


def _fields(struct: Any) -> list[pa.Field[Any]]:
    return list(struct)


def _named(rows: Rows) -> dict[str, Any]:
    first = rows.bad.head(_NAMED).iter_rows(named=True)
    return {
        "count": rows.bad.height,
        "first": [f"partition {row['partition']} offset {row['offset']}: {row['reason']}" for row in first],
    }
