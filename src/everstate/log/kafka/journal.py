"""A compacted topic of one partition as a dictionary that follows it.

Leases, documents and markers are such entries. What was read once is kept; a look costs one question to the broker,
and what came since is read.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import IsolationLevel, KafkaException
from confluent_kafka.admin import OffsetSpec

from everstate.log.descriptions import TopicConfig
from everstate.log.kafka.clients import ASK_S, TRANSACTION_MS, told
from everstate.log.kafka.failures import UNKNOWN_TOPIC, away, code_of, held_back, named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everstate.log.kafka.reading import Reader

#: Small segments, cleaned soon: a start reads all of it.
_SETTINGS: Final = {"segment.bytes": str(16 << 20), "min.cleanable.dirty.ratio": "0.1"}
_LOOK_S: Final = 0.02
#: The brokers end a transaction that takes too long, if somewhat late.
_DECIDED_S: Final = 1.5 * TRANSACTION_MS / 1000


class Entry(NamedTuple):
    """What a key has: the bytes, when the broker got them, and where they are."""

    value: bytes
    at_ms: int
    offset: int


class Journal:
    """One topic.

    Args:
        reader: Reads topics.
        topic: Its name; it need not exist.
        append_time: The times in it are the broker's.
    """

    def __init__(self, reader: Reader, topic: str, *, append_time: bool) -> None:
        self.topic = topic
        self._reader = reader
        self._append_time = append_time
        self._entries: dict[str, Entry] = {}
        self._position = 0
        self._created = False
        self._guard = threading.RLock()

    def create(self) -> None:
        """See that the topic exists."""
        with self._guard:
            if not self._created:
                config = TopicConfig(compact=True, append_time=self._append_time)
                self._reader.topics.create(self.topic, config, exist_ok=True, more=_SETTINGS)
                self._created = True

    def read(self, *, settled: bool = False) -> Mapping[str, Entry]:
        """All entries as they are now.

        Args:
            settled: Wait until every transaction that has written here by now is over, committed or not.

        Raises:
            LogUnavailableError: If one does not come to its end.
        """
        # Outside of the guard: signs of life must not wait for what somebody else waits for.
        end = self._end(settled=settled)
        with self._guard:
            if end is not None and end > self._position:
                first = self._position or (self._asked(OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED) or 0)
                for frame in self._reader.scan(self.topic, {0: first}, {0: end}):
                    for key, value, at_ms, offset in frame.select("key", "value", "ts", "offset").iter_rows():
                        self._take(key.decode(), value, at_ms, offset)
                self._position = end
            return dict(self._entries)

    def pending(self) -> bool:
        """Whether somebody's transaction that has written here is not over."""
        end = self._asked(OffsetSpec.latest(), IsolationLevel.READ_COMMITTED) or 0
        return end < (self._asked(OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED) or 0)

    def _take(self, key: str, value: bytes | None, at_ms: int, offset: int) -> None:
        self._entries.pop(key, None)  # the order of the dictionary is that of the offsets
        if value is not None:
            self._entries[key] = Entry(value, at_ms, offset)

    def _end(self, *, settled: bool) -> int | None:
        """Up to where all is decided; None if there is no topic."""
        own = -1 if self._append_time else self._reader.topics.unseen.get((self.topic, 0), -1)
        end = self._asked(OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)
        # Its own marker decides about what this process writes next: it must see that, whoever holds it back. Signs of
        # life decide nothing, and must not wait.
        if end is None or (not settled and end > own):
            return end
        written = self._asked(OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED) or 0
        if end >= written:
            return end
        with told("Waiting up to %.0f s for an open transaction that has written to %s", _DECIDED_S, self.topic):
            return self._decided(end, written)

    def _decided(self, end: int | None, written: int) -> int | None:
        deadline = time.monotonic() + _DECIDED_S
        while (end or 0) < written:
            if time.monotonic() > deadline:
                raise held_back(self.topic)
            time.sleep(_LOOK_S)
            end = self._asked(OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)
        return end

    def _asked(self, spec: OffsetSpec, level: IsolationLevel) -> int | None:
        deadline = time.monotonic() + ASK_S
        while True:
            try:
                return self._reader.topics.asked([(self.topic, 0)], spec, level)[self.topic, 0]
            except KafkaException as error:
                what = f"topic {self.topic!r} cannot be read"
                if code_of(error) not in UNKNOWN_TOPIC:
                    raise named(error, what, topic=self.topic) from error
                # Also said of one that nobody leads at the moment, and that must never be taken for one without leases.
                if not self._reader.topics.exists(self.topic):
                    return None
                if time.monotonic() > deadline:
                    raise away(error, what) from error
            time.sleep(_LOOK_S)
