"""What the owner of a topic has to do with the keys that the tombstone service has removed from it.

A removal says how far the owner had read its inputs. Whatever it makes of a key later, that was caused by an input
before that place does not bring the key back: nobody has said anything new of it. Once it is on the topic again, it is
a key like any other.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Self

import polars as pl

from everstate.errors import LogDeniedError
from everstate.generations.generation import Status
from everstate.generations.registry import Registry
from everstate.generations.usage import uses
from everstate.kernels.output import CAUSED, READ, cause_of
from everstate.log import vectors
from everstate.schema.topic_names import removals_topic
from everstate.topology.nodes import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everstate.generations.generation import Generation
    from everstate.log.descriptions import Vector
    from everstate.log.protocol import Log
    from everstate.topology.unit import Unit


def has_removals(log: Log, unit: Unit) -> bool:
    """Whether keys of an output's table may have been removed; whoever may not see that knows of none."""
    try:
        return unit.output.kind is Kind.TABLE and log.has_topic(removals_topic(unit.output.topic))
    except LogDeniedError:
        return False


def owner_read(log: Log, unit: Unit) -> tuple[tuple[str, bytes], ...]:
    """The header of removals that says how far the topic's owner has read; none if no service here writes it.

    It may be asked for at any time between the planning of a micro-batch and its commit: a key on which the owner has
    published something since is not removed.
    """
    for topic in unit.own_sources:
        for use in uses(log, topic):
            last = log.last_commit(use.service, topic) if use.writes and use.output == topic else None
            if last is not None:
                read = {name: ends for name, ends in vectors.records(last.end).items() if log.has_topic(name)}
                known: dict[str, object] = {"read": vectors.to_json(read), "topics": log.topic_ids(sorted(read))}
                active = Registry(log, use.service).read(topic).active
                if active is not None:
                    known["active"] = active.changed_ms
                return ((READ, json.dumps(known).encode()),)
    return ()


def copied_at(log: Log, unit: Unit, generation: Generation) -> int | None:
    """When a generation that was active before was replaced, in milliseconds: its table was kept as it was then."""
    if not generation.was_active:
        return None
    audit = Registry(log, unit.service).read(unit.output.topic).audit
    steps = [(entry.what, entry.at_ms) for entry in audit if entry.generation == generation.number]
    # One that was to be active again and was not is retired a second time; its table stays.
    replaced = [at for (before, _), (what, at) in pairwise(steps) if (before, what) == (Status.ACTIVE, Status.RETIRED)]
    return max(replaced, default=None)


def held_back(
    table: pl.DataFrame,
    topic: pl.DataFrame,
    removals: pl.DataFrame,
    ids: Mapping[str, str],
    copied_ms: int | None = None,
) -> pl.DataFrame:
    """A table without the keys that were removed and of which no input has come since.

    Args:
        table: What a generation makes of its inputs.
        topic: What is on the output's topic: what is there is not removed.
        removals: What the topic of removals says.
        ids: Of the topics that the owner reads now: one that was created again has other offsets.
        copied_ms: When the table was kept as it was on the topic; None if the generation was never there.
    """
    if removals.is_empty() or table.is_empty():
        return table
    removed = removals.select("key", pl.col("headers").alias("$removal"), pl.col("ts").alias("$ts"))
    doubtful = table.join(removed, on="key", how="inner").join(topic.select("key"), on="key", how="anti")
    if doubtful.is_empty():
        return table
    rows = doubtful.select("headers", "ts", "$removal", "$ts").iter_rows()
    old = [
        _is_old(_header(headers, CAUSED), ts, _Removed.of(_header(removal, READ), removed_ts, ids), copied_ms)
        for headers, ts, removal, removed_ts in rows
    ]
    return table.join(doubtful.filter(pl.Series(old, dtype=pl.Boolean)).select("key"), on="key", how="anti")


class _Removed(NamedTuple):
    """What is known of a removal.

    Attributes:
        ts: The time of the record that was removed.
        read: How far the owner had read, of topics that are still the same.
        active_ms: Since when the version had been active that wrote the topic; None if that was not noted.
    """

    ts: int
    read: Vector
    active_ms: int | None

    @classmethod
    def of(cls, header: bytes | None, ts: int, ids: Mapping[str, str]) -> Self:
        """What its header says."""
        if header is None:
            return cls(ts, {}, None)
        known = json.loads(header)
        read = vectors.from_json(known["read"])
        same = {topic: ends for topic, ends in read.items() if known["topics"].get(topic) == ids.get(topic, "")}
        return cls(ts, same, known.get("active"))


def _is_old(cause: bytes | None, ts: int, removed: _Removed, copied_ms: int | None) -> bool:
    """Whether the owner had read the input that has caused a row when its key was removed.

    A row that was on the topic when its version was replaced is old if its key was removed after that, and has come
    back if it was removed before. The time has to tell of other rows that were made before anything was removed, and
    of an input that nobody read then.
    """
    if cause is None and copied_ms is not None and removed.active_ms is not None:
        return removed.active_ms >= copied_ms
    topic, partition, offset = ("", 0, 0) if cause is None else cause_of(cause)
    if topic in removed.read:
        return offset < removed.read[topic].get(partition, 0)
    return ts <= removed.ts


def _header(headers: list[dict[str, object]] | None, name: str) -> bytes | None:
    found = [header["value"] for header in headers or () if header["name"] == name]
    return found[0] if found and isinstance(found[0], bytes) else None
