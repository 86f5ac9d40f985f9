"""Tables of generations that do not publish, as files.

A generation that is being built, or was replaced, has a table that nobody else reads. As a topic it would cost what
publishing costs, and a topic at each deployment; as Arrow files in the service's folder it costs a tenth. What counts
is decided in Kafka all the same: an entry of the journal of commits names the files, and is written in the transaction
of the batch, so a table is never ahead of its marker or behind it.

A table `name` has a folder, and in it one for each id that it has had: deleted and created again, it is another.
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import polars as pl

from everstate.errors import TopicExistsError, TopicNotFoundError, TopicRecreatedError
from everstate.log import records
from everstate.log.checks import check_config, check_range, check_split_size, unknown_partition
from everstate.log.descriptions import Split, Staged, TopicConfig, TopicInfo
from everstate.log.durable import make_folder, replacing
from everstate.log.kafka import staging
from everstate.log.last_records import last_of_each_key, table_of
from everstate.log.records import APPENDED, SCHEMA
from everstate.schema.topic_names import check_topic_name, is_internal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from everstate.log.descriptions import Commit
    from everstate.log.kafka.journal import Entry
    from everstate.log.kafka.registry import Registry

_TOPIC: Final = "topic.json"
_OWNER: Final = "owner.json"
#: More files than this are made fewer.
_FILES: Final = 20


@dataclass(frozen=True)
class Part:
    """The rows of one partition in a file: their offsets from `start` to before `end`, and which rows they are."""

    start: int
    end: int
    first: int
    rows: int


@dataclass(frozen=True)
class File:
    """A file of a table.

    Attributes:
        name: Inside the table's folder.
        maker: The output and the generation whose batch it came with; none for a copy.
        batch: That batch; the last one may come again.
        parts: What is in it, by partition.
        sparse: The rows carry their offsets.
    """

    name: str
    maker: str
    batch: int
    parts: dict[int, Part]
    sparse: bool = False

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(part.rows for part in self.parts.values())


@dataclass(frozen=True)
class Table:
    """A private table as it is now."""

    name: str
    id: str
    config: TopicConfig
    folder: Path
    files: tuple[File, ...] = field(default=())

    def ends(self) -> dict[int, int]:
        """The next offset of every partition."""
        ends = dict.fromkeys(range(self.config.partitions), 0)
        for file in self.files:
            ends |= {number: part.end for number, part in file.parts.items()}
        return ends

    def frames(self, partition: int, start: int = 0, *, files: Sequence[File] | None = None) -> Iterator[pl.DataFrame]:
        """The records of a partition from an offset on, file by file."""
        for file in self.files if files is None else files:
            part = file.parts.get(partition)
            if part is None or part.end <= start:
                continue
            frame = staging.read_file(self.folder / file.name).slice(part.first, part.rows)
            if not file.sparse:
                frame = frame.with_columns(pl.int_range(part.start, part.end, dtype=pl.Int64).alias("offset"))
            frame = frame.with_columns(pl.lit(partition, dtype=pl.Int32).alias("partition")).select(*SCHEMA)
            yield frame if part.start >= start else frame.filter(pl.col("offset") >= start)

    def entry(self, *, dropped: bool = False) -> bytes:
        """What the journal says of it."""
        return json.dumps({"id": self.id, "dropped": dropped, "files": [asdict(file) for file in self.files]}).encode()


def maker_of(commit: Commit) -> str:
    """Whose batch a commit is."""
    return f"{commit.output}/{commit.generation}"


def entry_key(name: str) -> str:
    """Of a table's entry in the journal of commits."""
    return f"private/{name}"


