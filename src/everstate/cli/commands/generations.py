"""`everstate generations`: the versions of a service's outputs."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from everstate.cli.columns import aligned, at_most, size
from everstate.cli.option_groups import grouped
from everstate.cli.service_options import AsJson, ServiceFile, ServiceOptions, existing_log

if TYPE_CHECKING:
    from everstate.engine.commands.inventory import Inventory

_SHORT: Final = 12
_COUNTS: Final = ("new", "changed", "stale", "unchanged")
_HEADER: Final = ("OUTPUT", "GENERATION", "STATUS", "SINCE", "FINGERPRINT", "SHARDS", "STATE", "TOPICS", "RECORDS")


@grouped
def generations(
    file: ServiceFile = None,
    *,
    audit: Annotated[
        bool, typer.Option("--audit", help="What has happened: who, when, why, and what it wrote.")
    ] = False,
    as_json: AsJson = False,
    chosen: ServiceOptions,
) -> None:
    """List the generations of a service's outputs, and the space they take."""
    described = chosen.load(file)
    from everstate.engine.commands.inventory import inventory  # noqa: PLC0415 - a mistake in the file shows first

    found = inventory(described, log=existing_log(chosen.log, described), state_dir=chosen.state_dir)
    if as_json:
        typer.echo(_document(found, audit=audit))
    elif not found.entries and not found.audit:
        typer.echo(f"Service {described.name} has not been deployed on this log.")
    else:
        for line in _audit(found) if audit else _table(found):
            typer.echo(line)


def _document(found: Inventory, *, audit: bool) -> str:
    events = {output: [asdict(event) for event in events] for output, events in found.audit.items()}
    entries = [asdict(entry) for entry in found.entries]
    return json.dumps({"generations": entries, **({"audit": events} if audit else {})}, indent=2)


def _table(found: Inventory) -> list[str]:
    rows = [
        [
            entry.output,
            entry.number,
            entry.status,
            _time(entry.since_ms),
            entry.fingerprint[:_SHORT],
            entry.shards,
            size(entry.state_bytes),
            "unknown" if entry.topic_bytes is None else size(entry.topic_bytes),
            at_most(entry.records, entry.most_records),
        ]
        for entry in found.entries
    ]
    return list(aligned(_HEADER, rows))


def _audit(found: Inventory) -> list[str]:
    events = sorted(
        ((output, event) for output, events in found.audit.items() for event in events), key=lambda pair: pair[1].at_ms
    )
    lines = []
    for output, event in events:
        lines.append(f"{_time(event.at_ms)}  {output}, generation {event.generation}: {event.what}, by {event.who}")
        if event.why:
            lines.append(f"  {event.why}")
        if event.counts:
            lines.append(f"  {_counts(event.counts)}")
    return lines


def _counts(counts: dict[str, int]) -> str:
    names = [*(name for name in _COUNTS if name in counts), *sorted(counts.keys() - set(_COUNTS))]
    return ", ".join(f"{counts[name]:,} {name.replace('_', ' ')}" for name in names)


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")
