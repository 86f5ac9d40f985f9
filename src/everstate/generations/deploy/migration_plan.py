"""What a migration does to the state of the active generation, from the descriptions of both versions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from everstate.errors import MigrationError
from everstate.kernels.migration.convert import Migration
from everstate.plan.conversion import conversion
from everstate.plan.matching import Match
from everstate.schema.topic_names import dead_letter_topic
from everstate.topology.names import node_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from everstate.fingerprints.prints import UnitPrint
    from everstate.plan.conversion import Conversion
    from everstate.schema.schema import Schema
    from everstate.topology.unit import Unit


@dataclass(frozen=True)
class Version:
    """One version of an output: its code, and what is known of it."""

    unit: Unit
    print: UnitPrint


@dataclass(frozen=True)
class MigrationPlan:
    """The way from one version to another.

    Attributes:
        migration: What the shards do; the sample is still to come.
        conversion: The decision behind it.
    """

    migration: Migration
    conversion: Conversion


def passage(old: Version, new: Version, mark: str) -> MigrationPlan:
    """How the state of the old version becomes that of the new one.

    Args:
        old: The active version.
        new: The one that takes its place.
        mark: Names this migration; no other one of the output has had it.

    Raises:
        MigrationError: If there is no such way.
    """
    found = conversion(old.print, new.print)
    if found.obstacle:
        raise MigrationError(found.obstacle)
    numbers = {name: number for number, name in enumerate(node_names(new.unit))}
    partner = {now.name: was.name for was, now in Match.of(old.print, new.print).kept}
    before = dict(zip(node_names(old.unit), old.unit.nodes, strict=True))
    schemas: dict[int, Schema] = {}
    for name in found.converts:
        was = before[partner[name]]
        schemas[numbers[name]] = was.values
    derived = numbers[found.derives_from] if found.derives_from else None
    return MigrationPlan(Migration(mark=mark, converts=schemas, derives_from=derived), found)


def standing_letters(
    letters: pl.DataFrame, found: Conversion, end: Mapping[str, Mapping[int, int]], output: str
) -> pl.DataFrame:
    """The dead letters that the new version has as well, without reading history.

    Args:
        letters: key, value and ts of those on the topic.
        found: What is converted.
        end: Where in its sources the state stands: what comes later is processed again.
        output: The output's name, for the error.

    Raises:
        MigrationError: If there are letters of a step that has changed: it may process those records now.
    """
    kept = []
    for place, (key, value) in enumerate(letters.select("key", "value").iter_rows()):
        topic, partition, offset, *_timer = json.loads(key)
        if offset >= end.get(topic, {}).get(partition, 0):
            continue
        step = str(json.loads(value).get("step"))
        if step in found.kept_letters:
            kept.append(place)
        elif step not in found.derived_letters:
            raise MigrationError(
                f"{dead_letter_topic(output)} has a record that the step {step!r} refused (topic {topic}, "
                f"partition {partition}, offset {offset}), and that step has changed"
            )
    return letters[kept]