class PrivateTables:
    """The private tables below a folder.

    Args:
        root: The folder; None if there are none here.
        registry: Has the journals that say which files count.
    """

    def __init__(self, root: Path | None, registry: Registry) -> None:
        self._root = root
        self._registry = registry

    def find(self, name: str, entries: Mapping[str, Entry] | None = None) -> Table | None:
        """A table as it is now; None if there is none.

        Args:
            name: Its name.
            entries: The journal of its service, if that was just read.
        """
        folder = self._folder(name)
        if folder is None or not folder.is_dir():
            return None
        entry = self._entry(folder, name, entries)
        there = {path.parent.name: json.loads(path.read_text()) for path in folder.glob(f"*/{_TOPIC}")}
        if entry is not None and not entry["dropped"] and entry["id"] in there:
            return _table(name, folder / entry["id"], there[entry["id"]], entry["files"])
        for identity, document in there.items():
            if not document["copy"] and (entry is None or identity != entry["id"]):
                return _table(name, folder / identity, document, ())
        return None

    def names(self) -> list[str]:
        """The names of all tables, sorted."""
        folders = self._root / "tables" if self._root is not None else None
        found = sorted(path.name for path in folders.iterdir()) if folders is not None and folders.is_dir() else []
        # What begins otherwise was being deleted when its process ended.
        return [name for name in found if is_internal(name) and self.find(name) is not None]

    def _folder(self, name: str) -> Path | None:
        return None if self._root is None else self._root / "tables" / name

    def _entry(self, folder: Path, name: str, entries: Mapping[str, Entry] | None) -> dict[str, Any] | None:
        if entries is None:
            try:
                service = json.loads((folder / _OWNER).read_text())["service"]
            except FileNotFoundError:
                return None
            entries = self._registry.commits(service).read()
        entry = entries.get(entry_key(name))
        return None if entry is None else dict(json.loads(entry.value))

    def required(self, name: str) -> Table:
        """A table that has to be there.

        Raises:
            TopicNotFoundError: If it is not.
        """
        found = self.find(name)
        if found is None:
            check_topic_name(name)
            raise TopicNotFoundError(name)
        return found

    def create(self, name: str, config: TopicConfig, *, exist_ok: bool) -> None:
        """Make an empty table."""
        check_topic_name(name)
        check_config(name, config)
        if self.find(name) is not None:
            if exist_ok:
                return
            raise TopicExistsError(name)
        self._make(name, config, copy=False)

    def _make(self, name: str, config: TopicConfig, *, copy: bool) -> Table:
        root = staging.required(self._root)
        folder = root / "tables" / name / uuid4().hex
        make_folder(folder)
        document = {"config": asdict(config), "copy": copy}
        with replacing(folder / _TOPIC) as stream:
            stream.write(json.dumps(document).encode())
        return _table(name, folder, document, ())

    def delete(self, name: str) -> None:
        """Delete a table with its files."""
        self.required(name)
        self.remove(name)

    def remove(self, name: str) -> None:
        """Delete a table's files, if there are any."""
        folder = self._folder(name)
        if folder is not None and folder.is_dir():
            gone = folder.with_name(f".{name}.{uuid4().hex}")
            folder.rename(gone)
            with suppress(FileNotFoundError):  # another process that starts sweeps it at the same time
                shutil.rmtree(gone)

    def sweep(self) -> None:
        """Delete what is left of tables that were being deleted when their process ended."""
        if self._root is not None and (self._root / "tables").is_dir():
            for left in (self._root / "tables").glob(".*"):
                shutil.rmtree(left, ignore_errors=True)

    def own(self, name: str, service: str) -> None:
        """Note whose commits decide about a table; before the first of them does."""
        folder = staging.required(self._root) / "tables" / name
        if not (folder / _OWNER).exists():
            make_folder(folder)
            with replacing(folder / _OWNER) as stream:
                stream.write(json.dumps({"service": service}).encode())

    def describe(self, name: str) -> TopicInfo:
        """Configuration and size."""
        table = self.required(name)
        size = sum((table.folder / file.name).stat().st_size for file in table.files)
        begins = dict.fromkeys(range(table.config.partitions), 0)
        return TopicInfo(
            name, table.id, table.config, begins, table.ends(), sum(file.rows for file in table.files), size
        )

    def read(
        self, name: str, partition: int, start: int, end: int | None = None, *, limit: int | None = None
    ) -> pl.DataFrame:
        """The records of a range, with a column for the time they came, which is not kept."""
        table = self.required(name)
        ends = table.ends()
        if partition not in ends:
            raise unknown_partition(name, table.config, partition)
        check_range(name, partition, (0, ends[partition]), start, end)
        whole = pl.concat([records.empty(), *table.frames(partition, start)])
        if end is not None:
            whole = whole.filter(pl.col("offset") < end)
        timed = whole.with_columns(pl.lit(None, dtype=pl.Int64).alias(APPENDED))
        return timed if limit is None else timed.head(limit)

    def splits(self, name: str, partition: int, start: int, end: int, *, max_records: int) -> list[Split]:
        """Cut a range by offsets."""
        check_split_size(max_records)
        table = self.required(name)
        check_range(name, partition, (0, table.ends()[partition]), start, end)
        return [
            Split(name, partition, at, min(end, at + max_records), table.id) for at in range(start, end, max_records)
        ]

    def read_split(self, split: Split) -> pl.DataFrame:
        """The records of a split."""
        if self.required(split.topic).id != split.location:
            raise TopicRecreatedError(split.topic)
        return self.read(split.topic, split.partition, split.start, split.end).select(*SCHEMA)

    def latest(self, name: str) -> pl.DataFrame:
        """The last record of every key, without tombstones."""
        table = self.required(name)
        numbers = sorted({number for file in table.files for number in file.parts})
        return table_of([last_of_each_key(table.frames(number)) for number in numbers], table.config.partitions)

    def stage(self, name: str, groups: Sequence[tuple[int, pl.DataFrame]]) -> list[Staged]:
        """Write records to a file of the table, durably; it counts when a commit names it."""
        table = self.required(name)
        return staging.write(table.folder, name, table.id, groups, durable=True)

    def named(self, table: Table, file: str) -> bool:
        """Whether a commit has named a file."""
        return any(str(table.folder / known.name) == file for known in table.files)

    def extended(self, table: Table, staged: Sequence[Staged], maker: str, batch: int) -> Table:
        """A table with what a batch has staged for it; files of earlier batches become fewer if there are many."""
        ends, files = table.ends(), list(_merged(table) if len(table.files) > _FILES else table.files)
        by_file: dict[str, dict[int, Part]] = {}
        for part in staged:
            if part.rows:
                place, start = staging.Place.of(part), ends[part.partition]
                ends[part.partition] = start + part.rows
                parts = by_file.setdefault(place.file.rpartition("/")[2], {})
                parts[part.partition] = Part(start, start + part.rows, place.first, part.rows)
        files += [File(name, maker, batch, parts) for name, parts in by_file.items()]
        return replace(table, files=tuple(files))

    def kept(self, name: str, content: pl.DataFrame, partitions: int) -> Table:
        """A new table that holds these records, and counts from the commit on that writes its entry."""
        table = self._make(name, TopicConfig(partitions=partitions, compact=True), copy=True)
        shaped = records.content(content.drop("offset", strict=False), now_ms=0).with_columns(content["partition"])
        groups = shaped.partition_by("partition", include_key=False, as_dict=True, maintain_order=True)
        parts = [(int(number[0]), group) for number, group in sorted(groups.items())]
        return self.extended(table, staging.write(table.folder, name, table.id, parts, durable=True), "", -1)


