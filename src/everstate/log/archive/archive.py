"""What an archive holds, as a value: the document that names its files.

A file counts only if the document names it, so the document is the archive. Files of a partition follow each other
without a gap, except where records were lost before they could be archived.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from everstate.errors import LogError, formats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

#: First offset, and one after the last.
Range: TypeAlias = tuple[int, int]
#: Topic to partition to ranges of offsets.
Gaps: TypeAlias = dict[str, dict[int, tuple[Range, ...]]]

#: The most records and bytes of one file: a task reads a file whole, to see that every byte is what was written.
FILE_RECORDS: Final = 262_144
FILE_BYTES: Final = 32 << 20
#: Small files are merged into files that are about so many times as large.
SIZE_STEP: Final = 16
_VERSION: Final = 1


@dataclass(frozen=True)
class ArchiveFile:
    """One Parquet file with records of one partition.

    Attributes:
        start: The first offset that it covers.
        end: One after the last; offsets without a record had been removed by compaction.
        records: How many there are.
        size: Its length in bytes.
        crc: Checksum of all its bytes.
        name: Its name in the partition's folder.
    """

    start: int
    end: int
    records: int
    size: int
    crc: int
    name: str


@dataclass(frozen=True)
class PartitionArchive:
    """The archive of one partition.

    Attributes:
        files: In order.
        lost: Ranges of which records, or deletions, were gone before they could be archived.
    """

    files: tuple[ArchiveFile, ...] = ()
    lost: tuple[Range, ...] = ()

    @property
    def begin(self) -> int | None:
        """The first offset; None if there is none."""
        return self.files[0].start if self.files else None

    @property
    def end(self) -> int | None:
        """The offset after the last one; None if there is none."""
        return self.files[-1].end if self.files else None

    @property
    def records(self) -> int:
        """How many records it has."""
        return sum(file.records for file in self.files)

    def covering(self, offset: int) -> ArchiveFile | None:
        """The file that covers an offset."""
        return next((file for file in self.files if file.start <= offset < file.end), None)

    def after(self, offset: int) -> int | None:
        """Where the first file begins that begins later than an offset."""
        return next((file.start for file in self.files if file.start > offset), None)

    def gaps(self, start: int, end: int) -> tuple[Range, ...]:
        """What of a range no file covers.

        Example:
            >>> PartitionArchive((ArchiveFile(0, 5, 5, 0, 0, ""), ArchiveFile(7, 9, 2, 0, 0, ""))).gaps(3, 12)
            ((5, 7), (9, 12))
        """
        found: list[Range] = []
        position = start
        for file in self.files:
            if file.start > position:
                found.append((position, min(file.start, end)))
            position = max(position, file.end)
        if position < end:
            found.append((position, end))
        return tuple((first, last) for first, last in found if first < last)

    def adding(self, file: ArchiveFile, lost: Range | None = None) -> PartitionArchive:
        """With another file at the end, and what was lost before it."""
        return PartitionArchive((*self.files, file), self.lost if lost is None else joined((*self.lost, lost)))

    def replacing(self, old: Sequence[ArchiveFile], new: ArchiveFile) -> PartitionArchive:
        """With one file in the place of several neighbours."""
        place = self.files.index(old[0])
        return replace(self, files=(*self.files[:place], new, *self.files[place + len(old) :]))


@dataclass(frozen=True)
class Archive:
    """The archive of a topic.

    Attributes:
        partitions: By number.
        topic: Id of the topic, which may be gone while another one has its name; empty where it was not noted.
    """

    partitions: dict[int, PartitionArchive] = field(default_factory=dict)
    topic: str = ""

    def is_of(self, topic: str) -> bool:
        """Whether it is of the topic with this id, as far as is known."""
        return not self.topic or self.topic == topic or not self.files

    def partition(self, number: int) -> PartitionArchive:
        """The archive of one partition; empty if there is none."""
        return self.partitions.get(number, PartitionArchive())

    @property
    def files(self) -> list[tuple[int, ArchiveFile]]:
        """All files with their partitions."""
        return [(number, file) for number, part in sorted(self.partitions.items()) for file in part.files]

    def having(self, number: int, part: PartitionArchive) -> Archive:
        """With one partition changed."""
        return replace(self, partitions={**self.partitions, number: part})

    def keeping(self, wanted: Callable[[int, ArchiveFile], bool]) -> Archive:
        """With those files only for which a function says so."""
        kept = {
            number: replace(part, files=tuple(file for file in part.files if wanted(number, file)))
            for number, part in self.partitions.items()
        }
        return replace(self, partitions=kept)

    def to_json(self) -> str:
        """As the text that `from_json` reads."""
        partitions = {
            str(number): {"files": [list(vars(file).values()) for file in part.files], "lost": part.lost}
            for number, part in sorted(self.partitions.items())
        }
        return json.dumps({"version": _VERSION, "topic": self.topic, "partitions": partitions}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Archive:
        """From the text of `to_json`.

        Raises:
            LogError: If it is not such a text, or a newer version of Everstate has written it.
        """
        try:
            known = json.loads(text)
            formats.require({formats.KEY: known["version"]}, _VERSION, LogError, "the document of an archive")
            return cls(
                {
                    int(number): PartitionArchive(
                        tuple(ArchiveFile(*file) for file in part["files"]),
                        tuple((first, last) for first, last in part["lost"]),
                    )
                    for number, part in known["partitions"].items()
                },
                str(known.get("topic", "")),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise LogError(
                f"the document of an archive is damaged: {error}", hint="Restore the log's folder from a backup."
            ) from error


def gaps_from(known: dict[str, Any]) -> Gaps:
    """Gaps that were JSON."""
    return {
        topic: {int(number): tuple((first, last) for first, last in ranges) for number, ranges in partitions.items()}
        for topic, partitions in known.items()
    }


def joined(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Ranges in order, those that meet or overlap as one.

    Example:
        >>> joined([(5, 7), (0, 2), (6, 9), (2, 3)])
        ((0, 3), (5, 9))
    """
    found: list[Range] = []
    for start, end in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        elif start < end:
            found.append((start, end))
    return tuple(found)


def worth_merging(files: Sequence[ArchiveFile], *, most: int = FILE_RECORDS) -> Sequence[ArchiveFile]:
    """Small neighbours that should be one file; empty if there are none.

    Each merge makes a file of the next size, so a record is rewritten only as often as there are sizes.
    """
    largest = most // 2
    limit = min(SIZE_STEP, largest)
    while True:
        for run in _small_runs(files, limit, most):
            for count, total in enumerate(accumulate(_weight(file, most) for file in run), start=1):
                if total >= limit:  # not reached by one alone
                    return run[:count]
        if limit == largest:
            return ()
        limit = min(limit * SIZE_STEP, largest)


def _small_runs(files: Sequence[ArchiveFile], limit: int, most: int) -> list[list[ArchiveFile]]:
    """Files below a size that follow each other without a gap."""
    runs: list[list[ArchiveFile]] = [[]]
    for file in files:
        small = _weight(file, most) < limit
        if not small or (runs[-1] and runs[-1][-1].end != file.start):
            runs.append([])
        if small:
            runs[-1].append(file)
    return runs


def _weight(file: ArchiveFile, most: int) -> int:
    """Of the most records that a file may have, how many this one is worth; few large records fill a file, too."""
    return max(1, file.records, file.size * most // FILE_BYTES)
