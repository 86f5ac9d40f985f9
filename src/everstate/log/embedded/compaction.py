"""Compaction: fewer records (the last of each key) and fewer files, at unchanged offsets.

New files are written and synced beside the old ones, then one transaction swaps them in the manifest, provided that all
the old ones are still there: whoever loses a race throws its own files away. Readers that were on their way to an old
file find their offsets again in the new one.

The segments of each output's last batch are left alone, and what was before them keeps one record a key: if that batch
comes again with other content, its correction needs both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from everstate.log.crash import crash_point
from everstate.log.embedded import catalogue, garbage, reading, retention
from everstate.log.embedded.segments import APPENDED, BLOCK_BYTES, BLOCK_RECORDS, Place, Segment, SegmentWriter
from everstate.log.records import CONTENT

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

    from everstate.log.embedded.catalogue import StoredSegment, Topic
    from everstate.log.embedded.store import Store
    from everstate.log.protocol import Vector

#: A segment with fewer records is small; so many small ones in a partition are worth merging.
SMALL_RECORDS: Final = BLOCK_RECORDS
MANY_SMALL: Final = 64
#: Compact when this share of the records came after the last compaction. Kafka's half would have a busy table compacted
#: after every other batch, at a third of what the batches themselves cost.
DIRTY_RATIO: Final = 0.75
#: A smaller topic is read in a moment as it is.
MIN_DIRTY_RECORDS: Final = 100_000
_SEGMENT_BYTES: Final = 128 << 20
_STORED: Final = [*CONTENT, "offset", APPENDED]


def compact(store: Store, name: str) -> None:
    """Drop all that is superfluous in a topic now."""
    topic = _expired(store, name)
    for partition in range(topic.config.partitions):
        if topic.config.compact:
            compact_partition(store, topic, partition)
        else:
            merge_partition(store, topic, partition, at_least=2)
    garbage.collect(store)


def maintain(store: Store, name: str) -> bool:
    """Do what is worth doing; says whether anything was."""
    topic = _expired(store, name)
    done = False
    for partition in range(topic.config.partitions):
        with store.manifest.reading() as database:
            dirty, total, small = _condition(database, topic, partition)
        if topic.config.compact and dirty >= MIN_DIRTY_RECORDS and dirty >= DIRTY_RATIO * total:
            done |= compact_partition(store, topic, partition)
        elif small >= MANY_SMALL:
            done |= merge_partition(store, topic, partition, at_least=MANY_SMALL // 2)
    if done:
        garbage.collect(store)
    return done


def _expired(store: Store, name: str) -> Topic:
    with store.manifest.reading() as database:
        topic = catalogue.topic_named(database, name)
    if topic.config.retention_ms is not None:
        with store.manifest.writing() as database:
            retention.expire(database, topic, now_ms=store.clock())
    return topic


def _condition(database: sqlite3.Connection, topic: Topic, partition: int) -> tuple[int, int, int]:
    """Of what may be compacted: records since the last compaction, all records, and the number of small segments."""
    row = database.execute(
        "SELECT coalesce(sum(records), 0) AS total, "
        "coalesce(sum(CASE WHEN base_offset >= clean_to THEN records ELSE 0 END), 0) AS dirty, "
        "coalesce(sum(records < ?), 0) AS small FROM segments JOIN partitions USING (topic_id, partition) "
        "WHERE topic_id = ? AND partition = ? AND commit_id IS NULL",
        (SMALL_RECORDS, topic.id, partition),
    ).fetchone()
    return row["dirty"], row["total"], row["small"]


def _settled(database: sqlite3.Connection, topic: Topic, partition: int) -> list[StoredSegment]:
    """The segments before any that belongs to an output's last batch."""
    row = database.execute(
        "SELECT min(base_offset) FROM segments WHERE topic_id = ? AND partition = ? AND commit_id IS NOT NULL",
        (topic.id, partition),
    ).fetchone()
    found = catalogue.segments(database, topic, partition)
    return [item for item in found if row[0] is None or item.segment.end <= row[0]]


def compact_partition(store: Store, topic: Topic, partition: int) -> bool:
    """Keep the last record of each key, and tombstones until they are old enough."""
    place = Place(topic.name, partition)
    with store.manifest.reading() as database:
        stored = _settled(database, topic, partition)
    if not stored:
        return False
    last = reading.last_of_each_key(_key_frames(store, place, stored))
    outdated = pl.col("tombstone") & (pl.col(APPENDED) <= store.clock() - topic.config.delete_retention_ms)
    dropped = last.filter(outdated)["offset"]
    survivors = last.filter(~outdated)["offset"].sort().to_numpy()
    total = sum(item.segment.records for item in stored)
    if len(survivors) == total and len(stored) <= 1 + total // SMALL_RECORDS:
        return False
    written = _rewrite(store, topic, _surviving(_frames(store, place, stored, _STORED), survivors), _youngest(stored))
    dropped_to = int(dropped.to_numpy().max()) + 1 if len(dropped) else None
    swap = Swap(topic, partition, stored, written, dropped_to=dropped_to, clean_to=stored[-1].segment.end)
    return swap.apply(store)


