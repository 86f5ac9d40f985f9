"""Commits and cutovers in memory: each is one draft, which counts as a whole or not at all."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from everstate.log import leasing, records
from everstate.log.crash import crash_point
from everstate.log.descriptions import Commit, CommitResult, Cutover, Ranges, Staged
from everstate.log.digest import combined_digest, content_digest
from everstate.log.memory import publishing
from everstate.log.memory.partition import stacked
from everstate.log.memory.store import Extent, Published, State, Topic
from everstate.log.memory.upkeep import last_rows
from everstate.log.stops import Stops
from everstate.log.succession import changes, conflict, judge

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The track of what was published; a generation that is built has one of its own.
_PUBLISHED = ""


def commit(state: State, batch: Commit, staged: Sequence[Staged], *, now_ms: int) -> CommitResult:
    """Publish a batch unless the log has it; publish the difference if the log has it with different content."""
    leasing.check(batch.lease_name, state.leases.get(batch.lease_name), batch.token)
    last = _before(state, batch)
    verdict = judge(last.commit if last is not None else None, batch)
    if verdict == "new" or last is None:
        standing, left_out = _standing(state, batch, staged) if batch.may_be_overtaken(staged) else (staged, 0)
        result = CommitResult("committed", _follow(state, batch, standing, now_ms=now_ms), left_out)
        crash_point("log.commit.inside_transaction")
        return result
    if verdict == "same":
        result = CommitResult("skipped", _ranges(state, last))
    else:
        result = CommitResult("corrected", _correct(state, batch, staged, last, now_ms=now_ms))
        crash_point("log.commit.inside_transaction")
    publishing.give_up(state, staged)
    return result


def _standing(state: State, batch: Commit, staged: Sequence[Staged]) -> tuple[list[Staged], int]:
    """What still counts of a batch, and how much was left out on the output's topic; see `Commit.seen`."""
    keys = [
        _content(topic, place, batch.seen[name].get(place, 0), end)["key"]
        for name in batch.seen
        for topic in [state.topic(name)]
        for place, end in topic.ends().items()
    ]
    touched, left_out, kept = pl.concat(keys).implode(), 0, []
    for part in staged:
        content = publishing.contents(state, [part])[0][1].content if part.rows else None
        concerned = content is not None and (part.topic in batch.seen or part.topic == batch.output)
        stands = content.filter(~pl.col("key").is_in(touched)) if content is not None and concerned else content
        if content is None or stands is None or stands.height == content.height:
            kept.append(part)
            continue
        left_out += content.height - stands.height if part.topic == batch.output else 0
        publishing.give_up(state, [part])
        kept += publishing.stage(state, state.topic(part.topic), [(part.partition, stands)])
    return kept, left_out


def cutover(state: State, request: Cutover, staged: Sequence[Staged], *, now_ms: int) -> CommitResult | None:
    """Publish the difference between two generations; None if a topic has grown since it was made."""
    for lease in request.leases:
        leasing.check(lease.name, state.leases.get(lease.name), lease.token)
    if any(state.topic(name).ends() != ends for name, ends in request.expected.items()):
        publishing.give_up(state, staged)
        return None
    for name, kept in request.copies.items():
        state.copy_topic(kept.original, name, now_ms=now_ms)
    result = CommitResult("committed", _follow(state, request.commit, staged, now_ms=now_ms))
    for name in request.drops:
        state.topics.pop(name, None)
    state.write_documents(request.commit.service, request.documents)
    crash_point("log.cutover.inside_transaction")
    return result


def _follow(state: State, batch: Commit, staged: Sequence[Staged], *, now_ms: int) -> Ranges:
    """Record a commit after the one before it, with what it publishes."""
    last = _before(state, batch)
    if last is not None:
        # Only the last batch can come again, so only of that one it need be known what it has published.
        state.commits[_key(last.commit)] = replace(last, extents=())
    known = detached(batch, committed_ms=now_ms)
    _note_stop(state, known, now_ms=now_ms)
    offsets, extents = publishing.publish(state, staged, now_ms=now_ms)
    state.commits[_key(batch)] = Published(state.next_number(), known, extents)
    return offsets


def _correct(state: State, batch: Commit, staged: Sequence[Staged], last: Published, *, now_ms: int) -> Ranges:
    """Publish what the batch has now and the log does not."""
    difference = _difference(state, batch, staged, last)
    offsets, extents = publishing.publish(state, difference, now_ms=now_ms)
    known = replace(last.commit, digest=batch.digest, token=batch.token, committed_ms=now_ms)
    state.commits[_key(batch)] = Published(last.number, known, (*last.extents, *extents))
    return offsets


def detached(batch: Commit, committed_ms: int | None) -> Commit:
    """A commit with vectors of its own, which nobody else can change."""
    start, end = ({topic: dict(ends) for topic, ends in vector.items()} for vector in (batch.start, batch.end))
    times = {topic: dict(known) for topic, known in batch.times.items()}
    return replace(batch, start=start, end=end, times=times, committed_ms=committed_ms)


