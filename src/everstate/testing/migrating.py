"""A version that goes on with converted state, under the test driver."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from everstate.generations.deploy.migration_plan import passage, standing_letters
from everstate.kernels.migration.proof import recalculated
from everstate.schema.topic_names import dead_letter_topic
from everstate.testing.topics import Topics
from everstate.testing.unit_run import append_records
from everstate.topology.unit import silenced

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from everstate.generations.deploy.migration_plan import Version
    from everstate.testing.unit_run import Position, UnitRun
    from everstate.topology.unit import Unit


def migrated(active: UnitRun, old: Version, new: Version, topics: Topics, on_error: str) -> tuple[UnitRun, Topics]:
    """The new version on converted state of the active one, and its table and dead letters as of where that one stands.

    Raises:
        MigrationError: If it cannot be converted, or is not what a recalculation gives.
    """
    fresh, own = active.deployed(silenced(new.unit), new.print, on_error), Topics(topics.partitions)
    fresh.generation = active.generation + 1
    way = passage(old, new, mark=str(fresh.generation))
    migration = way.migration
    if way.conversion.checked:
        sample = recalculated(new.unit, lambda: _history(new.unit, active, topics))
        migration = replace(migration, sample=sample)
    letters = dead_letter_topic(new.unit.output.topic)
    stands: dict[str, dict[int, int]] = {}
    for (topic, partition), end in active.position.items():
        stands.setdefault(topic, {})[partition] = end
    kept = standing_letters(topics.latest(letters), way.conversion, stands, new.unit.output.topic)
    append_records(own, letters, kept.select("key", "value", "ts"), new.unit.service, active.generation)
    fresh.migrate(migration, own)
    return fresh, own


def _history(unit: Unit, active: UnitRun, topics: Topics) -> Iterator[list[tuple[str, int, pl.DataFrame]]]:
    """All that the active version has read, cut as it was."""
    position: Position = {}
    for end in [*(stop.limit(topics, unit.topics) for stop in active.order), active.position]:
        batch = []
        for (topic, partition), until in sorted(end.items()):
            start = position.get((topic, partition), 0)
            if topic in unit.topics and start < until:
                batch.append((topic, partition, topics.read(topic, partition, start, until)))
                position[topic, partition] = until
        if batch:
            yield batch
