"""`everstate consume`: print the records of a topic."""

from __future__ import annotations

import json
import shutil
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import polars as pl
import typer

from everstate.cli.log_option import LogOption, open_existing
from everstate.cli.record_filter import Condition, of_key
from everstate.cli.record_lines import parse_json, to_line
from everstate.cli.record_table import RecordTable, moment
from everstate.errors import ConfigurationError
from everstate.errors.calls import suggestion
from everstate.errors.texts import one_line, printable, printable_json
from everstate.log.records import to_records
from everstate.reading import spans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from everstate.log import Log, Record
    from everstate.reading.spans import Span

_POLL_SECONDS: Final = 0.2
#: A table's columns are laid out for so many records: each partition may begin with others.
_TOGETHER: Final = 1000


def consume(  # noqa: PLR0913 - each option is a parameter
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Which topic.")],
    *,
    from_beginning: Annotated[
        bool,
        typer.Option("--from-beginning", help="Begin with the first record; the default unless --follow is given."),
    ] = False,
    latest: Annotated[
        bool, typer.Option("--latest", help="Only the latest record per key, without deleted ones: the table.")
    ] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more; alone, begin with what comes next.")] = False,
    key: Annotated[str | None, typer.Option("--key", metavar="K", help="Only the records of this key.")] = None,
    where: Annotated[
        str | None,
        typer.Option(
            "--where", metavar="CONDITION", help="Only records that meet this condition: \"amount > 5 AND n = 'x'\"."
        ),
    ] = None,
    fields: Annotated[
        str | None, typer.Option("--fields", metavar="A,B", help="Only these fields of the values.")
    ] = None,
    tail: Annotated[int | None, typer.Option("--tail", metavar="N", min=1, help="Only the last N records.")] = None,
    maximum: Annotated[int | None, typer.Option("--max", metavar="N", min=1, help="Stop after N records.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
    as_table: Annotated[bool, typer.Option("--table", help="As a table; the default on a terminal.")] = False,
    log: LogOption = None,
) -> None:
    """Print the records of a topic."""
    if as_json and as_table:
        raise ConfigurationError("--json and --table exclude each other", hint="Use one of them.")
    source = open_existing(log)
    part = spans.span(source, topic)
    condition = None if where is None else Condition(topic, where, lenient=follow)
    chosen = _Choice(source, part, latest=latest, key=key, condition=condition)
    frames: list[Iterable[pl.DataFrame]] = []
    if tail is not None:
        frames.append([chosen.tail(tail)])
    elif latest or from_beginning or not follow:
        frames.append(_gathered(chosen.past()))
    if follow:
        frames.append(chosen.following())
    view = _View(None if fields is None else [name.strip() for name in fields.split(",")])
    shown = view.lines if as_json else view.table if as_table or sys.stdout.isatty() else view.readable
    try:
        _print((frame for each in frames for frame in each), maximum, lambda frame: shown(to_records(topic, frame)))
    finally:
        _tell(condition, view)


def _gathered(frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Small frames together, as they come."""
    waiting: list[pl.DataFrame] = []
    for frame in frames:
        waiting.append(frame)
        if sum(map(len, waiting)) >= _TOGETHER:
            yield pl.concat(waiting)
            waiting = []
    if waiting:
        yield pl.concat(waiting)


def _print(frames: Iterable[pl.DataFrame], maximum: int | None, show: Callable[[pl.DataFrame], None]) -> None:
    left = maximum
    for each in frames:
        frame = each
        if left is not None:
            frame = frame.head(left)
            left -= len(frame)
        show(frame)
        if left == 0:
            return


def _tell(condition: Condition | None, view: _View) -> None:
    """What somebody might miss."""
    if condition is not None and condition.bad.count:
        told = f"{condition.bad.told()} could not be compared. {condition.bad.named()}"
        typer.echo(printable(told), err=True)
    for name in view.never_seen():
        typer.echo(printable(f"No record has the field {name!r}. {suggestion(name, sorted(view.seen))}"), err=True)


class _Choice:
    """The records of a topic that are asked for."""

    def __init__(self, source: Log, part: Span, *, latest: bool, key: str | None, condition: Condition | None) -> None:
        self._source, self._part = source, part
        self._latest, self._key, self._condition = latest, key, condition

    def past(self) -> Iterator[pl.DataFrame]:
        """Those that are there."""
        if self._condition is not None:
            self._condition.learn(self._all())
        for frame in self._all():
            yield self._fitting(frame)

    def tail(self, count: int) -> pl.DataFrame:
        """The last of them."""
        if self._latest or self._key is not None or self._condition is not None:
            return spans.last(self.past(), count)
        return spans.tail(self._source, self._part, count)

    def following(self) -> Iterator[pl.DataFrame]:
        """Those that come from now on."""
        positions = self._part.ends
        while True:
            ends = self._source.end_offsets([self._part.topic])[self._part.topic]
            if ends == positions:
                time.sleep(_POLL_SECONDS)
            for frame in spans.frames(self._source, replace(self._part, begins=positions, ends=ends)):
                yield self._fitting(frame)
            positions = ends

    def _all(self) -> Iterator[pl.DataFrame]:
        if not self._latest:
            yield from spans.frames(self._source, self._part)
            return
        found = self._source.latest(self._part.topic)
        for (partition,), frame in found.partition_by("partition", as_dict=True, maintain_order=True).items():
            # What came after the ends were read is left to those who follow.
            yield frame.filter(frame["offset"] < self._part.ends[int(str(partition))])

    def _fitting(self, frame: pl.DataFrame) -> pl.DataFrame:
        found = of_key(frame, self._key)
        return found if self._condition is None else self._condition.holds(found)


class _View:
    """Prints records, whole or only some fields of their values."""

    def __init__(self, fields: Sequence[str] | None) -> None:
        self._fields = fields
        self.seen: set[str] = set()
        self._table = RecordTable(shutil.get_terminal_size((80, 24)).columns, fields)

    def never_seen(self) -> list[str]:
        """Fields that were asked for, and that no record has that was shown."""
        return [name for name in self._fields or () if self.seen and name not in self.seen]

    def lines(self, records: Iterable[Record]) -> None:
        """One JSON object per line."""
        typer.echo("".join(to_line(self._narrowed(record)) + "\n" for record in records), nl=False)

    def readable(self, records: Iterable[Record]) -> None:
        """One line each, without columns for the fields."""
        typer.echo("".join(_readable(self._narrowed(record)) + "\n" for record in records), nl=False)

    def table(self, records: Iterable[Record]) -> None:
        """A line each, with columns for the fields."""
        from rich.console import Console  # noqa: PLC0415 - only what is asked for is loaded

        console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
        for line in self._table.lines([self._looked_at(record) for record in records]):
            console.print(line)

    def _looked_at(self, record: Record) -> Record:
        if self._fields is not None:
            self._narrowed(record)
        return record

    def _narrowed(self, record: Record) -> Record:
        if self._fields is None or record.value is None:
            return record
        try:
            value: Any = parse_json(record.value.decode())
        except ValueError:
            return record
        if not isinstance(value, dict):
            return record
        self.seen.update(value)
        some = {name: value[name] for name in self._fields if name in value}
        return replace(record, value=json.dumps(some, ensure_ascii=False).encode())


def _readable(record: Record) -> str:
    place = f"{record.partition}:{record.offset}"
    return f"{moment(record.ts)}  {place:<10}  {one_line(_text(record.key)):<24}  {_value(record.value)}"


def _text(data: bytes | None) -> str:
    if data is None:
        return "-"
    return data.decode(errors="backslashreplace")


def _value(data: bytes | None) -> str:
    if data is None:
        return typer.style("(deleted)", dim=True)
    text = _text(data)
    try:
        return printable_json(json.dumps(parse_json(text), ensure_ascii=False))
    except ValueError:
        return one_line(text)
