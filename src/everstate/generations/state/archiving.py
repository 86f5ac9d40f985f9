"""Archiving sources that are declared with `keep_history=True`, exactly once, while the service publishes.

Records are written to a file and synced, then the archive's document names the file, under the lease of publishing. A
crash in between leaves a file that nobody names, which the next process removes.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.errors import FencedError
from everstate.generations.state.past import beyond
from everstate.log.archive import files
from everstate.log.archive.archive import FILE_BYTES, FILE_RECORDS, Archive, worth_merging
from everstate.log.archive.reading import document, load, named
from everstate.log.crash import crash_point

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from everstate.log.archive.archive import ArchiveFile, PartitionArchive, Range
    from everstate.log.descriptions import Lease
    from everstate.log.protocol import Log

logger = logging.getLogger(__name__)

#: Between two looks for new records.
_EVERY_S: Final = 5.0
#: How large a record is taken for where the log does not know.
_ASSUMED_BYTES: Final = 1024
#: An orderly stop archives what is there, but nobody waits for longer than this.
_FAREWELL_S: Final = 30.0


class Archivist:
    """Archives topics of a service; the process that publishes is the only one that does.

    Args:
        log: The log.
        lease: The lease of publishing, which has the service's name.
        folder: Of the service's state.
        most: The most records of a file.
    """

    def __init__(self, log: Log, lease: Lease, folder: Path, *, most: int = FILE_RECORDS) -> None:
        self._log = log
        self._lease = lease
        self._folder = folder
        self._most = most

    def tidy(self, topic: str) -> None:
        """Remove files that the document does not name."""
        known = {(number, file.name) for number, file in named(self._log, self._lease.name, topic).files}
        files.remove_unnamed(self._folder, topic, known, token=self._lease.token)

    def archive(self, topic: str, enough: Callable[[], bool] = lambda: False) -> None:
        """Archive what is new, one file per partition at a time, until there is no more or `enough` says so.

        Raises:
            FencedError: If another process has taken the lease; the archive is its own now.
            LogError: If the topic is not the one that was archived.
        """
        if not self._log.has_topic(topic):
            return
        ends = self._log.end_offsets([topic])[topic]
        archive = self._current(topic, ends)
        while not enough():
            grown, written = self._grown(topic, archive, ends)
            if not written:
                break
            self._store(topic, grown, written)
            archive = grown
        self._merge(topic, archive)

    def _current(self, topic: str, ends: dict[int, int]) -> Archive:
        service, known = self._lease.name, self._log.topic_ids([topic])[topic]
        archive = named(self._log, service, topic)
        if archive.is_of(known) and not beyond(archive, ends):
            return replace(archive, topic=known)
        if not load(self._log, service, self._folder, topic).files:
            return Archive(topic=known)  # its files were deleted, so that it can begin again
        raise files.of_another(self._folder, topic)

    def _grown(
        self, topic: str, archive: Archive, ends: dict[int, int]
    ) -> tuple[Archive, list[tuple[int, ArchiveFile]]]:
        """The archive with one more file of every partition that has new records."""
        begins = self._log.begin_offsets([topic])[topic]
        limit = self._limit(topic)
        written: list[tuple[int, ArchiveFile]] = []
        for number, end in ends.items():
            part = archive.partition(number)
            start = max(begins[number] if part.end is None else part.end, begins[number])
            if start >= end:
                continue
            frame = self._log.read(topic, number, start, limit=limit, appended=True)
            until = int(frame["offset"][-1]) + 1 if len(frame) == limit else end
            file = self._written(topic, number, frame.filter(pl.col("offset") < until), (start, until))
            archive = archive.having(number, part.adding(file, self._lost(topic, number, part, begins[number])))
            written.append((number, file))
        return archive, written

    def _limit(self, topic: str) -> int:
        """So many records that a file and the memory for it stay bounded."""
        info = self._log.describe(topic)
        average = max(1, (info.size_bytes or _ASSUMED_BYTES * info.most_records) // max(1, info.most_records))
        return max(1, min(self._most, FILE_BYTES // average))

    def _lost(self, topic: str, number: int, part: PartitionArchive, begin: int) -> Range | None:
        """What was gone before it could be archived: to retention, or deletions to compaction."""
        stands = part.end
        if stands is None:
            return None
        if begin > stands:
            return (stands, begin)
        dropped = self._log.tombstones_dropped({topic: {number: stands}}, since_ms=0)
        return (stands, dropped[topic][number]) if dropped else None

    def _written(self, topic: str, number: int, frame: pl.DataFrame, covered: Range) -> ArchiveFile:
        folder = files.partition_folder(self._folder, topic, number)
        return files.write(folder, frame, *covered, token=self._lease.token)

    def _store(self, topic: str, archive: Archive, written: Sequence[tuple[int, ArchiveFile]]) -> None:
        crash_point("history.document.before")
        try:
            self._log.set_meta(self._lease.name, document(topic), archive.to_json(), leases=[self._lease])
        except FencedError:
            self._remove(topic, written)
            raise
        crash_point("history.document.after")

    def _merge(self, topic: str, archive: Archive) -> None:
        """Put small files together, one run per partition."""
        for number, part in archive.partitions.items():
            run = worth_merging(part.files, most=self._most)
            if not run:
                continue
            frames = [files.read(self._folder, file, topic=topic, partition=number) for file in run]
            merged = self._written(topic, number, pl.concat(frames), (run[0].start, run[-1].end))
            archive = archive.having(number, part.replacing(run, merged))
            self._store(topic, archive, [(number, merged)])
            crash_point("history.merge.before_unlink")
            self._remove(topic, [(number, file) for file in run])
            crash_point("history.merge.after_unlink")

    def _remove(self, topic: str, gone: Sequence[tuple[int, ArchiveFile]]) -> None:
        for number, file in gone:
            (files.partition_folder(self._folder, topic, number) / file.name).unlink(missing_ok=True)


class Archiving:
    """A thread beside the heartbeat that archives every few seconds, at its start and at an orderly stop.

    Args:
        archivist: Who does it.
        topics: What to archive.
        seconds: Between two looks for new records.
    """

    def __init__(self, archivist: Archivist, topics: Sequence[str], *, seconds: float = _EVERY_S) -> None:
        self._archivist = archivist
        self._topics = tuple(topics)
        self._seconds = seconds
        self._ended = threading.Event()
        self._fenced = False
        self._thread = threading.Thread(target=self._repeat, name="everstate-history", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Archive what is there, and end."""
        self._ended.set()
        self._thread.join()
        deadline = time.monotonic() + _FAREWELL_S
        self._each(lambda topic: self._archivist.archive(topic, lambda: time.monotonic() > deadline))

    def _repeat(self) -> None:
        self._each(self._archivist.tidy)
        while not self._fenced:
            self._each(lambda topic: self._archivist.archive(topic, self._ended.is_set))
            if self._ended.wait(self._seconds):
                return

    def _each(self, step: Callable[[str], None]) -> None:
        for topic in self._topics:
            if self._fenced:
                return
            try:
                step(topic)
            except FencedError:
                self._fenced = True  # the heartbeat says so
            except Exception as error:  # noqa: BLE001 - whatever it is, it is tried again before records expire
                logger.warning("Topic %s could not be archived and will be tried again: %s", topic, error)
