"""How much of a source's past an output needs, and whether it is still there.

A recalculation over a source that has lost its beginning would tombstone keys because their history expired, not
because the new version does not produce them. So what is gone decides whether an output may be recalculated at all.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from everstate.plan.matching import source_topic
from everstate.plan.words import counted

if TYPE_CHECKING:
    from everstate.plan.facts import SourceFacts
    from everstate.topology.prints import NodePrint, UnitPrint


class Need(StrEnum):
    """What an output needs of a source's past, from the least to the most."""

    NOTHING = "nothing"
    LATEST = "the latest record of each key"
    ALL = "every record"


#: What keeps a table a table, and needs nothing of a row but its latest value.
_ON_TABLES: Final = frozenset(
    {
        "table",
        "global table",
        "filter",
        "select",
        "with_columns",
        "rename",
        "drop",
        "map",
        "update",
        "peek",
        "rekey",
        "aggregate",
        "join",
        "foreign-key join",
        "output",
    }
)
_TABLES: Final = frozenset({"table", "global table"})


def needs(unit: UnitPrint) -> dict[str, Need]:
    """What an output needs of each of its source topics.

    A step that is not known to go by latest values alone needs every record.
    """
    nodes = {node.name: node for node in unit.nodes}
    tables = tables_of(unit)
    found: dict[str, Need] = {}
    for name, node in nodes.items():
        if topic := source_topic(node):
            after = [nodes[other] for other in downstream(unit, name)]
            need = _need(name, after, tables, unit.kind)
            found[topic] = max(need, found.get(topic, Need.NOTHING), key=list(Need).index)
    return found


def order_sensitive(unit: UnitPrint) -> tuple[str, ...]:
    """The steps whose results depend on the order in which rows of several partitions arrive."""
    tables = tables_of(unit)
    return tuple(node.name for node in unit.nodes if _by_arrival(node, tables))


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


def _need(name: str, after: list[NodePrint], tables: set[str], kind: str) -> Need:
    if kind == "stream" and not any(node.stateful for node in after):
        return Need.NOTHING  # there is no state to rebuild, and what was published stands
    as_table = all(node.operation in _TABLES for node in after if name in node.inputs)
    if as_table and all(node.operation in _ON_TABLES and node.name in tables for node in after):
        return Need.LATEST
    return Need.ALL


def _by_arrival(node: NodePrint, tables: set[str]) -> bool:
    if tables.issuperset(node.inputs):
        return False  # changes of a table undo what they replace
    by_function = any(part.kind == "function" for part in node.parts.values())
    return (
        node.operation == "stateful"
        or (node.operation == "aggregate" and by_function)
        or (node.operation == "join" and not tables.isdisjoint(node.inputs))
    )


def tables_of(unit: UnitPrint) -> set[str]:
    """The nodes that give a table: a table source, an aggregate, or a step whose inputs are all tables."""
    tables: set[str] = set()
    for node in unit.nodes:
        if node.operation in {"table", "global table", "aggregate"} or (node.inputs and tables.issuperset(node.inputs)):
            tables.add(node.name)
    return tables


def downstream(unit: UnitPrint, name: str) -> list[str]:
    """The nodes that rows of a node reach, in topological order."""
    reached = {name}
    for node in unit.nodes:
        if not reached.isdisjoint(node.inputs):
            reached.add(node.name)
    return [node.name for node in unit.nodes if node.name in reached and node.name != name]
