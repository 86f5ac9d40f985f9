"""What steps are called, everywhere: in `describe()`, plans and drawings, in samples and in dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from everstate.topology.nodes import Node
    from everstate.topology.traits import Traits
    from everstate.topology.unit import Unit


def node_names(unit: Unit) -> list[str]:
    """A name for each node of an output, which stays when other nodes come and go; fingerprints have it.

    A source is called by its topic, a step on the way from one source by that topic and what it does (`orders/filter`),
    a step that moves rows to another key or brings several sources together by the output's topic and what it does. A
    number (`orders/filter#2`) tells steps apart that would have one name; `#` is in no topic's name.
    """
    names: list[str] = []
    counts: dict[str, int] = {}
    anchors: dict[int, str] = {}
    for node in unit.nodes:
        anchor = anchors[id(node)] = _anchor(unit, node, anchors)
        plain = f"{anchor}/{node.verb.replace(' ', '-')}" if node.inputs else anchor
        counts[plain] = counts.get(plain, 0) + 1
        names.append(plain if counts[plain] == 1 else f"{plain}#{counts[plain]}")
    return names


def step_text(name: str, location: object) -> str:
    """A step with the user's line, as dead letters name it."""
    return f"{name} at {location}" if location else name


def noun(operation: str, traits: Traits) -> str:
    """What a step is called in a sentence: its operation, unless that is no noun."""
    return f"{operation} function" if traits.own_state else operation


def _anchor(unit: Unit, node: Node, anchors: dict[int, str]) -> str:
    if node.endpoint:
        return node.endpoint
    one_way = len(node.inputs) == 1 and not node.rekeys_input(0)
    return anchors[id(node.inputs[0])] if one_way else unit.output.topic
