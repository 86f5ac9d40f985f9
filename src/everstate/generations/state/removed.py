"""What the owner of a topic has to do with the keys that the tombstone service has removed from it.

A removal says how far the owner had read its inputs. Whatever it makes of a key later, that was caused by an input
before that place does not bring the key back: nobody has said anything new of it. Once it is on the topic again, it is
a key like any other.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl

from everstate.errors import LogDeniedError
from everstate.generations.usage import uses
from everstate.kernels.output import CAUSED, READ, cause_of
from everstate.log import vectors
from everstate.schema.topic_names import removals_topic
from everstate.topology.nodes import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

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
                known = {"read": vectors.to_json(read), "topics": log.topic_ids(sorted(read))}
                return ((READ, json.dumps(known).encode()),)
    return ()


def held_back(table: pl.DataFrame, topic: pl.DataFrame, removals: pl.DataFrame, ids: Mapping[str, str]) -> pl.DataFrame:
    """A table without the keys that were removed and of which no input has come since.

    Args:
        table: What a generation makes of its inputs.
        topic: What is on the output's topic: what is there is not removed.
        removals: What the topic of removals says.
        ids: Of the topics that the owner reads now: one that was created again has other offsets.
    """
    if removals.is_empty() or table.is_empty():
        return table
    removed = removals.select("key", pl.col("headers").alias("$removal"), pl.col("ts").alias("$ts"))
    doubtful = table.join(removed, on="key", how="inner").join(topic.select("key"), on="key", how="anti")
    if doubtful.is_empty():
        return table
    rows = doubtful.select("headers", "ts", "$removal", "$ts").iter_rows()
    old = [
        _is_old(_header(headers, CAUSED), ts, _read(_header(removal, READ), ids), removed_ts)
        for headers, ts, removal, removed_ts in rows
    ]
    return table.join(doubtful.filter(pl.Series(old, dtype=pl.Boolean)).select("key"), on="key", how="anti")


def _read(header: bytes | None, ids: Mapping[str, str]) -> Vector:
    """How far the owner had read, of topics that are still the same."""
    if header is None:
        return {}
    known = json.loads(header)
    read = vectors.from_json(known["read"])
    return {topic: ends for topic, ends in read.items() if known["topics"].get(topic) == ids.get(topic, "")}


def _is_old(cause: bytes | None, ts: int, known: Vector, removed_ts: int) -> bool:
    """Whether the owner had read the input that has caused a row when its key was removed.

    The time has to tell of a row that was made before anything was removed, and of an input that nobody read then.
    """
    topic, partition, offset = ("", 0, 0) if cause is None else cause_of(cause)
    return offset < known[topic].get(partition, 0) if topic in known else ts <= removed_ts


def _header(headers: list[dict[str, object]] | None, name: str) -> bytes | None:
    found = [header["value"] for header in headers or () if header["name"] == name]
    return found[0] if found and isinstance(found[0], bytes) else None
