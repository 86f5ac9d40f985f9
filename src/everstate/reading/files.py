"""Typed rows as a file: Parquet, CSV, JSON lines or Arrow, written piece by piece and put in place at once."""

from __future__ import annotations

import contextlib
import os
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Final, Protocol

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from everstate.errors import ConfigurationError
from everstate.errors.calls import suggestion
from everstate.kernels.records.encode import encode_values
from everstate.kernels.records.keys import text_of
from everstate.log.durable import sync_folder
from everstate.schema.schema import SCALAR_COLUMN, Schema
from everstate.schema.types import Field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from everstate.schema.types import DataType

#: Types whose text CSV gets as records have it.
_TEXTS: Final = ("bytes", "decimal", "date", "datetime", "duration")


class Writer(Protocol):
    """Takes the rows of a file, some at a time."""

    def write(self, frame: pl.DataFrame) -> None:
        """Add rows."""

    def close(self) -> None:
        """Write what belongs to the end."""


class ArrowWriter:
    """Parquet and Arrow: columnar blocks, one for each piece.

    Args:
        file: The open file.
        types: The columns.
        parquet: Parquet, rather than Arrow's own format.
    """

    def __init__(self, file: IO[bytes], types: Mapping[str, DataType], *, parquet: bool) -> None:
        empty = pl.DataFrame(schema={name: type_.polars for name, type_ in types.items()})
        self._schema = _table(empty).schema
        sink: Any = file  # any file-like object will do
        parquet_writer = partial(pq.ParquetWriter, compression="zstd")
        self._writer: Any = (parquet_writer if parquet else pa.ipc.new_file)(sink, self._schema)

    def write(self, frame: pl.DataFrame) -> None:
        """Add rows."""
        self._writer.write_table(_table(frame).cast(self._schema))

    def close(self) -> None:
        """Write what belongs to the end."""
        self._writer.close()


class CsvWriter:
    """Text with a header; a value that is nested is written as its JSON.

    Args:
        file: The open file.
        types: The columns.
    """

    def __init__(self, file: IO[bytes], types: Mapping[str, DataType]) -> None:
        self._file, self._types = file, types
        pl.DataFrame(schema=dict.fromkeys(types, pl.String)).write_csv(file)

    def write(self, frame: pl.DataFrame) -> None:
        """Add rows."""
        columns = [_csv_column(frame[name], type_) for name, type_ in self._types.items()]
        pl.DataFrame(columns).write_csv(self._file, include_header=False)

    def close(self) -> None:
        """Nothing belongs to the end."""


class JsonWriter:
    """One object a line, each column written as a record's value has it.

    Args:
        file: The open file.
        types: The columns.
    """

    def __init__(self, file: IO[bytes], types: Mapping[str, DataType]) -> None:
        self._file = file
        self._schema = Schema(tuple(Field(name, type_, nullable=True) for name, type_ in types.items()))

    def write(self, frame: pl.DataFrame) -> None:
        """Add rows."""
        lines = encode_values(frame, self._schema, "json")
        self._file.write(b"".join(line + b"\n" for line in lines))

    def close(self) -> None:
        """Nothing belongs to the end."""


_WRITERS: Final[dict[str, Callable[[IO[bytes], Mapping[str, DataType]], Writer]]] = {
    ".parquet": lambda file, types: ArrowWriter(file, types, parquet=True),
    ".csv": CsvWriter,
    ".jsonl": JsonWriter,
    ".arrow": lambda file, types: ArrowWriter(file, types, parquet=False),
}


def require_writable(path: Path) -> None:
    """Refuse a file that cannot be written, before anything is read for it.

    Raises:
        ConfigurationError: If its extension is unknown, or it is a folder, or its folder is not there.
    """
    known = ", ".join(_WRITERS)
    if path.suffix.lower() not in _WRITERS:
        what = f"ends in {path.suffix}" if path.suffix else "has no extension"
        raise ConfigurationError(
            f"{path} {what}, so its format is not known",
            hint=f"{suggestion(path.suffix.lower(), tuple(_WRITERS))}It must end in one of: {known}.",
        )
    if path.is_dir():
        raise ConfigurationError(f"{path} is a folder", hint="Name a file.")
    if not path.parent.is_dir():
        raise ConfigurationError(f"there is no folder {path.parent}", hint=f"Make it first: mkdir -p {path.parent}")


@contextlib.contextmanager
def writing(path: Path, types: Mapping[str, DataType]) -> Iterator[Writer]:
    """A writer of a file that appears, whole, when all rows are in it; one that was there stays until then.

    Raises:
        ConfigurationError: If the file cannot be written.
    """
    require_writable(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        # Not a private file, as the log's are: whoever asks for it decides who may read it.
        with part.open("wb") as file:
            writer = _WRITERS[path.suffix.lower()](file, types)
            try:
                yield writer
            except BaseException:
                # What is given up is closed, too: later it would find its file closed, and say so on the terminal.
                with contextlib.suppress(Exception):
                    writer.close()
                raise
            writer.close()
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        sync_folder(path.parent)
    finally:
        part.unlink(missing_ok=True)


def _table(frame: pl.DataFrame) -> pa.Table:
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())


def _csv_column(values: pl.Series, type_: DataType) -> pl.Series:
    if type_.is_nested:
        schema = Schema((Field(SCALAR_COLUMN, type_, nullable=True),), scalar=True)
        text = encode_values(pl.DataFrame([values.alias(SCALAR_COLUMN)]), schema, "json").cast(pl.String)
        return text.scatter(values.is_null().arg_true(), None).alias(values.name)
    return text_of(values, type_).alias(values.name) if type_.name in _TEXTS else values
