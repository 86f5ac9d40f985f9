"""`everstate produce`: write JSON lines to a topic."""

from __future__ import annotations

import os
import select
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Final

import polars as pl
import typer

from everstate.cli.log_option import LogOption, open_new
from everstate.cli.record_lines import Content, from_document, is_record, key_bytes, parse_json
from everstate.errors import ConfigurationError, DecodeError, TopicNotFoundError
from everstate.errors.calls import suggestion
from everstate.log import TopicConfig
from everstate.log.records import CONTENT
from everstate.plan.words import counted
from everstate.schema.topic_names import check_topic_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.log import Log

_CHUNK_BYTES: Final = 1 << 20
_BATCH_BYTES: Final = 8 << 20


def produce(  # noqa: PLR0913 - each option is a parameter
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Where to.")],
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="JSON lines; else standard input.")] = None,
    *,
    key_field: Annotated[
        list[str] | None,
        typer.Option(metavar="F", help="Field of the value that is the key; repeat it for a composite key."),
    ] = None,
    key: Annotated[str | None, typer.Option(metavar="K", help="One key for all records.")] = None,
    tombstone: Annotated[
        bool, typer.Option("--tombstone", help="Delete: write null values; with --key, just one, and nothing is read.")
    ] = False,
    create: Annotated[bool, typer.Option("--create", help="Create the topic if it is not there.")] = False,
    partitions: Annotated[int, typer.Option(help="With --create: number of partitions.")] = 1,
    compact: Annotated[
        bool, typer.Option("--compact", help="With --create: keep the latest record per key (a table).")
    ] = False,
    log: LogOption = None,
) -> None:
    """Write records to a topic, one for each line of JSON.

    A line is a value, or a whole record as `everstate consume --json` prints it.
    """
    if key is not None and key_field:
        raise ConfigurationError("--key and --key-field cannot be used together", hint="Use one of them.")
    if tombstone and key is not None and file is not None:
        raise ConfigurationError("--tombstone with --key writes one record and reads no FILE", hint="Leave FILE out.")
    check_topic_name(topic)
    with ExitStack() as stack:
        _opened(file, stack)  # before a log or a topic is made for nothing
    target = open_new(log)
    if not target.has_topic(topic):
        _create(target, topic, TopicConfig(partitions=partitions, compact=compact), told=create)
    lines = LineReader(key_field or [], key, tombstone=tombstone)
    if tombstone and key is not None:
        target.append(topic, _frame([{"key": key.encode()}]))
        written = 1
    else:
        written = _produce_lines(target, topic, file, lines)
    typer.echo(f"{topic}: {written} {'record' if written == 1 else 'records'} written", err=True)


def _create(target: Log, topic: str, config: TopicConfig, *, told: bool) -> None:
    """Create a topic, if that was asked for: a name that is mistyped must not become one.

    Raises:
        TopicNotFoundError: If it was not.
    """
    if not told:
        near = suggestion(topic, target.topics())
        raise TopicNotFoundError(
            topic,
            hint=f"{near}Create it: everstate topic create {topic}, with --compact for a table, which keeps the "
            "latest record per key. Or add --create to this command.",
        )
    target.create_topic(topic, config, exist_ok=True)
    kept = ", keeps the latest record per key" if config.compact else ""
    typer.echo(f"{topic}: created with {counted(config.partitions, 'partition')}{kept}", err=True)


def _produce_lines(target: Log, topic: str, file: Path | None, lines: LineReader) -> int:
    """Write batch by batch; a line that cannot be read ends it, after all lines before it were written."""
    written = number = 0
    with ExitStack() as stack:
        source = _opened(file, stack)
        for batch in _batches(source):
            rows: list[Content] = []
            fault: DecodeError | None = None
            for line in batch:
                number += 1
                try:
                    rows += lines.read(line)
                except DecodeError as error:
                    fault = error
                    break
            if rows:
                target.append(topic, _frame(rows))
                written += len(rows)
            if fault is not None:
                raise _located(fault, file, number, written)
    return written


def _located(fault: DecodeError, file: Path | None, number: int, written: int) -> DecodeError:
    name = str(file) if file else "standard input"
    return DecodeError(
        f"line {number} of {name}: {fault.message}",
        hint=f"{written} {'record' if written == 1 else 'records'} from the lines before it were written. "
        f"Correct the line and produce the rest: tail -n +{number}",
    )


def _opened(file: Path | None, stack: ExitStack) -> BinaryIO:
    if file is None:
        return sys.stdin.buffer
    try:
        return stack.enter_context(file.open("rb"))
    except OSError as error:
        raise ConfigurationError(
            f"{file} cannot be read: {error.strerror}", hint="Name a file of JSON lines."
        ) from error


def _frame(rows: list[Content]) -> pl.DataFrame:
    complete = [{name: row.get(name) for name in CONTENT} for row in rows]
    return pl.DataFrame(complete, schema=CONTENT)


class LineReader:
    """Turns lines into rows of a records frame."""

    def __init__(self, key_fields: list[str], key: str | None, *, tombstone: bool) -> None:
        self._key_fields = key_fields
        self._key = key
        self._tombstone = tombstone

    def read(self, line: bytes) -> list[Content]:
        """The record of a line; none for an empty one.

        Raises:
            DecodeError: If the line is not JSON, or lacks its key.
        """
        text = line.strip()
        if not text:
            return []
        try:
            document = parse_json(text.decode())
        except UnicodeDecodeError:
            raise DecodeError("it is not UTF-8") from None
        except ValueError as error:
            raise DecodeError(f"it is not JSON: {error}") from None
        if is_record(document, keyed_otherwise=bool(self._key_fields) or self._key is not None):
            row = from_document(document)
        else:
            row = {"key": self._key_of(document), "value": text}
        if self._tombstone:
            if row["key"] is None:
                raise DecodeError("a tombstone needs a key: use --key-field, or lines with a key")
            row["value"] = None
        return [row]

    def _key_of(self, document: Any) -> bytes | None:
        if not self._key_fields:
            return None if self._key is None else self._key.encode()
        parts = [self._part(document, field) for field in self._key_fields]
        return key_bytes(parts[0] if len(parts) == 1 else parts)

    def _part(self, document: Any, field: str) -> object:
        if not isinstance(document, dict) or field not in document:
            raise DecodeError(f"it has no field {field!r}")
        if document[field] is None:
            raise DecodeError(f"its field {field!r} is null, and so cannot be the key")
        return document[field]


def _batches(source: BinaryIO) -> Iterator[list[bytes]]:
    """Lines as they arrive: what is there is taken together, and nothing waits for more to come."""
    rest = b""
    for chunk in _chunks(source):
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield lines
    if rest:
        yield [rest]


def _chunks(source: BinaryIO) -> Iterator[bytes]:
    try:
        handle = source.fileno()
    except OSError:
        yield source.read()
        return
    gathered = b""
    while chunk := os.read(handle, _CHUNK_BYTES):
        gathered += chunk
        if len(gathered) >= _BATCH_BYTES or not select.select([handle], [], [], 0)[0]:
            yield gathered
            gathered = b""
    if gathered:
        yield gathered
