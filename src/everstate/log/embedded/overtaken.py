"""Batches that say something of records of a topic to which others write meanwhile; see `Commit.seen`.

What is said of a key counts only as long as no record has come for it. So the tails are read before the transaction,
and inside of it the little that has come since then; if that concerns the batch, all begins again.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from everstate.log.embedded import publishing, reading
from everstate.log.embedded.manifest import catalogue
from everstate.log.embedded.segments import Place, Segment

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from everstate.log.descriptions import Commit, Staged, Vector
    from everstate.log.embedded.store import Store

_KEYS = ["key"]


@dataclass(frozen=True, eq=False)
class Standing:
    """What of a batch still counts.

    Attributes:
        staged: Its records without those of keys that have got others since.
        left_out: How many were left out on the output's topic.
        looked: How far that is known.
    """

    staged: Sequence[Staged]
    left_out: int
    looked: Vector


@contextmanager
def standing(store: Store, batch: Commit, staged: Sequence[Staged]) -> Iterator[Standing]:
    """What of a batch still counts, in files that are deleted unless a commit names them."""
    with store.manifest.reading() as database:
        looked = {name: catalogue.offsets(database, catalogue.topic_named(database, name))[1] for name in batch.seen}
    keys = [
        frame["key"]
        for name, partition, end in _places(looked)
        for frame in reading.scan(
            store, Place(name, partition), _since(store, batch, name, partition), end, columns=_KEYS
        )
    ]
    found = _Reduced(store, batch, pl.concat(keys).unique() if keys else pl.Series(dtype=pl.Binary))
    try:
        parts = [found.part(part) for part in staged]
        yield Standing(parts, found.left_out, looked)
    finally:
        publishing.abort(store, found.written)


def still(store: Store, database: sqlite3.Connection, batch: Commit, known: Standing) -> bool:
    """Whether that is all that counts at this moment, inside the transaction that publishes it."""
    keys = []
    for name, partition, start in _places(known.looked):
        topic, place = catalogue.topic_named(database, name), Place(name, partition)
        end = catalogue.bounds(database, topic, partition)[1]
        for item in catalogue.segments(database, topic, partition, start=start, end=end) if end > start else ():
            frames = store.reader.read(place, item.segment, start=start, end=end, columns=_KEYS)
            keys += [frame["key"] for frame in frames]
    if not keys:
        return True
    touched = pl.concat(keys).unique().implode()
    return not any(_content(store, part)["key"].is_in(touched).any() for part in _concerned(batch, known.staged))


def _places(vector: Vector) -> Iterator[tuple[str, int, int]]:
    return ((name, partition, end) for name, ends in vector.items() for partition, end in sorted(ends.items()))


def _since(store: Store, batch: Commit, name: str, partition: int) -> int:
    with store.manifest.reading() as database:
        begin = catalogue.bounds(database, catalogue.topic_named(database, name), partition)[0]
    return max(begin, batch.seen[name].get(partition, 0))


def _concerned(batch: Commit, staged: Sequence[Staged]) -> list[Staged]:
    """The parts of which records are left out; what is said of records elsewhere stands."""
    return [part for part in staged if part.rows and (part.topic in batch.seen or part.topic == batch.output)]


def _content(store: Store, part: Staged) -> pl.DataFrame:
    segment = Segment.from_json(part.location)
    placed = replace(segment, base=0, end=segment.end)
    return pl.concat(store.reader.read(Place(part.topic, part.partition), placed, start=0, end=segment.end))


class _Reduced:
    """Parts of a batch without the records of some keys."""

    def __init__(self, store: Store, batch: Commit, keys: pl.Series) -> None:
        self._store = store
        self._batch = batch
        self._keys = keys
        self.written: list[Staged] = []
        self.left_out = 0

    def part(self, part: Staged) -> Staged:
        """What still counts of a part: itself, if that is all of it."""
        if not len(self._keys) or not _concerned(self._batch, [part]):
            return part
        content = _content(self._store, part)
        kept = content.filter(~pl.col("key").is_in(self._keys.implode()))
        if kept.height == content.height:
            return part
        if part.topic == self._batch.output:
            self.left_out += content.height - kept.height
        fresh = publishing.stage(self._store, part.topic, part.partition, kept)
        self.written.append(fresh)
        return fresh
