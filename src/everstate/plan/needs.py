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

    from everstate.fingerprints.prints import UnitPrint
    from everstate.plan.facts import SourceFacts


def needs(unit: UnitPrint) -> dict[str, Need]:
    """What an output needs of each of its source topics: as much as the most demanding step downstream."""
    found: dict[str, Need] = {}
    for node in unit.nodes:
        if topic := source_topic(node):
            need = _need_of_rebuilding(unit, node.name) if unit.kind == "stream" else _need_of_results(unit, node.name)
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


def _need_of_results(unit: UnitPrint, source: str) -> Need:
    """What an output that is a table needs: what a row has met when it arrived is part of its results for ever."""
    after = downstream(unit, source)
    nodes = [node for node in unit.nodes if node.name in after]
    return _most(Need.ALL if node.traits.looked_up else node.traits.need for node in nodes)


def _need_of_rebuilding(unit: UnitPrint, source: str) -> Need:
    """What an output that is a stream needs: what it has published stands, so only its state has to be there again.

    A row that looks something up leaves nothing behind, but where its results go may.
    """
    reached = {source}
    needs = [Need.NOTHING]
    for node in unit.nodes:
        ports = [port for port, name in enumerate(node.inputs) if name in reached]
        if ports:
            reached.add(node.name)
        kept = [port for port in ports if not node.traits.looked_up or port in node.traits.looked_up]
        if node.stateful and (kept or node.traits.timed):
            needs.append(node.traits.need)
    return _most(needs)


def _most(needs: Iterable[Need]) -> Need:
    return max(needs, key=list(Need).index)


def downstream(unit: UnitPrint, name: str) -> list[str]:
    """The nodes that rows of a node reach, in topological order."""
    reached = {name}
    for node in unit.nodes:
        if not reached.isdisjoint(node.inputs):
            reached.add(node.name)
    return [node.name for node in unit.nodes if node.name in reached and node.name != name]
