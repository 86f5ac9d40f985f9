"""A service in words and as data: units, stages, nodes, topics, stores, neighbours, order-sensitive steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from everstate.topology.names import node_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everstate.topology.nodes import Node
    from everstate.topology.unit import Unit


@dataclass(frozen=True)
class Description:
    """What a service consists of.

    Example:
        >>> import everstate as es
        >>> app = es.Service("docs")
        >>> orders = app.table("orders", key="id", schema={"id": str, "customer": str})
        >>> _ = orders.group_by("customer").agg(orders=es.count()).to("by-customer")
        >>> print(app.describe())
        service docs (records that cannot be processed: dead-letter)
        output by-customer: table, key customer, from orders
          stage 0
            orders: source of orders -> orders/table
          stage 1
            orders/table: table of orders, keeps state -> by-customer/aggregate
          stage 2
            by-customer/aggregate: aggregate by customer, keeps state -> by-customer/output
              .group_by("customer").agg(orders=es.count())
            by-customer/output: output to by-customer

    Attributes:
        service: The service's name.
        on_error: The policy for records that cannot be processed.
        units: The outputs with what feeds them.
        texts: By output and number of a node, the user's text that made it, as far as it is known.
    """

    service: str
    on_error: str
    units: list[Unit]
    texts: Mapping[str, Mapping[int, str]] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"service {self.service} (records that cannot be processed: {self.on_error})"]
        for unit in self.units:
            lines += _unit_lines(unit, self.texts.get(unit.output.topic, {}))
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "service": self.service,
            "on_error": self.on_error,
            "outputs": [unit_json(unit, self.texts.get(unit.output.topic, {})) for unit in self.units],
        }


def unit_json(unit: Unit, texts: Mapping[int, str]) -> dict[str, Any]:
    """One output as plain data."""
    names = node_names(unit)
    return {
        "output": unit.output.topic,
        "kind": str(unit.output.kind),
        "key": list(unit.output.key.names),
        "value": {field.name: str(field.type.name) for field in unit.output.record.fields},
        "topics": {"read": list(unit.topics), "written": list(unit.written)},
        "stages": [
            {"number": stage, "nodes": [_node_json(unit, n, names, texts) for n, _ in unit.members(stage)]}
            for stage in range(unit.depth + 1)
        ],
        "order_sensitive": [names[unit.nodes.index(node)] for node in unit.order_sensitive],
        "time": {"waits_for": _waits_for(unit), "idle_after": _idle(unit), "wall_clock": unit.clocked},
    }


def _node_json(unit: Unit, number: int, names: list[str], texts: Mapping[int, str]) -> dict[str, Any]:
    node = unit.nodes[number]
    return {
        "name": names[number],
        "operation": node.verb,
        "kind": str(node.kind),
        "key": list(node.key.names),
        "columns": list(node.schema.names),
        "store": names[number] if node.traits.keeps_state else None,
        "order_sensitive": node.order_sensitive,
        "from": [names[edge.source] for edge in unit.into(number)],
        "to": [names[edge.target] for edge in unit.out_of(number)],
        "location": str(node.location) if node.location else None,
        "text": texts.get(number),
    }


def _unit_lines(unit: Unit, texts: Mapping[int, str]) -> list[str]:
    output, names = unit.output, node_names(unit)
    lines = [f"output {output.topic}: {output.kind}, key {', '.join(output.key.names)}, from {', '.join(unit.topics)}"]
    for stage in range(unit.depth + 1):
        lines.append(f"  stage {stage}")
        for number, node in unit.members(stage):
            after = ", ".join(names[edge.target] for edge in unit.out_of(number))
            lines.append(f"    {names[number]}: {_phrase(node)}" + (f" -> {after}" if after else ""))
            if node is output:
                lines += [f"      {side} to {topic}" for side, topic in output.routes]
            if number in texts and not (node.endpoint or node.traits.holds_source):
                lines.append(f"      {' '.join(texts[number].split())}")
    if unit.order_sensitive:
        steps = ", ".join(names[unit.nodes.index(node)] for node in unit.order_sensitive)
        lines.append(f"  depends on the order of arrival: {steps}")
    if waits := _waits_for(unit):
        lines.append(f"  waits for all partitions: {', '.join(waits)}")
        idle = _idle(unit)
        lines += [f"    passes over a quiet partition of {topic} after {idle[topic]}" for topic in sorted(idle)]
    if unit.clocked:
        lines.append("  uses the wall clock, which is recorded every second")
    return lines


def _waits_for(unit: Unit) -> list[str]:
    """The topics whose partitions a step waits for; a stream that only tells its readers the time waits for none."""
    timed = [clocks for node, clocks in zip(unit.nodes, unit.clocks, strict=True) if node.timed]
    return sorted({unit.topics[number] for clocks in timed for number in clocks})


def _idle(unit: Unit) -> dict[str, str]:
    """By topic, after how long a quiet partition is passed over."""
    waits = _waits_for(unit)
    return {source.topic: source.idle_after for source in unit.sources if source.idle_after and source.topic in waits}


def _phrase(node: Node) -> str:
    text = node.verb
    if not node.inputs:
        text += f" of {node.endpoint}"
    elif node.endpoint:
        text += f" to {node.endpoint}"
    elif node.traits.rekeys_input:
        text += f" by {', '.join(node.key.names)}"
    elif node.traits.holds_source:
        text += f" of {node.inputs[0].endpoint}"
    return text + (", keeps state" if node.traits.keeps_state else "")
