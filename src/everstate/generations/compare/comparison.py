"""A generation that is being built beside what is on its topics."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from everstate.generations.compare.difference import Difference, difference
from everstate.generations.compare.letters import letter_difference
from everstate.generations.compare.topic_view import TopicView
from everstate.generations.generation import own_dead_letters, own_side, own_topic
from everstate.generations.registry import now_ms
from everstate.generations.state.removed import copied_at, has_removals, held_back
from everstate.schema.topic_names import dead_letter_topic, removals_topic
from everstate.topology.nodes import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everstate.generations.generation import Generation
    from everstate.log.descriptions import Vector
    from everstate.log.protocol import Log
    from everstate.topology.unit import Unit


@dataclass(frozen=True)
class Comparison:
    """A generation beside what is on its topics.

    Attributes:
        table: Of the output; empty for a stream, whose records stand.
        letters: Of its dead letters.
        sides: Of its further topics that hold tables, by topic.
        ends: Where the topics ended.
        present: What was on them, by topic.
    """

    table: Difference
    letters: Difference
    sides: Mapping[str, Difference]
    ends: Vector
    present: Mapping[str, pl.DataFrame]


class Comparisons:
    """Compares generations with their topics, again and again; only what has come meanwhile is read.

    Args:
        log: The log.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._views: dict[str, TopicView] = {}
        self._made: dict[str, tuple[tuple[pl.DataFrame, ...], Difference]] = {}

    def compare(self, unit: Unit, generation: Generation) -> Comparison:
        """Compare a generation that is being built with its topics."""
        output, service = unit.output, unit.service
        letters = dead_letter_topic(output.topic)
        present = [topic for topic in unit.written if self._log.has_topic(topic)]
        ends = self._log.end_offsets(present)  # before the topics are read: what comes later shows as growth
        dead = self._latest(own_dead_letters(service, output.topic, generation))
        there = {letters: self._latest(letters)}
        if output.kind is Kind.TABLE:
            there[output.topic] = self._latest(output.topic)
        sides = {}
        for side in unit.sides:
            if own := own_side(service, output.topic, generation, side):
                there[side.topic] = self._latest(side.topic)
                sides[side.topic] = letter_difference(self._latest(own), there[side.topic], unit, self._log.latest)
        return Comparison(
            self._table(unit, generation, there),
            letter_difference(dead, there[letters], unit, self._log.latest),
            sides,
            ends,
            there,
        )

    def forget(self) -> None:
        """Let everything go that was read."""
        self._views.clear()
        self._made.clear()

    def _table(self, unit: Unit, generation: Generation, present: Mapping[str, pl.DataFrame]) -> Difference:
        built = own_topic(unit.service, unit.output.topic, generation)
        if unit.output.kind is not Kind.TABLE:
            return difference(_nothing(), _nothing())
        removals = has_removals(self._log, unit)
        table, there = self._latest(built, headers=removals), present[unit.output.topic]
        removed = self._latest(removals_topic(unit.output.topic), headers=True) if removals else _NONE
        frames, found = self._made.get(built, ((), None))
        if found is None or not all(map(operator.is_, frames, (table, there, removed))):
            ids = self._log.topic_ids([topic for topic in unit.topics if self._log.has_topic(topic)])
            copied_ms = copied_at(self._log, unit, generation) if removals else None
            kept = held_back(table, there, removed, ids, copied_ms)
            young = self._not_expired(unit)
            found = difference(kept.filter(young), there.filter(young), text=unit.output.format != "json")
            self._made[built] = ((table, there, removed), found)
        return found

    def _not_expired(self, unit: Unit) -> pl.Expr:
        """Which rows count: where a topic of windows deletes by age, old ones are neither brought back nor removed."""
        age = self._log.describe(unit.output.topic).config.retention_ms if unit.ages else None
        return pl.lit(value=True) if age is None else pl.col("ts") >= now_ms() - age

    def _latest(self, topic: str, *, headers: bool = False) -> pl.DataFrame:
        name = f"{topic} headers" if headers else topic
        return self._views.setdefault(name, TopicView(self._log, topic, headers=headers)).latest()


#: No removals.
_NONE: Final = pl.DataFrame(schema={"key": pl.Binary})


def _nothing() -> pl.DataFrame:
    return pl.DataFrame(schema={"key": pl.Binary, "value": pl.Binary, "ts": pl.Int64, "partition": pl.Int32})
