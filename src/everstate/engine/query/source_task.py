"""Stage 0 as a Spark task: read the records at the addresses, decode them, and send rows to their shards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl
from pyspark import TaskContext

from everstate.engine.query.packing import pack, to_arrow
from everstate.engine.query.source import TOLD
from everstate.errors.carrying import carried
from everstate.kernels import pipeline
from everstate.log.archive.reading import read_split
from everstate.log.descriptions import Split
from everstate.log.planning import Told
from everstate.log.records import empty

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from everstate.engine.query.job import Job
    from everstate.kernels.parcel import Parcel
    from everstate.kernels.pipeline import Piece
    from everstate.log.protocol import Log

#: Neighbouring splits are decoded together up to this many records: columns pay, and memory stays bounded.
TOGETHER: Final = 500_000


def reading(job: Job) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with carried():
            addresses = [Split(**row) for batch in batches for row in batch.to_pylist()]
            context = TaskContext.get()
            sender = context.partitionId() if context else 0
            yield from to_arrow(pack(ingested(job, addresses), shards=job.shards, sender=sender))

    return read


def ingested(job: Job, addresses: Iterable[Split]) -> list[Parcel]:
    """Read and decode; returns what goes to later stages and what leaves the unit at once."""
    unit, heard, places = job.unit(), [], []
    for address in addresses:
        if address.topic == TOLD:
            told = Told.from_json(address.location)
            heard += pipeline.told(unit, told.clock, told.epochs, told.times)
        else:
            places.append(address)
    return [*pipeline.ingested(unit, _pieces(job.log(), places), job.policy, order=job.order), *heard]


def _pieces(log: Log, addresses: Iterable[Split]) -> Iterator[Piece]:
    for run in runs(addresses):
        frames = [read_split(log, split) if split.end > split.start else empty() for split in run]
        yield run[0].topic, run[0].partition, frames[0] if len(frames) == 1 else pl.concat(frames)


def runs(addresses: Iterable[Split], together: int = TOGETHER) -> Iterator[list[Split]]:
    """Neighbouring splits of one partition, so that many small segments cost little more than a large one.

    One without records keeps those beside it apart.

    Example:
        >>> splits = [Split("t", 0, 0, 2, ""), Split("t", 0, 2, 4, ""), Split("t", 1, 0, 9, "")]
        >>> [len(run) for run in runs(splits)]
        [2, 1]
    """
    run: list[Split] = []
    for split in addresses:
        last = run[-1] if run else None
        continues = last is not None and (last.topic, last.partition, last.end) == (
            split.topic,
            split.partition,
            split.start,
        )
        cut = last is not None and (last.start == last.end or split.start == split.end)
        if run and (not continues or cut or split.end - run[0].start > together):
            yield run
            run = []
        run.append(split)
    if run:
        yield run
