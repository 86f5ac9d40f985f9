"""Reading a topic's whole past: from the archive what the topic no longer has, from the topic the rest."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.errors import OffsetOutOfRangeError
from everstate.log import records
from everstate.log.archive import files
from everstate.log.archive.archive import Archive, ArchiveFile, gaps_from
from everstate.log.descriptions import Split

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.log.archive.archive import Gaps, PartitionArchive, Range
    from everstate.log.protocol import Log

_DOCUMENT: Final = "history/"
_LOCATION: Final = "history:"
#: Before the location of a split that must not have lost a record; Spark passes on the fields that a split has.
_EVERY: Final = "every:"
#: A topic's beginning may move on between two looks, but not all the time.
_ATTEMPTS: Final = 5


@dataclass(frozen=True, kw_only=True)
class Past:
    """Where the records are that topics no longer have.

    Attributes:
        service: Whose archives.
        folder: Of the service's state.
        whole: Topics of which the archive is read for all that it has: it knows what compaction has removed.
        missing: What is known to be gone, and done without.
        every: Topics of which compaction must not take a record before it is read.
    """

    service: str
    folder: str
    whole: tuple[str, ...] = ()
    missing: Gaps = field(default_factory=dict)
    every: tuple[str, ...] = ()

    def to_document(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    @classmethod
    def from_document(cls, known: dict[str, Any]) -> Past:
        """From the values of `to_document`, also after they were JSON."""
        lists = {name: tuple(known[name]) for name in ("whole", "every")}
        return cls(**{**known, **lists, "missing": gaps_from(known["missing"])})


def document(topic: str) -> str:
    """The name of the document that names the files of a topic's archive."""
    return _DOCUMENT + topic


def named(log: Log, service: str, topic: str) -> Archive:
    """The archive as its document says."""
    text = log.get_meta(service, document(topic))
    return Archive() if text is None else Archive.from_json(text)


def load(log: Log, service: str, folder: Path, topic: str, *, partition: int | None = None) -> Archive:
    """The archive of a topic without the files that are gone; for one partition, only that one is looked at."""

    def there(number: int, file: ArchiveFile) -> bool:
        unseen = partition not in {None, number}
        return unseen or (files.partition_folder(folder, topic, number) / file.name).is_file()

    archive = named(log, service, topic)
    while True:
        kept = archive.keeping(there)
        # A file that is not there was lost, or has been merged since the document was read.
        again = archive if len(kept.files) == len(archive.files) else named(log, service, topic)
        if again == archive:
            return kept
        archive = again


def splits(log: Log, past: Past, topic: str, partition: int, start: int, end: int, *, max_records: int) -> list[Split]:
    """Like `Log.splits`, but also for offsets that only the archive has.

    Raises:
        OffsetOutOfRangeError: If neither has them, and that is not known.
    """
    if topic not in past.whole:
        try:
            return _of_log(log, past, Split(topic, partition, start, end, ""), max_records)
        except OffsetOutOfRangeError:
            if log.begin_offsets([topic])[topic][partition] <= start:
                raise
    for attempt in range(_ATTEMPTS):
        try:
            return list(_pieces(log, past, Split(topic, partition, start, end, ""), max_records))
        except OffsetOutOfRangeError:
            if attempt == _ATTEMPTS - 1:
                raise
    return []


def _pieces(log: Log, past: Past, wanted: Split, max_records: int) -> Iterator[Split]:
    topic, partition = wanted.topic, wanted.partition
    begin = log.begin_offsets([topic])[topic][partition]
    part = load(log, past.service, Path(past.folder), topic, partition=partition).partition(partition)
    position = wanted.start
    while position < wanted.end:
        file = part.covering(position) if position < begin or topic in past.whole else None
        if file is not None:
            until = min(wanted.end, file.end, wanted.end if topic in past.whole else begin)
            yield from _cut(past, file, topic, partition, (position, until), max_records)
        elif position >= begin:
            until = _next(part, position, wanted.end) if topic in past.whole else wanted.end
            yield from _of_log(log, past, replace(wanted, start=position, end=until), max_records)
        else:
            until = min(begin, _next(part, position, wanted.end))
            _require_known(past, topic, partition, (position, until))
        position = until


