"""When the records of topics came, as far as Kafka says; see `everstate.log.arrival`.

The broker's time is in the records of a topic that asks for it; else there is the time that the producer gave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from everstate.log.arrival import Appends
from everstate.schema.topic_names import is_internal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everstate.log.kafka.reading import Reader


@dataclass(frozen=True)
class RecordArrivals:
    """What the records say of the past of their topics."""

    reader: Reader

    def created(self, topic: str) -> int:
        """When a topic was created is not known."""
        del topic
        return 0

    def appends(self, topic: str) -> Mapping[int, Appends]:
        """When the records of a topic came, by partition."""
        if is_internal(topic) or not self.reader.topics.exists(topic):
            return {}
        begins, ends = self.reader.topics.begins([topic])[topic], self.reader.topics.ends([topic])[topic]
        return {number: self._appends(topic, number, begins[number], end) for number, end in ends.items()}

    def _appends(self, topic: str, number: int, begin: int, end: int) -> Appends:
        found = [
            (frame["ts"].to_numpy(), frame["offset"].to_numpy() + 1)
            for frame in self.reader.scan(topic, {number: begin}, {number: end})
        ]
        times = np.concatenate([np.empty(0, np.int64), *(times for times, _ in found)])
        offsets = np.concatenate([np.empty(0, np.int64), *(offsets for _, offsets in found)])
        return Appends(begin, times, offsets)
