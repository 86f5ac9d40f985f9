"""Which records of its sources are an output's sample: whole histories of some keys, from all over the topics.

Keys are taken in the order of a hash that never changes, so that a key which is in the sample of one topic is, as a
rule, in those of the others: only then do joins find partners. What the rows of a foreign-key join refer to is added.
Of a large topic some ranges are looked at, from its first records to its last.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.kernels.evaluation import evaluated
from everstate.kernels.migration.convert import place
from everstate.kernels.rows import KEY

if TYPE_CHECKING:
    from everstate.kernels.parcel import Parcel
    from everstate.kernels.pipeline import Piece
    from everstate.log.protocol import Log
    from everstate.topology.unit import Unit

#: Bounds of the sample of one topic.
RECORDS: Final = 2_000
BYTES: Final = 1_000_000
#: A key with more records than this gives its oldest and its newest ones.
_PER_KEY: Final = 100
#: A record that is larger would leave no room for others.
_LARGEST: Final = 100_000
#: So many records of a topic are looked at, in so many ranges of each of so many partitions at the most.
_SCANNED: Final = 20_000
_RANGES: Final = 10
_PARTITIONS: Final = 200
#: Micro-batches that the sample is divided into; each is about twice the one before, so that a slow output has a sample
#: that is small enough, and rows meet rows of their own batch as well as those of earlier ones.
_BATCHES: Final = 5
_COLUMNS: Final = ["key", "value", "ts", "offset"]


def taken(log: Log, unit: Unit) -> list[list[Piece]]:
    """A sample of an output's sources, cut into micro-batches; empty if they hold nothing."""
    scanned = {topic: _scanned(log, topic) for topic in unit.topics}
    sample = {topic: _chosen(frame) for topic, frame in scanned.items()}
    if any(node.traits.refers for node in unit.nodes):
        wanted = pl.DataFrame({"name": list(_referred(unit, sample))}, schema={"name": pl.Binary})
        for topic, frame in scanned.items():
            referred = frame.join(wanted, on="name", how="semi").join(
                sample[topic], on=["partition", "offset"], how="anti"
            )
            sample[topic] = pl.concat([sample[topic], _chosen(referred)])
    return batches({topic: frame for topic, frame in sample.items() if frame.height})


def batches(sample: dict[str, pl.DataFrame]) -> list[list[Piece]]:
    """Records by topic as micro-batches, every partition in the order of its offsets."""
    found: list[list[Piece]] = [[] for _ in range(_BATCHES)]
    for topic, frame in sorted(sample.items()):
        for (partition,), part in sorted(frame.partition_by("partition", as_dict=True).items()):
            records = part.sort("offset").select(_COLUMNS)
            ends = [-(-records.height * (2**n - 1) // (2**_BATCHES - 1)) for n in range(_BATCHES + 1)]
            for number, (start, end) in enumerate(pairwise(ends)):
                if start < end:
                    found[number].append((topic, int(partition), records[start:end]))
    return [batch for batch in found if batch]


def _scanned(log: Log, topic: str) -> pl.DataFrame:
    """Records from all over a topic, each with what it is chosen by: its key or, without one, its place."""
    info = log.describe(topic)
    step = -(-len(info.end) // _PARTITIONS)
    partitions = sorted(info.end)[::step]
    share = max(_SCANNED // max(len(partitions), 1), 1)
    ranges = min(_RANGES, max(share // 100, 1))
    frames = [
        log.read(topic, number, start, limit=limit).select(*_COLUMNS).with_columns(partition=pl.lit(number, pl.Int32))
        for number in partitions
        for start, limit in _ranges(info.start[number], info.end[number], share, ranges)
    ]
    schema = {"key": pl.Binary, "value": pl.Binary, "ts": pl.Int64, "offset": pl.Int64, "partition": pl.Int32}
    empty = pl.DataFrame(schema=schema)
    found = pl.concat([empty, *(frame.select(empty.columns).cast(schema) for frame in frames)])  # type: ignore[arg-type]
    size = pl.sum_horizontal(pl.col("key", "value").bin.size().fill_null(0))
    spot = pl.format("{}/{}", "partition", "offset").cast(pl.Binary)
    return (
        found.unique(["partition", "offset"], maintain_order=True)
        .with_columns(size.alias("size"), pl.coalesce("key", spot).alias("name"))
        .filter(pl.col("size") <= _LARGEST)
    )


def _ranges(start: int, end: int, share: int, count: int) -> list[tuple[int, int]]:
    """First offsets and lengths of the ranges that are read of a partition."""
    if end - start <= share or count == 1:
        return [(start, share)]
    length = share // count
    gap = (end - start - length) // (count - 1)
    return [(start + number * gap, length) for number in range(count)]


def _chosen(frame: pl.DataFrame) -> pl.DataFrame:
    """Records of as many keys as there is room for."""
    if frame.is_empty():
        return frame
    oldest = pl.int_range(pl.len()).over("name") < _PER_KEY // 2
    newest = pl.int_range(pl.len()).reverse().over("name") < _PER_KEY // 2
    some = frame.sort("partition", "offset").filter(oldest | newest)
    keys = some.group_by("name").agg(records=pl.len(), size=pl.col("size").sum())
    keys = keys.with_columns(pl.Series("hash", place(keys["name"]))).sort("hash", "name")
    room = (pl.col("records").cum_sum() <= RECORDS) & (pl.col("size").cum_sum() <= BYTES)
    kept = keys.filter(room | (pl.int_range(pl.len()) == 0))
    return some.join(kept, on="name", how="semi")


def _referred(unit: Unit, sample: dict[str, pl.DataFrame]) -> set[bytes]:
    """Keys that the sample's rows refer to in foreign-key joins."""
    found: set[bytes] = set()

    def admit(_: int, waiting: list[Parcel]) -> list[Parcel]:
        for parcel in waiting:
            if parcel.node >= 0 and unit.nodes[parcel.node].traits.refers:
                found.update(parcel.frame[KEY].drop_nulls())
        return waiting

    evaluated(unit, batches({topic: frame for topic, frame in sample.items() if frame.height}), admit=admit, seconds=1)
    return found