def _table(name: str, folder: Path, document: Mapping[str, Any], files: Sequence[Mapping[str, Any]]) -> Table:
    found = tuple(
        File(
            file["name"],
            file["maker"],
            file["batch"],
            {int(number): Part(**part) for number, part in file["parts"].items()},
            file["sparse"],
        )
        for file in files
    )
    return Table(name, folder.name, TopicConfig(**document["config"]), folder, found)


def _merged(table: Table) -> list[File]:
    """Fewer files: those that are small beside all that came after them become one, so each row is written seldom.

    Tombstones stay: who follows the table by its offsets has to learn of them.
    """
    # The last batch may come again, and then it has to be known what was its own.
    last = table.files[-1].batch
    old = [file for file in table.files if file.batch != last]
    first = len(old) - 1
    while first > 0 and old[first - 1].rows <= sum(file.rows for file in old[first:]):
        first -= 1
    merging = old[min(first, max(0, len(old) - 2)) :]
    if len(merging) < 2:
        return list(table.files)
    numbers = sorted({number for file in merging for number in file.parts})
    frames, parts, row = [], {}, 0
    for number in numbers:
        mine = [file.parts[number] for file in merging if number in file.parts]
        frame = last_of_each_key(table.frames(number, files=merging)).drop("partition")
        parts[number] = Part(mine[0].start, mine[-1].end, row, frame.height)
        frames.append(frame)
        row += frame.height
    name = f"{uuid4().hex}{staging.SUFFIX}"
    with replacing(table.folder / name) as stream:
        pl.concat(frames).write_ipc(stream)
    kept = [file for file in table.files if file not in merging]
    place = table.files.index(merging[0])
    return [*kept[:place], File(name, merging[-1].maker, merging[-1].batch, parts, sparse=True), *kept[place:]]
