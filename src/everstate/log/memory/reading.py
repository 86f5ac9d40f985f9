"""Reading in memory: ranges, splits and the latest record of every key, from topics as they were at one moment."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl

from everstate.log.checks import check_range
from everstate.log.descriptions import Split
from everstate.log.memory.partition import stacked
from everstate.log.memory.upkeep import last_rows
from everstate.log.records import APPENDED, SCHEMA

if TYPE_CHECKING:
    from everstate.log.memory.store import Topic


def read(
    topic: Topic,
    partition: int,
    start: int,
    end: int | None = None,
    *,
    limit: int | None = None,
    appended: bool = False,
) -> pl.DataFrame:
    """The records of a range of offsets, in order."""
    found = topic.partition(partition)
    check_range(topic.name, partition, (found.begin, found.end), start, end)
    chunks = found.range(start, found.end if end is None else end, limit=limit)
    if appended:
        schema = {**SCHEMA, APPENDED: pl.Int64()}
        return stacked([chunk.timed() for chunk in chunks]) if chunks else pl.DataFrame(schema=schema)
    return stacked([chunk.frame for chunk in chunks])


def splits(topic: Topic, partition: int, start: int, end: int, *, max_records: int) -> list[Split]:
    """Cut a range into parts of at most so many records."""
    offsets = read(topic, partition, start, end).get_column("offset")
    if start >= end or not len(offsets):
        return []
    cuts = [start, *offsets.gather_every(max_records).to_list()[1:], end]
    return [Split(topic.name, partition, first, last, topic.id) for first, last in pairwise(cuts)]


def latest(topic: Topic) -> pl.DataFrame:
    """The last record of every key, without tombstones."""
    frames = [stacked([chunk.frame for chunk in part.chunks]) for part in topic.partitions if part.chunks]
    ends = [frame[last_rows(frame)] for frame in frames]
    whole = stacked(ends)
    if len(ends) > 1 and whole.get_column("key").n_unique() < whole.height:
        # A key normally lives in one partition; where a producer chose otherwise, the younger record counts.
        ordered = whole.sort("ts", "partition", maintain_order=True)
        whole = ordered[last_rows(ordered)].sort("partition", "offset")
    values = whole.get_column("value")
    return whole.filter(values.is_not_null()) if values.null_count() else whole
