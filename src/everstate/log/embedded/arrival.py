"""When the records of topics came, from the manifest; see `everstate.log.arrival`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from everstate.log.arrival import Appends
from everstate.log.embedded import reading
from everstate.log.embedded.manifest import catalogue
from everstate.log.embedded.segments import APPENDED, Place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everstate.log.embedded.manifest.catalogue import Topic
    from everstate.log.embedded.store import Store


@dataclass(frozen=True)
class ManifestArrivals:
    """What the embedded log knows of the past of its topics."""

    store: Store

    def created(self, topic: str) -> int:
        """When a topic was created; 0 if it is not there."""
        with self.store.manifest.reading() as database:
            row = database.execute("SELECT created_ms FROM topics WHERE name = ?", (topic,)).fetchone()
        return int(row["created_ms"]) if row is not None else 0

    def appends(self, topic: str) -> Mapping[int, Appends]:
        """When the records of a topic came, by partition."""
        with self.store.manifest.reading() as database:
            if not catalogue.exists(database, topic):
                return {}
            found = catalogue.topic_named(database, topic)
            begin = catalogue.offsets(database, found)[0]
        return {partition: self._appends(found, partition, first) for partition, first in begin.items()}

    def _appends(self, topic: Topic, partition: int, first: int) -> Appends:
        with self.store.manifest.reading() as database:
            stored = catalogue.segments(database, topic, partition, start=first)
        if any(item.segment.sparse for item in stored):
            # Compaction has put together what came at different times; every record knows its own.
            rows = reading.read(self.store, Place(topic.name, partition), first, columns=["offset", APPENDED])
            return Appends(first, rows[APPENDED].to_numpy(), rows["offset"].to_numpy() + 1)
        segments = [item.segment for item in stored]
        times = np.array([segment.appended_ms for segment in segments], np.int64)
        return Appends(first, times, np.array([segment.end for segment in segments], np.int64))
