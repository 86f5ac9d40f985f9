"""What a drawing of a service shows: cards, topics and arrows, before anyone says where they stand."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import polars as pl

from everstate.topology.expressions.python_text import python_text
from everstate.topology.functions import Function
from everstate.topology.names import node_names
from everstate.topology.nodes import Keying

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from everstate.topology.nodes import Node
    from everstate.topology.unit import Unit

#: Fields of a node that say nothing of what it does, or that something else shows.
_ASIDE: Final = frozenset(
    {"inputs", "location", "kind", "key", "schema", "key_in_value", "word", "leaves", "renamed", "migrate", "mode"}
)


@dataclass(frozen=True)
class Phrase:
    """A call of the user's: what it does, and what it was given, one argument each."""

    verb: str
    arguments: tuple[str, ...] = ()


#: By output and number of a node, the calls that made it, as far as the user's text is known.
Wording: TypeAlias = "Mapping[str, Mapping[int, tuple[Phrase, ...]]]"


@dataclass(frozen=True)
class Step:
    """A line of a card.

    Attributes:
        phrase: What is done.
        store: The name of its store; empty if it keeps no state.
        moved: The key by which rows are brought together before it; empty if they stay where they are.
    """

    phrase: Phrase
    store: str = ""
    moved: str = ""


@dataclass(frozen=True)
class Card:
    """An output: the topic that it writes, what it is, and its steps in order."""

    topic: str
    about: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Arrow:
    """Records of a topic go to an output; the label says how they are spread."""

    source: str
    target: str
    label: str


@dataclass(frozen=True)
class Sheet:
    """All that is drawn of a service.

    Attributes:
        topics: Topics that are only read, each with what it is.
        cards: The outputs, those that feed others first.
        arrows: From topics and outputs to outputs.
    """

    topics: dict[str, str] = field(default_factory=dict)
    cards: dict[str, Card] = field(default_factory=dict)
    arrows: tuple[Arrow, ...] = ()

    @classmethod
    def of(
        cls, units: Sequence[Unit], wording: Wording | None = None, partitions: Mapping[str, int] | None = None
    ) -> Sheet:
        """The sheet of some outputs.

        Args:
            units: The outputs.
            wording: What the user wrote; what is missing is told from the steps themselves.
            partitions: Of topics that exist.
        """
        known = {unit.output.topic: unit.output.partitions for unit in units if unit.output.partitions}
        known |= partitions or {}
        cards = {unit.output.topic: _card(unit, (wording or {}).get(unit.output.topic, {})) for unit in units}
        topics: dict[str, str] = {}
        arrows: dict[tuple[str, str], Arrow] = {}
        writers = {side.topic: unit.output.topic for unit in units for side in unit.sides}
        for unit in units:
            for source in unit.sources:
                start = writers.get(source.topic, source.topic)
                arrow = Arrow(start, unit.output.topic, _spread(source, known.get(source.topic)))
                arrows.setdefault((start, unit.output.topic), arrow)
                if start not in cards:
                    topics.setdefault(start, str(source.kind))
        return cls(topics, cards, tuple(arrows.values()))


def _spread(source: Node, partitions: int | None) -> str:
    key = ", ".join(source.key.names)
    parts = "" if partitions is None else f"{partitions} partition{'' if partitions == 1 else 's'}"
    return " · ".join(part for part in (key and f"by {key}", parts) if part)


def _card(unit: Unit, wording: Mapping[int, tuple[Phrase, ...]]) -> Card:
    output = unit.output
    about = f"{output.kind}, by {', '.join(output.key.names)}" if output.key.names else str(output.kind)
    beside = [f"{side} to {topic}" for side, topic in output.routes]
    return Card(output.topic, ", ".join([about, *beside]), tuple(_steps(unit, wording)))


def _steps(unit: Unit, wording: Mapping[int, tuple[Phrase, ...]]) -> Iterator[Step]:
    names = node_names(unit)
    several = len(unit.sources) > 1
    for number, node in enumerate(unit.nodes):
        if node.endpoint:
            continue
        store = names[number] if node.traits.keeps_state else ""
        phrases = wording.get(number) or tuple(_told(node))
        if node.traits.holds_source:
            phrases = (Phrase("table", (f"latest {node.inputs[0].endpoint} per {', '.join(node.key.names)}",)),)
        elif several:
            branch = names[number].partition("/")[0]
            if branch != unit.output.topic:
                phrases = (Phrase(f"{branch}: {phrases[0].verb}", phrases[0].arguments), *phrases[1:])
        moved = _moved(unit, number, node)
        for place, phrase in enumerate(phrases):
            last = place == len(phrases) - 1
            yield Step(phrase, store if last else "", moved if not place else "")


def _moved(unit: Unit, number: int, node: Node) -> str:
    """The key by which rows of an earlier stage are brought together, where that is not the one that they came with."""
    exchanged = any(edge.exchange and node.rekeys_input(edge.port) for edge in unit.into(number))
    keying = node.regrouping
    if not exchanged or keying is None:
        return ""
    # A row that refers to another table goes where that table's row is.
    key = node.inputs[1].key if node.traits.refers else keying.key
    return ", ".join(key.names)


def _told(node: Node) -> Iterator[Phrase]:
    """A step whose text is not known, by what it holds."""
    grouped = node.regrouping
    if grouped is not None and node.traits.accumulates:
        yield Phrase("group_by", tuple(map(repr, grouped.key.names)))
    arguments = tuple(
        text for part in fields(node) if part.name not in _ASIDE for text in _shown(part.name, getattr(node, part.name))
    )
    yield Phrase(node.verb, arguments)


def _shown(name: str, value: Any) -> Iterator[str]:
    match value:
        case pl.Expr():
            yield python_text(value)
        case Function():
            yield value.name
        case Keying() if name != "keying":
            yield ", ".join(value.key.names)
        case str():
            yield f"{name}={value!r}"
        case tuple() if name == "results":
            yield from (str(result) for result, _ in value)
        case tuple():
            for part in value:
                yield from _shown(name, part)
        case _:
            return
