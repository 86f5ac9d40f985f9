"""`everstate topic`: create, list, describe, compact and delete topics."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

import typer

from everstate.cli.columns import aligned, at_most, size
from everstate.cli.help_pages import Commands
from everstate.cli.log_option import LogOption, open_existing, open_new
from everstate.errors import LogError
from everstate.generations.usage import uses
from everstate.log import TopicConfig
from everstate.log.descriptions import DAY_MS
from everstate.plan.words import counted
from everstate.schema import durations

if TYPE_CHECKING:
    from everstate.log import TopicInfo

topic_app = Commands()

TopicArgument = Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object per line.")]


@topic_app.command()
def create(
    topic: TopicArgument,
    *,
    partitions: Annotated[int, typer.Option(help="Number of partitions.")] = 1,
    compact: Annotated[bool, typer.Option("--compact", help="Keep the last record of each key (a table).")] = False,
    retention: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Delete records older than this, such as 7d; by default never."),
    ] = None,
    delete_retention: Annotated[
        str, typer.Option(metavar="DURATION", help="How long a compacted topic keeps tombstones.")
    ] = durations.readable(DAY_MS),
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="Do nothing if the topic exists.")] = False,
    log: LogOption = None,
) -> None:
    """Create a topic."""
    config = TopicConfig(
        partitions=partitions,
        compact=compact,
        retention_ms=None if retention is None else durations.milliseconds(retention),
        delete_retention_ms=durations.milliseconds(delete_retention),
    )
    target = open_new(log)
    target.create_topic(topic, config, exist_ok=if_not_exists)
    typer.echo(f"{topic}: {_configuration(target.describe(topic).config)}")


@topic_app.command(name="list")
def list_topics(*, as_json: JsonOption = False, log: LogOption = None) -> None:
    """List all topics."""
    source = open_existing(log)
    found = [source.describe(name) for name in source.topics()]
    if as_json:
        for info in found:
            typer.echo(_json(info))
    elif found:
        rows = [
            [
                info.name,
                info.config.partitions,
                at_most(info.records, info.most_records),
                _size(info),
                _kind(info.config),
            ]
            for info in found
        ]
        for line in aligned(["TOPIC", "PARTITIONS", "RECORDS", "SIZE", "KEEPS"], rows):
            typer.echo(line)
    else:
        typer.echo("No topics yet. Create one: everstate topic create TOPIC", err=True)


@topic_app.command()
def describe(topic: TopicArgument, *, as_json: JsonOption = False, log: LogOption = None) -> None:
    """Show a topic's settings, offsets and size."""
    info = open_existing(log).describe(topic)
    if as_json:
        typer.echo(_json(info))
        return
    typer.echo(f"{info.name}: {_configuration(info.config)}")
    typer.echo(f"{_count(info)}, {_size(info)}")
    for line in aligned(["PARTITION", "START", "END"], [[n, info.start[n], info.end[n]] for n in sorted(info.end)]):
        typer.echo(line)


@topic_app.command()
def compact(topic: TopicArgument, *, log: LogOption = None) -> None:
    """Drop superseded and expired records now; offsets stay as they are."""
    target = open_existing(log)
    before = target.describe(topic)
    target.compact(topic)
    after = target.describe(topic)
    typer.echo(f"{topic}: {_count(before)} ({_size(before)}) before, {after.most_records:,} ({_size(after)}) after")


@topic_app.command()
def delete(
    topic: TopicArgument,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Delete it even if a deployed service reads or writes it.")
    ] = False,
    log: LogOption = None,
) -> None:
    """Delete a topic with all its records."""
    target = open_existing(log)
    records = _count(target.describe(topic))
    found = uses(target, topic)
    if found and not force:
        raise LogError(
            f"topic {topic!r} is in use: {'; '.join(map(str, found))}",
            hint="Without it the service cannot go on. If that is what you want: "
            f"everstate topic delete {topic} --force",
        )
    if not yes and sys.stdin.isatty():
        typer.confirm(f"Delete topic {topic} with {records}?", abort=True)
    target.delete_topic(topic)
    typer.echo(f"{topic}: deleted, along with {records}")


def _count(info: TopicInfo) -> str:
    """How many records; where nobody counts them, how many offsets there are for them."""
    return ("" if info.records is not None else "at most ") + counted(info.most_records, "record")


def _size(info: TopicInfo) -> str:
    return "size unknown" if info.size_bytes is None else size(info.size_bytes)


def _kind(config: TopicConfig) -> str:
    words = ["the latest record per key"] if config.compact else []
    if config.retention_ms is not None:
        words.append(durations.readable(config.retention_ms))
    return ", ".join(words) or "everything"


def _configuration(config: TopicConfig) -> str:
    partitions = "1 partition" if config.partitions == 1 else f"{config.partitions} partitions"
    tombstones = f" (tombstones {durations.readable(config.delete_retention_ms)})" if config.compact else ""
    return f"{partitions}, keeps {_kind(config)}{tombstones}"


#: Settings that only a log of several machines has.
_OF_CLUSTERS: Final = ("append_time", "replication", "min_isr")


def _json(info: TopicInfo) -> str:
    document = {
        "topic": info.name,
        **{name: value for name, value in asdict(info.config).items() if value or name not in _OF_CLUSTERS},
        "start": info.start,
        "end": info.end,
        "records": info.records,
        "size_bytes": info.size_bytes,
    }
    return json.dumps(document)
