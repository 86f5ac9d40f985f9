"""Compaction: fewer records (the last of each key) and fewer files, at unchanged offsets.

New files are written and synced beside the old ones, then one transaction swaps them in the manifest, provided that all
the old ones are still there: whoever loses a race throws its own files away. Readers that were on their way to an old
file find their offsets again in the new one.

The segments of each output's last batch are left alone, and what was before them keeps one record per key: if that
batch comes again with different content, its correction needs both. What came after them is tended on its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from everstate.log.crash import crash_point
from everstate.log.embedded import staging
from everstate.log.embedded.manifest import catalogue
from everstate.log.embedded.segments import APPENDED, BLOCK_BYTES, BLOCK_RECORDS, Place, Segment
from everstate.log.embedded.upkeep import claims, garbage, merging, retention, timing
from everstate.log.last_records import last_of_each_key
from everstate.log.records import CONTENT
from everstate.log.upkeep import worth_compacting

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

    from everstate.log.descriptions import Vector
    from everstate.log.embedded.manifest.catalogue import StoredSegment, Topic
    from everstate.log.embedded.segments import SegmentWriter
    from everstate.log.embedded.store import Store

_SEGMENT_BYTES: Final = 128 << 20
#: Merging looks at so many segments at the end of a partition, and at so many more if there are unmerged ones before.
_WINDOW: Final = 128
_BACKLOG: Final = 20_000
_STORED: Final = [*CONTENT, "offset", APPENDED]


def compact(store: Store, name: str) -> None:
    """Drop all that is superfluous in a topic now, whether or not somebody else tends it."""
    topic = _expired(store, name)
    with claims.claimed(store, topic):
        for partition in range(topic.config.partitions):
            if topic.config.compact:
                compact_partition(store, topic, partition)
            else:
                while merge_partition(store, topic, partition, at_least=2):
                    pass
    garbage.collect(store)


def maintain(store: Store, name: str, *, compacting: bool = True) -> bool:
    """Do what is worth doing, unless somebody does it already; says whether anything was done.

    Args:
        store: The log.
        name: The topic.
        compacting: Also what takes longer than a moment.
    """
    topic = _expired(store, name)
    done = False
    with store.manifest.reading() as database:
        worth = [
            p for p in range(topic.config.partitions) if is_due(database, topic, p) or _unmerged(database, topic, p)
        ]
        # Retention leaves files behind, too, in topics that never have anything to merge.
        litter = garbage.is_due(database, now_ms=store.clock())
    if worth:
        with claims.claimed(store, topic) as mine:
            for partition in worth if mine else ():
                compacted = compacting and compact_if_due(store, topic, partition)
                done |= compacted or merge_partition(store, topic, partition)
    if done or litter:
        garbage.collect(store)
    return done


def _expired(store: Store, name: str) -> Topic:
    with store.manifest.reading() as database:
        topic = catalogue.topic_named(database, name)
    if topic.config.retention_ms is not None:
        with store.manifest.writing() as database:
            retention.expire(database, topic, now_ms=store.clock())
    return topic


def is_due(database: sqlite3.Connection, topic: Topic, partition: int) -> bool:
    """Whether enough records came after the last compaction."""
    if not topic.config.compact:
        return False
    row = database.execute(
        "SELECT coalesce(sum(records), 0) AS total, "
        "coalesce(sum(CASE WHEN base_offset >= clean_to THEN records ELSE 0 END), 0) AS dirty "
        "FROM segments JOIN partitions USING (topic_id, partition) "
        "WHERE topic_id = ? AND partition = ? AND commit_id IS NULL",
        (topic.id, partition),
    ).fetchone()
    return worth_compacting(row["dirty"], row["total"])


def compact_if_due(store: Store, topic: Topic, partition: int) -> bool:
    """Compact a partition if that is worth it; says whether it was."""
    with store.manifest.reading() as database:
        due = is_due(database, topic, partition)
    return due and compact_partition(store, topic, partition)


def _stretches(
    database: sqlite3.Connection, topic: Topic, partition: int, *, window: int | None = None
) -> list[list[StoredSegment]]:
    """The segments between those of outputs' last batches; of each stretch all, or so many at its end.

    The first one begins where the partition does, and may be empty. An output may be gone for good, or remove a key
    once a week: what others append after its last batch is tended all the same.
    """
    kept = database.execute(
        "SELECT base_offset, end_offset FROM segments WHERE commit_id IS NOT NULL AND topic_id = ? AND partition = ? "
        "ORDER BY base_offset",
        (topic.id, partition),
    ).fetchall()
    starts = [0, *(row["end_offset"] for row in kept)]
    ends = [*(row["base_offset"] for row in kept), catalogue.LAST]
    found = [
        catalogue.segments(database, topic, partition, start=start, end=end)
        if window is None
        else catalogue.last_segments(database, topic, partition, start=start, end=end, count=window)
        for start, end in zip(starts, ends, strict=True)
        if start < end
    ]
    return found if ends[0] else [[], *found]


def compact_partition(store: Store, topic: Topic, partition: int) -> bool:
    """Keep the last record of each key, and tombstones until they are old enough; says whether anything was done."""
    with store.manifest.reading() as database:
        stretches = _stretches(database, topic, partition)
    done = False
    for number, stored in enumerate(stretches):
        if stored:
            # What a later stretch deletes may be in one before it, so its tombstones stay.
            done |= _compact_stretch(store, topic, partition, stored, dropping=number == 0)
    return done


def _compact_stretch(
    store: Store, topic: Topic, partition: int, stored: Sequence[StoredSegment], *, dropping: bool
) -> bool:
    place, clean_to = Place(topic.name, partition), stored[-1].segment.end
    with store.manifest.reading() as database:
        clock_ms = timing.age_clock(database, store.clock())
    last = last_of_each_key(_key_frames(store, place, stored))
    outdated = pl.col("tombstone") & (pl.col(APPENDED) <= clock_ms - topic.config.delete_retention_ms) & dropping
    dropped = last.filter(outdated)["offset"]
    survivors = last.filter(~outdated)["offset"].sort().to_numpy()
    total = sum(item.segment.records for item in stored)
    if len(survivors) == total and len(stored) <= 1 + total // BLOCK_RECORDS:
        _note_clean(store, topic, partition, clean_to)
        return False
    written = _rewrite(store, topic, _surviving(_frames(store, place, stored, _STORED), survivors), stored)
    dropped_to = int(dropped.to_numpy().max()) + 1 if len(dropped) else None
    return Swap(topic, partition, stored, written, dropped_to=dropped_to, clean_to=clean_to).apply(store)


def _note_clean(store: Store, topic: Topic, partition: int, clean_to: int) -> None:
    """Note that nothing was superfluous up to here: all keys would be read again at every look otherwise."""
    with store.manifest.writing(durable=False) as database:
        database.execute(
            "UPDATE partitions SET clean_to = ?1 WHERE topic_id = ?2 AND partition = ?3 AND clean_to < ?1",
            (clean_to, topic.id, partition),
        )


def _unmerged(database: sqlite3.Connection, topic: Topic, partition: int) -> int:
    """How many segments could be merged; fewer than two cannot."""
    row = database.execute(
        "SELECT count(*) FROM segments WHERE topic_id = ? AND partition = ? AND tier < ? AND commit_id IS NULL",
        (topic.id, partition, merging.FULL),
    ).fetchone()
    return int(row[0]) if row[0] > 1 else 0


def merge_partition(store: Store, topic: Topic, partition: int, *, at_least: int = merging.FANOUT) -> bool:
    """Put neighbours of a tier together where there are enough; no record goes. Says whether anything was done."""
    done = False
    # What makes one of a tier may make enough of it. A topic that has new segments at every look would otherwise have
    # those of the lowest tier merged each time, and never what became of them.
    for _ in range(merging.FULL):
        merged = _merge_lowest(store, topic, partition, at_least)
        done |= merged
        if not merged:
            break
    return done


def _merge_lowest(store: Store, topic: Topic, partition: int, at_least: int) -> bool:
    place = Place(topic.name, partition)
    with store.manifest.reading() as database:
        unmerged = _unmerged(database, topic, partition)
        stretches = _stretches(database, topic, partition, window=_WINDOW if unmerged < _WINDOW else _BACKLOG)
    done = False
    for stored in stretches:
        for run in merging.runs(stored, at_least=at_least, retention_ms=topic.config.retention_ms):
            written = _rewrite(store, topic, _frames(store, place, run, _STORED), run)
            done |= Swap(topic, partition, run, written).apply(store)
    return done


def _key_frames(store: Store, place: Place, stored: Sequence[StoredSegment]) -> Iterator[pl.DataFrame]:
    for frame in _frames(store, place, stored, ["key", "value", "offset", APPENDED]):
        yield frame.select("key", "offset", APPENDED, pl.col("value").is_null().alias("tombstone"))


def _frames(store: Store, place: Place, stored: Sequence[StoredSegment], columns: list[str]) -> Iterator[pl.DataFrame]:
    for item in stored:
        segment = item.segment
        yield from store.reader.read(place, segment, start=segment.base, end=segment.end, columns=columns)


def _rewrite(
    store: Store, topic: Topic, frames: Iterable[pl.DataFrame], replaced: Sequence[StoredSegment]
) -> list[Segment]:
    """Write records into new files, each a segment of bounded size."""
    youngest = max(item.segment.max_ts for item in replaced)
    appended_ms = max(item.segment.appended_ms for item in replaced)
    written: list[Segment] = []
    writers: list[SegmentWriter] = []
    try:
        for block in _full_blocks(frames):
            if len(writers) == len(written):
                writers.append(staging.begin(store, topic))
            writers[-1].add(block)
            if writers[-1].size >= _SEGMENT_BYTES:
                written.append(_finished(writers[-1], appended_ms))
        if len(writers) > len(written):
            written.append(_finished(writers[-1], appended_ms))
    except BaseException:
        for writer in writers:
            writer.close()
        staging.discard(store, [writer.file for writer in writers])
        raise
    return [replace(segment, max_ts=min(segment.max_ts, youngest)) for segment in written]


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
        clean_to: Up to where there is now one record per key; None leaves that as it was.
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
            staging.discard(store, [segment.file for segment in self.written])
        return fits

    def _exchange(self, database: sqlite3.Connection, now_ms: int) -> None:
        catalogue.remove_segments(database, [item.id for item in self.stored], now_ms=now_ms)
        for segment in self.written:
            catalogue.insert_segment(database, self.topic, self.partition, segment)
        staging.arrived(database, [segment.file for segment in self.written])
        if self.clean_to is not None:
            database.execute(
                "UPDATE partitions SET clean_to = ? WHERE topic_id = ? AND partition = ?",
                (self.clean_to, self.topic.id, self.partition),
            )
        if self.dropped_to is not None:
            # What was dropped last lies after what was dropped before, so the last time covers both.
            database.execute(
                "INSERT INTO dropped_tombstones (topic_id, partition, dropped_ms, end_offset) VALUES (?1, ?2, ?3, ?4) "
                "ON CONFLICT DO UPDATE SET dropped_ms = max(dropped_ms, ?3), end_offset = max(end_offset, ?4)",
                (self.topic.id, self.partition, now_ms, self.dropped_to),
            )


def tombstones_dropped(database: sqlite3.Connection, positions: Vector, *, since_ms: int) -> Vector:
    """Where compaction has dropped tombstones that a consumer at these positions has not seen."""
    missed: Vector = {}
    for name, offsets in positions.items():
        topic = catalogue.topic_named(database, name)
        for partition, position in offsets.items():
            if position <= catalogue.bounds(database, topic, partition)[0]:
                continue  # it has read nothing yet, so there is nothing that it should have deleted
            dropped_ms, dropped_to = catalogue.dropped_tombstones(database, topic, partition)
            if dropped_ms > since_ms and dropped_to > position:
                missed.setdefault(name, {})[partition] = dropped_to
    return missed
