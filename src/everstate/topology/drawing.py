"""A service as a graph: topics and steps, and its Mermaid text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from everstate.topology.names import node_names

if TYPE_CHECKING:
    from everstate.topology.unit import Unit


@dataclass(frozen=True)
class Box:
    """A topic or a step.

    Attributes:
        name: Unique in the drawing.
        label: What it shows.
        shape: "topic", "step" or "store" (a step that keeps state).
        group: The output and stage it belongs to; None for a topic.
    """

    name: str
    label: str
    shape: str
    group: tuple[str, int] | None = None


@dataclass
class Graph:
    """Boxes by name and arrows between them; an arrow that moves rows to another shard is marked."""

    boxes: dict[str, Box] = field(default_factory=dict)
    arrows: dict[tuple[str, str], bool] = field(default_factory=dict)


def graph_of(units: list[Unit]) -> Graph:
    """The drawing of a service: source and output topics stand for themselves, the steps between are boxes."""
    graph = Graph()
    for unit in units:
        names = node_names(unit)
        place = {n: _add(graph, unit, n, names[n]) for n in range(len(unit.nodes))}
        for edge in unit.edges:
            source, target = place[edge.source], place[edge.target]
            if source != target:
                key = (source, target)
                graph.arrows[key] = graph.arrows.get(key, False) or edge.exchange
    return graph


def _add(graph: Graph, unit: Unit, number: int, name: str) -> str:
    node = unit.nodes[number]
    if node.endpoint:
        box = Box(f"topic:{node.endpoint}", node.endpoint, "topic")
    else:
        shape = "store" if node.traits.keeps_state else "step"
        box = Box(f"{unit.output.topic}:{name}", node.verb, shape, (unit.output.topic, unit.stages[number]))
    graph.boxes.setdefault(box.name, box)
    return box.name


def mermaid(units: list[Unit]) -> str:
    """The drawing as Mermaid text: topics are round, steps that keep state are cylinders, thick arrows move rows.

    Example:
        >>> import everstate as es
        >>> app = es.Service("docs")
        >>> _ = app.stream("words", schema=str).group_by("value").agg(n=es.count()).to("counts")
        >>> print(mermaid(app.units()))
        flowchart LR
          n0([words])
          subgraph s0 ["counts: stage 1"]
            n1[(aggregate)]
          end
          n2([counts])
          n0 ==> n1
          n1 --> n2
    """
    graph = graph_of(units)
    ids = {name: f"n{place}" for place, name in enumerate(graph.boxes)}
    lines = ["flowchart LR"]
    groups: dict[tuple[str, int], list[Box]] = {}
    for box in graph.boxes.values():
        if box.group is not None:
            groups.setdefault(box.group, []).append(box)
    drawn: set[tuple[str, int]] = set()
    for box in graph.boxes.values():
        if box.group is None:
            lines.append(f"  {ids[box.name]}{_shape(box)}")
        elif box.group not in drawn:
            lines.append(f'  subgraph s{len(drawn)} ["{box.group[0]}: stage {box.group[1]}"]')
            lines += [f"    {ids[member.name]}{_shape(member)}" for member in groups[box.group]]
            lines.append("  end")
            drawn.add(box.group)
    lines += [f"  {ids[a]} {'==>' if moves else '-->'} {ids[b]}" for (a, b), moves in graph.arrows.items()]
    return "\n".join(lines)


def _shape(box: Box) -> str:
    opening, closing = {"topic": ("([", "])"), "store": ("[(", ")]"), "step": ("[", "]")}[box.shape]
    return f"{opening}{box.label}{closing}"
