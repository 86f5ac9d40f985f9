"""Reading: ranges, splits and the latest record of every key."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from everstate.errors import LogBusyError, LogError, TopicRecreatedError
from everstate.log import records
from everstate.log.checks import check_split_size
from everstate.log.descriptions import Split
from everstate.log.embedded.manifest import catalogue
from everstate.log.embedded.segments import Block, Place, Segment
from everstate.log.last_records import last_of_each_key, table_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from everstate.log.embedded.manifest.catalogue import Topic
    from everstate.log.embedded.store import Store

#: A reader whose files are replaced under its hands looks for them so often; replaced files stay for minutes.
_LOOKS = 100


def scan(
    store: Store, place: Place, start: int, end: int | None = None, *, columns: list[str] | None = None
) -> Iterator[pl.DataFrame]:
    """The records of a range, block by block; without `end`, up to what is there when the reading begins.

    A file that compaction replaces meanwhile is looked up again, from the first offset not yet read on.
    """
    position = start
    identity: str | None = None
    for _ in range(_LOOKS):
        with store.manifest.reading() as database:
            topic = catalogue.topic_named(database, place.topic)
            refuse_other(topic, identity or topic.identity)
            identity = topic.identity
            catalogue.check_range(database, topic, place.partition, position, end)
            if end is None:
                end = catalogue.bounds(database, topic, place.partition)[1]
            stored = catalogue.segments(database, topic, place.partition, start=position, end=end)
        try:
            for item in stored:
                yield from store.reader.read(place, item.segment, start=position, end=end, columns=columns)
                position = min(end, item.segment.end)
        except FileNotFoundError as error:
            _refuse_if_named(store, place, item.segment, error)
        else:
            return
    raise LogError(
        f"topic {place.topic!r}, partition {place.partition} was compacted {_LOOKS} times while it was read",
        hint="Its records are all there; read it again when it is less busy.",
    )


def refuse_other(topic: Topic, identity: str) -> None:
    """Refuse a topic that only has the name of the one that was meant.

    Raises:
        TopicRecreatedError: If it has a different identity.
    """
    if topic.identity != identity:
        raise TopicRecreatedError(topic.name)


def _refuse_if_named(store: Store, place: Place, segment: Segment, cause: FileNotFoundError) -> None:
    with store.manifest.reading() as database:
        if catalogue.is_named(database, segment.file):
            raise store.reader.missing(place, segment) from cause


def read(
    store: Store, place: Place, start: int, *, limit: int | None = None, columns: list[str] | None = None
) -> pl.DataFrame:
    """The records of a partition from an offset on, at most `limit` of them; all columns of a record, or these."""
    frames: list[pl.DataFrame] = []
    count = 0
    for frame in scan(store, place, start, columns=columns):
        if limit is not None and count >= limit:
            break
        frames.append(frame)
        count += len(frame)
    whole = pl.concat(frames) if frames else _none(columns)
    return whole if limit is None else whole.head(limit)


def _none(columns: list[str] | None) -> pl.DataFrame:
    """No records, with the columns that were asked for; all but those of a record are numbers."""
    return pl.DataFrame(schema={name: records.SCHEMA.get(name, pl.Int64()) for name in columns or records.SCHEMA})


def splits(store: Store, place: Place, start: int, end: int, *, max_records: int) -> list[Split]:
    """Cut a range into parts of at most `max_records`, none of which crosses a segment."""
    check_split_size(max_records)
    with store.manifest.reading() as database:
        topic = catalogue.topic_named(database, place.topic)
        catalogue.check_range(database, topic, place.partition, start, end)
        stored = catalogue.segments(database, topic, place.partition, start=start, end=end)
        dropped_ms, _ = catalogue.dropped_tombstones(database, topic, place.partition)
    return [
        Split(*place, first, last, _location(topic, dropped_ms, replace(item.segment, blocks=tuple(blocks))))
        for item in stored
        for first, last, blocks in _runs(item.segment, start, end, max_records)
    ]


def _runs(segment: Segment, start: int, end: int, max_records: int) -> Iterator[tuple[int, int, list[Block]]]:
    """Runs of blocks with at most so many records together; a block with more is cut by offsets."""
    run: list[Block] = []
    for block in segment.blocks:
        first, last = max(start, segment.base + block.first), min(end, segment.base + block.end)
        if first >= last:
            continue
        if run and sum(part.records for part in run) + block.records > max_records:
            yield _run_range(segment, run, start, end)
            run = []
        if min(block.records, last - first) > max_records:
            for at in range(first, last, max_records):
                yield at, min(last, at + max_records), [block]
        else:
            run.append(block)
    if run:
        yield _run_range(segment, run, start, end)


def _run_range(segment: Segment, run: Sequence[Block], start: int, end: int) -> tuple[int, int, list[Block]]:
    return max(start, segment.base + run[0].first), min(end, segment.base + run[-1].end), list(run)


def _location(topic: Topic, dropped_ms: int, segment: Segment) -> str:
    return f"{topic.identity}@{dropped_ms}:{segment.to_json()}"


def read_split(store: Store, split: Split) -> pl.DataFrame:
    """The records of a split; looked up again if compaction has moved them.

    Raises:
        TopicRecreatedError: If the topic was deleted, and created again, since the split was made.
        LogBusyError: If compaction has dropped tombstones since then that may be of the split.
    """
    stamp, _, text = split.location.partition(":")
    place, segment = Place(split.topic, split.partition), Segment.from_json(text)
    try:
        frames = list(store.reader.read(place, segment, start=split.start, end=split.end))
    except FileNotFoundError:
        with store.manifest.reading() as database:
            _refuse_other_content(database, split, stamp)
        frames = list(scan(store, place, split.start, split.end))
    return pl.concat(frames) if frames else records.empty()


def _refuse_other_content(database: sqlite3.Connection, split: Split, stamp: str) -> None:
    """Refuse a range that lacks deletions which it had when it was planned: rows read before would stay for good.

    Whoever plans it again learns whether that matters: it asks for dropped tombstones first.
    """
    identity, _, planned_ms = stamp.partition("@")
    topic = catalogue.topic_named(database, split.topic)
    refuse_other(topic, identity)
    dropped_ms, dropped_to = catalogue.dropped_tombstones(database, topic, split.partition)
    if dropped_ms != int(planned_ms) and dropped_to > split.start:
        raise LogBusyError(
            f"topic {split.topic!r}, partition {split.partition} was compacted between planning and reading of "
            f"offsets {split.start} to {split.end - 1}",
            hint="Nothing is lost: the batch is planned again.",
        )


def latest(store: Store, topic: str) -> pl.DataFrame:
    """The last record of every key, without tombstones."""
    with store.manifest.reading() as database:
        info = catalogue.describe(database, topic)
    ends = [
        last_of_each_key(scan(store, Place(topic, partition), info.start[partition], end))
        for partition, end in sorted(info.end.items())
        if end > info.start[partition]
    ]
    return table_of(ends, info.config.partitions)
