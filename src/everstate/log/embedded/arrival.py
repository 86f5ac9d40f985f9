"""How far topics had got at a time: which offsets had been appended by then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from everstate.log.embedded import catalogue, reading
from everstate.log.embedded.segments import APPENDED, Place
from everstate.log.stops import UNNAMED, Stops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everstate.log.embedded.catalogue import Topic
    from everstate.log.embedded.store import Store


def completed(store: Store, stops: Stops, topics: Sequence[str]) -> Stops:
    """Vectors that name these topics alone: what one of them does not name is filled in by its time.

    What a vector says of a topic from before that was created it says of another one, which had the name then.

    Args:
        store: The log's files and manifest.
        stops: Vectors with their times.
        topics: The topics; one that does not exist has no partition.
    """
    places: list[tuple[str, int]] = []
    columns: list[np.ndarray] = []
    for topic in topics:
        of_another = stops.times < _created(store, topic)
        mine = {
            partition: np.where(of_another, UNNAMED, stops.column(topic, partition))
            for name, partition in stops.places
            if name == topic
        }
        lacking = np.all([column == UNNAMED for column in mine.values()], axis=0) if mine else np.ones(len(stops), bool)
        for partition, ends in _ends_at(store, topic, stops.times[lacking]).items() if lacking.any() else ():
            mine.setdefault(partition, np.full(len(stops), UNNAMED, np.int64))
            mine[partition] = mine[partition].copy()
            mine[partition][lacking] = ends
        places += [(topic, partition) for partition in sorted(mine)]
        columns += [mine[partition] for partition in sorted(mine)]
    ends = np.column_stack(columns) if columns else np.empty((len(stops), 0), np.int64)
    return Stops(tuple(topics), tuple(places), ends, stops.times)


def _created(store: Store, name: str) -> int:
    """When a topic was created; 0 if it is not there."""
    with store.manifest.reading() as database:
        row = database.execute("SELECT created_ms FROM topics WHERE name = ?", (name,)).fetchone()
    return int(row["created_ms"]) if row is not None else 0


def _ends_at(store: Store, name: str, times: np.ndarray) -> dict[int, np.ndarray]:
    """By partition and time, the offset that the next record was to get."""
    with store.manifest.reading() as database:
        if not catalogue.exists(database, name):
            return {}
        topic = catalogue.topic_named(database, name)
        begin = catalogue.offsets(database, topic)[0]
    ends: dict[int, np.ndarray] = {}
    for partition, first in begin.items():
        appended, offsets = _appended(store, topic, partition, first)
        # A clock that was set back must not make an offset appear later than the one behind it.
        seen = np.searchsorted(np.maximum.accumulate(appended), times, side="right")
        ends[partition] = np.concatenate([[first], offsets])[seen]
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
