"""Corrections: a batch that was already published and now comes out otherwise; see `everstate.log.succession`."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from everstate.log import records
from everstate.log.descriptions import Commit, Staged
from everstate.log.digest import combined_digest, content_digest
from everstate.log.embedded import publishing, reading
from everstate.log.embedded.manifest import catalogue
from everstate.log.embedded.segments import Place, Segment
from everstate.log.last_records import last_of_each_key
from everstate.log.succession import changes, conflict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from everstate.log.embedded.store import Store


def difference(store: Store, batch: Commit, staged: Sequence[Staged], commit_id: int) -> list[Staged]:
    """Stage what has to be published so that the topics hold what the batch says now.

    Raises:
        CommitConflictError: If the content of a stream differs.
    """
    published = _published(store, commit_id)
    wanted: dict[Place, list[Staged]] = defaultdict(list)
    for part in staged:
        if part.rows:
            wanted[Place(part.topic, part.partition)].append(part)
    result: list[Staged] = []
    try:
        for place in sorted({*published, *wanted}):
            with store.manifest.reading() as database:
                compact = catalogue.topic_named(database, place.topic).config.compact
            if compact:
                correction = _changes(store, place, published[place], wanted[place])
                result.append(publishing.stage(store, *place, correction))
            else:
                _refuse_other_stream(store, batch, place, published[place], wanted[place])
    except BaseException:
        publishing.abort(store, result)
        raise
    return result


def _published(store: Store, commit_id: int) -> dict[Place, list[Segment]]:
    """What the commit has put where."""
    segments: dict[Place, list[Segment]] = defaultdict(list)
    with store.manifest.reading() as database:
        for topic, partition, segment in catalogue.segments_of_commit(database, commit_id):
            segments[Place(topic, partition)].append(segment)
    return segments


def _changes(store: Store, place: Place, published: Sequence[Segment], wanted: Sequence[Staged]) -> pl.DataFrame:
    """Records that turn what was published into what is wanted."""
    now = last_of_each_key(_staged_frames(store, wanted))
    then = last_of_each_key(_frames(store, place, published))
    before = _before(store, place, then, published[0].base) if published else records.empty()
    return changes(now, then, before)


def _before(store: Store, place: Place, then: pl.DataFrame, first_offset: int) -> pl.DataFrame:
    """The records that these keys had before the commit."""
    with store.manifest.reading() as database:
        begin = catalogue.bounds(database, catalogue.topic_named(database, place.topic), place.partition)[0]
    if begin >= first_offset:
        return records.empty()
    return last_of_each_key(reading.scan(store, place, begin, first_offset), keys=then.select("key"))


def _refuse_other_stream(
    store: Store, batch: Commit, place: Place, published: Sequence[Segment], wanted: Sequence[Staged]
) -> None:
    topic, partition = place
    parts = [
        Staged(topic, partition, len(frame), content_digest(frame), "") for frame in _frames(store, place, published)
    ]
    if combined_digest(parts) != combined_digest(wanted):
        raise conflict(batch, f"it was published to the stream {place.topic!r} with different content")


def _frames(store: Store, place: Place, segments: Sequence[Segment]) -> Iterator[pl.DataFrame]:
    for segment in segments:
        yield from store.reader.read(place, segment, start=segment.base, end=segment.end)


def _staged_frames(store: Store, staged: Sequence[Staged]) -> Iterator[pl.DataFrame]:
    base = 0
    for part in staged:
        place = Place(part.topic, part.partition)
        segment = Segment.from_json(part.location)
        placed = replace(segment, base=base, end=base + segment.end)
        yield from store.reader.read(place, placed, start=placed.base, end=placed.end)
        base = placed.end
