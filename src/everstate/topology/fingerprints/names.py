"""Names of nodes that stay when other nodes come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everstate.topology.describe import word
from everstate.topology.nodes import Node, Output, Source

if TYPE_CHECKING:
    from everstate.topology.unit import Unit


def node_names(unit: Unit) -> list[str]:
    """A name for each node of an output.

    A source is called by its topic, a step on the way from one source by that topic and what it does (`orders/filter`),
    a step that moves rows to another key or brings several sources together by the output's topic and what it does. A
    number (`orders/filter#2`) tells steps apart that would have one name; `#` is in no topic's name.
    """
    names: list[str] = []
    counts: dict[str, int] = {}
    anchors: dict[int, str] = {}
    for node in unit.nodes:
        anchor = anchors[id(node)] = _anchor(unit, node, anchors)
        plain = anchor if isinstance(node, Source) else f"{anchor}/{word(node).replace(' ', '-')}"
        counts[plain] = counts.get(plain, 0) + 1
        names.append(plain if counts[plain] == 1 else f"{plain}#{counts[plain]}")
    return names


def _anchor(unit: Unit, node: Node, anchors: dict[int, str]) -> str:
    if isinstance(node, Source):
        return node.topic
    one_way = len(node.inputs) == 1 and not node.rekeys(0) and not isinstance(node, Output)
    return anchors[id(node.inputs[0])] if one_way else unit.output.topic