def merge_partition(store: Store, topic: Topic, partition: int, *, at_least: int) -> bool:
    """Put runs of small segments together; no record goes."""
    place = Place(topic.name, partition)
    with store.manifest.reading() as database:
        stored = _settled(database, topic, partition)
    done = False
    for small, run in groupby(stored, key=lambda item: item.segment.records < SMALL_RECORDS):
        inputs = list(run)
        if small and len(inputs) >= at_least:
            written = _rewrite(store, topic, _frames(store, place, inputs, _STORED), _youngest(inputs))
            done |= Swap(topic, partition, inputs, written).apply(store)
    return done


def _youngest(stored: Sequence[StoredSegment]) -> int:
    return max(item.segment.appended_ms for item in stored)


def _key_frames(store: Store, place: Place, stored: Sequence[StoredSegment]) -> Iterator[pl.DataFrame]:
    for frame in _frames(store, place, stored, ["key", "value", "offset", APPENDED]):
        yield frame.select("key", "offset", APPENDED, pl.col("value").is_null().alias("tombstone"))


def _frames(store: Store, place: Place, stored: Sequence[StoredSegment], columns: list[str]) -> Iterator[pl.DataFrame]:
    for item in stored:
        segment = item.segment
        yield from store.reader.read(place, segment, start=segment.base, end=segment.end, columns=columns)


def _rewrite(store: Store, topic: Topic, frames: Iterable[pl.DataFrame], appended_ms: int) -> list[Segment]:
    """Write records into new files, each a segment of bounded size."""
    written: list[Segment] = []
    writer: SegmentWriter | None = None
    try:
        for block in _full_blocks(frames):
            writer = writer or SegmentWriter(store.root, topic.folder)
            writer.add(block)
            if writer.size >= _SEGMENT_BYTES:
                written.append(_finished(writer, appended_ms))
                writer = None
        if writer is not None:
            written.append(_finished(writer, appended_ms))
    except BaseException:
        if writer is not None:
            writer.discard()
        _discard(store, written)
        raise
    return written


def _finished(writer: SegmentWriter, appended_ms: int) -> Segment:
    segment = writer.segment(appended_ms=appended_ms)
    return replace(segment, file_bytes=writer.finish())


def _surviving(frames: Iterable[pl.DataFrame], survivors: npt.NDArray[np.int64]) -> Iterator[pl.DataFrame]:
    guarded = np.append(survivors, -1)  # what lies beyond the last survivor finds an offset that no record has
    for frame in frames:
        offsets = frame["offset"].to_numpy()
        yield frame.filter(pl.Series(guarded[np.searchsorted(survivors, offsets)] == offsets))


def _full_blocks(frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Put small frames together until they make a block."""
    waiting: list[pl.DataFrame] = []
    rows = size = 0
    for frame in frames:
        waiting.append(frame)
        rows += len(frame)
        size += int(frame.estimated_size())
        if rows >= BLOCK_RECORDS or size >= BLOCK_BYTES:
            yield pl.concat(waiting)
            waiting, rows, size = [], 0, 0
    if rows:
        yield pl.concat(waiting)


@dataclass(frozen=True)
class Swap:
    """New segments that take the place of old ones.

    Attributes:
        dropped_to: One after the last tombstone that was dropped, if any was.
        clean_to: Up to where there is now one record a key; None leaves that as it was.
    """

    topic: Topic
    partition: int
    stored: Sequence[StoredSegment]
    written: Sequence[Segment]
    dropped_to: int | None = None
    clean_to: int | None = None

    def apply(self, store: Store) -> bool:
        """Do it in one transaction, if the old segments are all still there; says whether they were."""
        crash_point("log.compact.before_swap")
        with store.manifest.writing() as database:
            fits = all(catalogue.has_segment(database, item.id) for item in self.stored)
            if fits:
                self._exchange(database, store.clock())
                crash_point("log.compact.inside_swap")
        crash_point("log.compact.after_swap")
        if not fits:
            _discard(store, self.written)
        return fits

    def _exchange(self, database: sqlite3.Connection, now_ms: int) -> None:
        catalogue.remove_segments(database, [item.id for item in self.stored], now_ms=now_ms)
        for segment in self.written:
            catalogue.insert_segment(database, self.topic, self.partition, segment)
        if self.clean_to is not None:
            database.execute(
                "UPDATE partitions SET clean_to = ? WHERE topic_id = ? AND partition = ?",
                (self.clean_to, self.topic.id, self.partition),
            )
        if self.dropped_to is not None:
            database.execute(
                "INSERT INTO dropped_tombstones (topic_id, partition, dropped_ms, end_offset) VALUES (?, ?, ?, ?)",
                (self.topic.id, self.partition, now_ms, self.dropped_to),
            )


def _discard(store: Store, written: Sequence[Segment]) -> None:
    for segment in written:
        (store.root / segment.file).unlink(missing_ok=True)


def tombstones_dropped(database: sqlite3.Connection, positions: Vector, *, since_ms: int) -> Vector:
    """Where compaction has dropped tombstones that a consumer at these positions has not seen."""
    missed: Vector = {}
    for name, offsets in positions.items():
        topic = catalogue.topic_named(database, name)
        for partition, position in offsets.items():
            if position <= catalogue.bounds(database, topic, partition)[0]:
                continue  # it has read nothing yet, so there is nothing that it should have deleted
            row = database.execute(
                "SELECT max(end_offset) FROM dropped_tombstones "
                "WHERE topic_id = ? AND partition = ? AND dropped_ms > ? AND end_offset > ?",
                (topic.id, partition, since_ms, position),
            ).fetchone()
            if row[0] is not None:
                missed.setdefault(name, {})[partition] = row[0]
    return missed
