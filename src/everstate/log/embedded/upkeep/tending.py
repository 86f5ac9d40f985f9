"""Upkeep by whoever appends: a topic that no service owns would otherwise keep a file for each append, for ever.

Merging is done on the way, every few appends, and writes a few megabytes at the most. Compacting a table reads all of
it, so that happens beside the appends, in a thread; only one at a time, and `close` waits for it.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import Counter
from typing import TYPE_CHECKING, Final

from everstate.errors import EverstateError
from everstate.log.embedded.manifest import catalogue
from everstate.log.embedded.upkeep import compaction

if TYPE_CHECKING:
    from collections.abc import Callable

    from everstate.log.embedded.store import Store

logger = logging.getLogger(__name__)

#: Appends of one process to a topic between two looks at it; the first is looked at, for processes that do only one.
_EVERY: Final = 8


class Tender:
    """Looks after the topics to which one process appends."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._appends: Counter[str] = Counter()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    def appended(self, name: str) -> None:
        """Look at a topic if its turn has come. The records are durable, so what goes wrong here is only told."""
        turn = self._appends[name] % _EVERY == 0
        self._appends[name] += 1
        if turn:
            self._guarded(self._tend, name)

    def finish(self) -> None:
        """Wait for a compaction that is on its way."""
        if self._thread is not None and self._pid == os.getpid():
            self._thread.join()
        self._thread = None

    def _tend(self, name: str) -> None:
        if self._thread is not None and self._pid == os.getpid() and self._thread.is_alive():
            return
        with self._store.manifest.reading() as database:
            topic = catalogue.topic_named(database, name)
            due = any(compaction.is_due(database, topic, partition) for partition in range(topic.config.partitions))
        if not due:
            compaction.maintain(self._store, name, compacting=False)
            return
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._guarded, args=(self._compact, name), name="everstate-compaction")
        self._thread.start()

    def _compact(self, name: str) -> None:
        compaction.maintain(self._store, name)

    @staticmethod
    def _guarded(step: Callable[[str], None], name: str) -> None:
        try:
            step(name)
        except (EverstateError, OSError) as error:
            logger.warning("Topic %s could not be tidied up and will be tried again: %s", name, error)