def _of_log(log: Log, past: Past, wanted: Split, max_records: int) -> list[Split]:
    topic, partition, start, end = wanted.topic, wanted.partition, wanted.start, wanted.end
    found = log.splits(topic, partition, start, end, max_records=max_records)
    if topic not in past.every:
        return found
    if sum(split.end - split.start for split in found) < end - start:
        raise _compacted(wanted)
    return [replace(split, location=_EVERY + split.location) for split in found]


def _compacted(split: Split) -> OffsetOutOfRangeError:
    return OffsetOutOfRangeError(
        f"records from offset {split.start} to {split.end - 1} of topic {split.topic!r}, partition {split.partition} "
        "are gone: compaction has removed them before they were read, and a step depends on every record",
        hint=_left(split.topic),
    )


def _left(topic: str) -> str:
    return (
        f"Continue with what is left: everstate run SERVICE.py --recalculate OUTPUT --accept-truncated {topic}. The "
        "output then holds what those records give, so look before: everstate plan with the same options, and "
        "--preview. A source declared with keep_history=True is archived before its records go."
    )


def _next(part: PartitionArchive, position: int, end: int) -> int:
    following = part.after(position)
    return end if following is None else min(end, following)


def _cut(past: Past, file: ArchiveFile, topic: str, partition: int, piece: Range, max_records: int) -> Iterator[Split]:
    location = _LOCATION + json.dumps([past.service, past.folder, list(vars(file).values())])
    for first in range(*piece, max_records):
        yield Split(topic, partition, first, min(piece[1], first + max_records), location)


def _require_known(past: Past, topic: str, partition: int, gap: Range) -> None:
    known = past.missing.get(topic, {}).get(partition, ())
    if not any(first <= gap[0] and gap[1] <= last for first, last in known):
        raise OffsetOutOfRangeError(
            f"offsets {gap[0]} to {gap[1] - 1} of topic {topic!r}, partition {partition} are gone: retention has "
            "deleted them, and the archive does not have them",
            hint=_left(topic),
        )


def read_split(log: Log, split: Split) -> pl.DataFrame:
    """The records of a split, wherever they are.

    Raises:
        OffsetOutOfRangeError: If compaction has taken a record that must not be missed.
        SegmentDamagedError: If a file is not what was written, or gone.
    """
    if split.location.startswith(_EVERY):
        found_all = log.read_split(replace(split, location=split.location.removeprefix(_EVERY)))
        if len(found_all) < split.end - split.start:
            raise _compacted(split)
        return found_all
    if not split.location.startswith(_LOCATION):
        return log.read_split(split)
    service, folder, fields = json.loads(split.location.removeprefix(_LOCATION))
    home, file = Path(folder), ArchiveFile(*fields)
    try:
        found = [files.read(home, file, topic=split.topic, partition=split.partition)]
    except FileNotFoundError:
        found = _found_again(log, service, home, split)
    frames = [frame.filter(pl.col("offset").is_between(split.start, split.end - 1)) for frame in found]
    return pl.concat(frames).select(*records.SCHEMA) if frames else records.empty()


def _found_again(log: Log, service: str, home: Path, split: Split) -> list[pl.DataFrame]:
    """The records of a split whose file was merged with others."""
    for attempt in range(_ATTEMPTS):
        part = named(log, service, split.topic).partition(split.partition)
        wanted = [file for file in part.files if file.start < split.end and file.end > split.start]
        try:
            return [files.read(home, file, topic=split.topic, partition=split.partition) for file in wanted]
        except FileNotFoundError as error:
            if attempt == _ATTEMPTS - 1:
                path = Path(error.filename)
                missing = next(file for file in wanted if file.name == path.name)
                raise files.damaged(path, missing, split.topic, split.partition, "the file is missing") from error
    return []
