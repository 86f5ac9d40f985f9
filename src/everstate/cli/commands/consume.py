"""`everstate consume`: print the records of a topic."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

import polars as pl
import typer

from everstate.cli.log_option import LogOption, open_existing
from everstate.cli.record_lines import parse_json, to_line
from everstate.errors.texts import one_line, printable_json
from everstate.log.records import to_records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.log import Log, Record

_POLL_SECONDS: Final = 0.2
_RECORDS_AT_A_TIME: Final = 10_000


def consume(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Which topic.")],
    *,
    from_beginning: Annotated[
        bool,
        typer.Option("--from-beginning", help="Begin with the first record; the default unless --follow is given."),
    ] = False,
    latest: Annotated[
        bool, typer.Option("--latest", help="Only the last record of each key, without deleted ones: the table.")
    ] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more; alone, begin with what comes next.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
    maximum: Annotated[int | None, typer.Option("--max", metavar="N", min=1, help="Stop after N records.")] = None,
    log: LogOption = None,
) -> None:
    """Print the records of a topic."""
    source = open_existing(log)
    positions = source.end_offsets([topic])[topic]
    frames: list[Iterator[pl.DataFrame]] = []
    if latest:
        frames.append(iter([_table(source, topic, positions)]))
    elif from_beginning or not follow:
        frames.append(_history(source, topic, positions))
    if follow:
        frames.append(_tail(source, topic, positions))
    show = to_line if as_json else _readable
    left = maximum
    for frame in (frame for part in frames for frame in part):
        if left is not None:
            frame = frame.head(left)  # noqa: PLW2901 - the frame as far as it was asked for
            left -= len(frame)
        typer.echo("".join(show(record) + "\n" for record in to_records(topic, frame)), nl=False)
        if left == 0:
            return


def _table(source: Log, topic: str, ends: dict[int, int]) -> pl.DataFrame:
    """The table; what came after `ends` was read is left to the tail."""
    found = source.latest(topic)
    limits = pl.DataFrame(
        {"partition": list(ends), "limit": list(ends.values())}, schema_overrides={"partition": pl.Int32}
    )
    return found.join(limits, on="partition", how="left", maintain_order="left").filter(
        pl.col("offset") < pl.col("limit")
    )


def _history(source: Log, topic: str, ends: dict[int, int]) -> Iterator[pl.DataFrame]:
    begins = source.begin_offsets([topic])[topic]
    for partition, end in ends.items():
        for split in source.splits(topic, partition, begins[partition], end, max_records=_RECORDS_AT_A_TIME):
            yield source.read_split(split)


def _tail(source: Log, topic: str, positions: dict[int, int]) -> Iterator[pl.DataFrame]:
    while True:
        ends = source.end_offsets([topic])[topic]
        for partition, end in ends.items():
            if end > positions[partition]:
                for split in source.splits(topic, partition, positions[partition], end, max_records=_RECORDS_AT_A_TIME):
                    yield source.read_split(split)
        if ends == positions:
            time.sleep(_POLL_SECONDS)
        positions = ends


def _readable(record: Record) -> str:
    moment = _moment(record.ts)
    place = f"{record.partition}:{record.offset}"
    return f"{moment}  {place:<10}  {one_line(_text(record.key)):<24}  {_value(record.value)}"


def _moment(ts: int) -> str:
    try:
        return datetime.fromtimestamp(ts / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    except (ValueError, OverflowError, OSError):
        return str(ts)


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
