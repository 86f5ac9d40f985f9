"""Corrections: a batch that was published before and now comes out otherwise; see `everstate.log.succession`.

What the batch published comes after the offsets that its marker has, and carries its generation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.log import records
from everstate.log.descriptions import Staged
from everstate.log.digest import combined_digest, content_digest
from everstate.log.kafka import staging
from everstate.log.kafka.private import maker_of
from everstate.log.kafka.writer import GENERATION
from everstate.log.last_records import last_of_each_key
from everstate.log.records import CONTENT, SCHEMA
from everstate.log.succession import changes, conflict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from everstate.log.descriptions import Commit
    from everstate.log.kafka.markers import Marker
    from everstate.log.kafka.private import Table
    from everstate.log.kafka.reading import Reader

_OURS: Final = "$ours"


@dataclass(frozen=True)
class Correction:
    """What has to be published to one partition."""

    topic: str
    partition: int
    content: pl.DataFrame


def difference(
    reader: Reader, last: Marker, batch: Commit, staged: Sequence[Staged], missing: Callable[[int], bool]
) -> list[Correction]:
    """What has to be published so that the topics hold what the batch says now.

    Args:
        reader: Reads topics.
        last: The batch as it was published.
        batch: The batch as it is now.
        staged: What that publishes.
        missing: Whether nothing of the batch was published to partitions of a number.

    Raises:
        CommitConflictError: If the content of a stream differs.
    """
    wanted: dict[tuple[str, int], list[Staged]] = {}
    for part in staged:
        if part.rows:
            wanted.setdefault((part.topic, part.partition), []).append(part)
    ends = reader.topics.ends(sorted({*last.before, *(topic for topic, _ in wanted)}))
    compacted = {topic: reader.topics.describe(topic).config.compact for topic in ends}
    result = []
    for topic, numbers in ends.items():
        for number, end in numbers.items():
            place = (topic, number)
            since = last.before.get(topic, {}).get(number)
            then = list(_published(reader, place, since, end, batch.generation)) if since is not None else []
            now = [staging.content(part) for part in wanted.get(place, ())]
            if missing(number):
                result += [Correction(topic, number, frame) for frame in now]
            elif not compacted[topic]:
                _refuse_other_stream(batch, place, then, now)
            elif now or any(frame.height for frame in then):
                result.append(Correction(topic, number, _changes(reader, place, since, then, now)))
    return [found for found in result if found.content.height]


def private_difference(table: Table, batch: Commit, staged: Sequence[Staged]) -> list[Correction]:
    """The same for a table of files."""
    mine = [file for file in table.files if (file.maker, file.batch) == (maker_of(batch), batch.batch_id)]
    earlier = [file for file in table.files if file not in mine]
    result = []
    for number in range(table.config.partitions):
        then = last_of_each_key(table.frames(number, files=mine))
        now = [staging.content(part) for part in staged if part.partition == number]
        before = last_of_each_key(table.frames(number, files=earlier), keys=then.select("key"))
        found = changes(_last(now), then.select(*CONTENT), before)
        if found.height:
            result.append(Correction(table.name, number, found))
    return result


def _published(reader: Reader, place: tuple[str, int], since: int, end: int, generation: str) -> Iterator[pl.DataFrame]:
    topic, number = place
    mark = {"name": GENERATION, "value": generation.encode()}
    for frame in reader.scan(topic, {number: since}, {number: end}):
        ours = [mark in (headers or ()) for headers in frame["headers"].to_list()]
        yield frame.select(*SCHEMA).filter(pl.Series(_OURS, ours, pl.Boolean))


def _changes(
    reader: Reader, place: tuple[str, int], since: int | None, then: list[pl.DataFrame], now: list[pl.DataFrame]
) -> pl.DataFrame:
    was = last_of_each_key(then)
    before = records.empty()
    if since is not None and was.height:
        topic, number = place
        begin = reader.topics.begins([topic])[topic][number]
        earlier = (frame.select(*SCHEMA) for frame in reader.scan(topic, {number: begin}, {number: since}))
        before = last_of_each_key(earlier, keys=was.select("key"))
    return changes(_last(now), was.select(*CONTENT), before)


def _last(frames: list[pl.DataFrame]) -> pl.DataFrame:
    return last_of_each_key(frames).select(*CONTENT) if frames else pl.DataFrame(schema=CONTENT)


def _refuse_other_stream(
    batch: Commit, place: tuple[str, int], then: list[pl.DataFrame], now: list[pl.DataFrame]
) -> None:
    topic, number = place
    if _digest(topic, number, then) != _digest(topic, number, now):
        raise conflict(batch, f"it was published to the stream {topic!r} with different content")


def _digest(topic: str, number: int, frames: Sequence[pl.DataFrame]) -> str:
    return combined_digest([Staged(topic, number, len(frame), content_digest(frame), "") for frame in frames])
