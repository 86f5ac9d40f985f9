"""How far topics had got at a time: which offsets had been appended by then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from everstate.log.embedded import catalogue, reading
from everstate.log.embedded.segments import APPENDED, Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.log.embedded.catalogue import Topic
    from everstate.log.embedded.store import Store
    from everstate.log.protocol import Vector


def completed(store: Store, stops: Sequence[tuple[Vector, int]], topics: Sequence[str]) -> list[Vector]:
    """Vectors that name all these topics: what one of them does not name is filled in by its time.

    Args:
        store: The log's files and manifest.
        stops: Vectors, each with its time in milliseconds.
        topics: The topics; one that does not exist is left out.
    """
    found = [dict(vector) for vector, _ in stops]
    for topic in topics:
        lacking = [number for number, vector in enumerate(found) if topic not in vector]
        if lacking:
            ends = _ends_at(store, topic, [stops[number][1] for number in lacking])
            for number, end in zip(lacking, ends, strict=True):
                found[number][topic] = end
    return found


def _ends_at(store: Store, name: str, times: Sequence[int]) -> list[dict[int, int]]:
    """By time, the offset that each partition's next record was to get."""
    with store.manifest.reading() as database:
        if not catalogue.exists(database, name):
            return [{} for _ in times]
        topic = catalogue.topic_named(database, name)
        begin = catalogue.offsets(database, topic)[0]
    ends: list[dict[int, int]] = [{} for _ in times]
    for partition, first in begin.items():
        appended, offsets = _appended(store, topic, partition, first)
        # A clock that was set back must not make an offset appear later than the one behind it.
        seen = np.searchsorted(np.maximum.accumulate(appended), np.asarray(times, np.int64), side="right")
        for end, offset in zip(ends, np.concatenate([[first], offsets])[seen].tolist(), strict=True):
            end[partition] = offset
    return ends


def _appended(store: Store, topic: Topic, partition: int, first: int) -> tuple[np.ndarray, np.ndarray]:
    """Times, and the offsets after the last record that was appended then."""
    with store.manifest.reading() as database:
        stored = catalogue.segments(database, topic, partition, start=first)
    if any(item.segment.sparse for item in stored):
        # Compaction has put together what came at different times; every record knows its own.
        rows = reading.read(store, Place(topic.name, partition), first, columns=["offset", APPENDED])
        return rows[APPENDED].to_numpy(), rows["offset"].to_numpy() + 1
    segments = [item.segment for item in stored]
    return (
        np.array([segment.appended_ms for segment in segments], np.int64),
        np.array([segment.end for segment in segments], np.int64),
    )