def _key(batch: Commit) -> tuple[str, str, str, bool]:
    return batch.service, batch.output, batch.generation, batch.kind == "closed"


def _before(state: State, batch: Commit) -> Published | None:
    """The commit that a batch has to follow: while a generation is built, its own last one."""
    return last_commit(state, batch.service, batch.output, batch.generation if batch.kind == "closed" else None)


def last_commit(state: State, service: str, output: str, generation: str | None) -> Published | None:
    """The last batch that an output has published, or the last one of a generation, published or not."""
    found = (
        published
        for (owner, name, version, closed), published in state.commits.items()
        if (owner, name) == (service, output) and (not closed if generation is None else version == generation)
    )
    return max(found, key=lambda published: published.number, default=None)


def _places(state: State, published: Published) -> dict[tuple[str, int], list[Extent]]:
    """What a commit has put where, in topics that are still there."""
    names = {topic.id: topic.name for topic in state.topics.values()}
    places: dict[tuple[str, int], list[Extent]] = defaultdict(list)
    for extent in published.extents:
        if extent.topic_id in names:
            places[names[extent.topic_id], extent.partition].append(extent)
    return places


def _ranges(state: State, published: Published) -> Ranges:
    ranges: Ranges = {}
    for (name, partition), extents in _places(state, published).items():
        ranges.setdefault(name, {})[partition] = (extents[0].base, extents[-1].end)
    return ranges


def _difference(state: State, batch: Commit, staged: Sequence[Staged], last: Published) -> list[Staged]:
    """Stage what has to be published so that the topics hold what the batch says now.

    Raises:
        CommitConflictError: If the content of a stream differs.
    """
    published = _places(state, last)
    wanted: dict[tuple[str, int], list[pl.DataFrame]] = defaultdict(list)
    for part, found in publishing.contents(state, staged):
        wanted[part.topic, part.partition].append(found.content)
    result: list[Staged] = []
    for name, partition in sorted({*published, *wanted}):
        topic = state.topic(name)
        then = [_content(topic, partition, extent.base, extent.end) for extent in published[name, partition]]
        now = wanted[name, partition]
        if topic.config.compact:
            before = _content(topic, partition, 0, published[name, partition][0].base) if then else records.empty()
            correction = changes(_last_of_each_key(now), _last_of_each_key(then), _last_of_each_key([before]))
            result += publishing.stage(state, topic, [(partition, correction)])
        elif _digest(name, then) != _digest(name, now):
            raise conflict(batch, f"it was published to the stream {name!r} with different content")
    return result


def _content(topic: Topic, partition: int, start: int, end: int) -> pl.DataFrame:
    chunks = topic.partition(partition).range(start, end)
    return stacked([chunk.frame for chunk in chunks]).select(*records.CONTENT)


def _last_of_each_key(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    whole = stacked([frame.select(*records.CONTENT) for frame in frames])
    return whole[last_rows(whole)]


def _digest(topic: str, frames: Sequence[pl.DataFrame]) -> str:
    return combined_digest([Staged(topic, 0, len(frame), content_digest(frame), "") for frame in frames])


def _note_stop(state: State, batch: Commit, *, now_ms: int) -> None:
    """Note where a batch ends, for outputs whose results depend on the order of arrival."""
    owner = (batch.service, batch.output)
    if batch.kind == "cutover":
        # What the generation did while it was built counts from here on, so it is put after what was published.
        built = state.stops.pop((*owner, batch.generation), ())
        if batch.ordered and built:
            state.stops[*owner, _PUBLISHED] = (*state.stops.get((*owner, _PUBLISHED), ()), *built)
        # Only one generation of an output is built at a time: the tracks of others are of builds that were given up.
        for key in [key for key in state.stops if key[:2] == owner and key[2] != _PUBLISHED]:
            del state.stops[key]
    if batch.ordered:
        track = batch.generation if batch.kind == "closed" else _PUBLISHED
        # Whoever has read a topic has done so after it was created, also if the clock was set back meanwhile.
        noted_ms = max([now_ms, *(state.topics[name].created_ms for name in batch.end if name in state.topics)])
        state.stops[*owner, track] = (*state.stops.get((*owner, track), ()), (noted_ms, batch.end))


def stops(state: State, service: str, output: str) -> Stops:
    """Where the published batches of an output ended, and when they were committed."""
    known = state.stops.get((service, output, _PUBLISHED), ())
    return Stops.of([end for _, end in known], [time for time, _ in known]).advancing()


def forget(state: State, service: str) -> None:
    """Drop a service's commits and documents; what they published stays."""
    for key in [key for key in state.commits if key[0] == service]:
        del state.commits[key]
    for owner in [owner for owner in state.stops if owner[0] == service]:
        del state.stops[owner]
    state.documents.pop(service, None)
