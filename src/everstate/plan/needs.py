"""How much of a source's past an output needs, and whether it is still there.

A recalculation over a source that has lost its beginning would tombstone keys because their history expired, not
because the new version does not produce them. So what is gone decides whether an output may be recalculated at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from everstate.plan.matching import source_topic
from everstate.plan.words import counted
from everstate.topology.traits import Need

if TYPE_CHECKING:
    from collections.abc import Iterable

    from everstate.fingerprints.prints import NodePrint, UnitPrint
    from everstate.plan.facts import SourceFacts


def needs(unit: UnitPrint) -> dict[str, Need]:
    """What an output needs of each of its source topics: as much as the most demanding step downstream."""
    nodes = {node.name: node for node in unit.nodes}
    found: dict[str, Need] = {}
    for name, node in nodes.items():
        if topic := source_topic(node):
            need = _need([nodes[other] for other in downstream(unit, name)], unit.kind)
            found[topic] = _most([need, found.get(topic, Need.NOTHING)])
    return found


def order_sensitive(unit: UnitPrint) -> tuple[str, ...]:
    """The steps whose results depend on the order in which rows of several partitions arrive."""
    return tuple(node.name for node in unit.nodes if node.traits.order_sensitive)


def gap(facts: SourceFacts, need: Need) -> str:
    """What of the needed past is gone, as the end of a sentence about the topic; empty if it is whole."""
    if need is Need.NOTHING:
        return ""
    if facts.missing and not (facts.stored and need is Need.LATEST):
        first = ", ".join(f"{offset:,} in partition {partition}" for partition, offset in sorted(facts.start.items()))
        begins = f"; it begins at offset {first}" if first else ""
        return f"has lost {counted(facts.missing, 'record')} to retention{begins}"
    if facts.compacted and need is Need.ALL and facts.superseded != 0:
        lost = counted(facts.superseded, "record") if facts.superseded else "earlier records of its keys"
        return f"has lost {lost} to compaction, and a step depends on every record"
    return ""


def _need(after: list[NodePrint], kind: str) -> Need:
    if kind == "stream" and not any(node.stateful for node in after):
        return Need.NOTHING  # there is no state to rebuild, and what was published stands
    return _most(node.traits.need for node in after)


def _most(needs: Iterable[Need]) -> Need:
    return max(needs, key=list(Need).index)


def downstream(unit: UnitPrint, name: str) -> list[str]:
    """The nodes that rows of a node reach, in topological order."""
    reached = {name}
    for node in unit.nodes:
        if not reached.isdisjoint(node.inputs):
            reached.add(node.name)
    return [node.name for node in unit.nodes if node.name in reached and node.name != name]
