"""The last record of each key, out of many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from everstate.log import records
from everstate.schema.partitioner import partition_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: How many superseded records are carried along at most before they are dropped, beside those that are kept.
_SLACK_RECORDS: Final = 500_000


def last_of_each_key(frames: Iterable[pl.DataFrame], *, keys: pl.DataFrame | None = None) -> pl.DataFrame:
    """The last record of every key, tombstones included, without ever holding much more than that.

    Args:
        frames: Records of one partition, in order; of their columns, only `key` is needed.
        keys: A frame with the column `key`; only these keys are looked at.
    """
    kept: list[pl.DataFrame] = []
    fresh = 0
    for frame in frames:
        wanted = frame.filter(pl.col("key").is_not_null())
        if keys is not None:
            wanted = wanted.join(keys, on="key", how="semi", maintain_order="left")
        kept.append(wanted)
        fresh += len(wanted)
        if fresh > max(_SLACK_RECORDS, len(kept[0])):
            kept, fresh = [_reduced(kept)], 0
    return _reduced(kept) if kept else records.empty()


def _reduced(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """The last row of each key, in order.

    Only keys and places are grouped, which costs half of `unique`, and rows are taken by a mask: by their places that
    takes twice as long where a frame has many chunks.
    """
    whole = pl.concat(frames)
    places = whole.lazy().select("key", pl.int_range(pl.len()).alias("$at")).group_by("key").agg(pl.col("$at").last())
    last = np.zeros(whole.height, np.bool_)
    last[places.collect()["$at"].to_numpy()] = True
    return whole.filter(pl.Series(last))


def table_of(ends: Sequence[pl.DataFrame], partitions: int) -> pl.DataFrame:
    """The table of a topic: the last record of every key, without tombstones.

    Args:
        ends: The last record of each key by partition, in the order of partitions.
        partitions: How many partitions the topic has.
    """
    if not ends:
        return records.empty()
    whole = pl.concat(ends)
    if len(ends) > 1 and (partition_of(whole["key"], partitions) != whole["partition"]).any():
        # A key normally lives in one partition; where a producer chose otherwise, the younger record counts.
        whole = _reduced([whole.sort("ts", "partition", maintain_order=True)]).sort("partition", "offset")
    return whole.filter(pl.col("value").is_not_null())
