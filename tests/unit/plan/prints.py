"""Prints made by hand: small topologies in a few words."""

from __future__ import annotations

import json

from everstate.fingerprints.prints import NodePrint, Part, PartKind, UnitPrint


def part(kind: PartKind, text: str, *, digest: str = "", shape: str = "", location: str = "") -> Part:
    return Part(kind, digest or text, shape or digest or text, text, location)


def node(name: str, *inputs: str, stateful: bool = False, at: str = "", **parts: Part) -> NodePrint:
    operation = name.split("#", maxsplit=1)[0].rpartition("/")[2] if "/" in name else "source"
    return NodePrint(name, operation, inputs, stateful, parts, at)


def source(topic: str, *, key: str = "id", schema: str = "id: str, amount: int", at: str = "shop.py:3") -> NodePrint:
    return node(
        topic,
        at=at,
        topic=part("topic", topic),
        key=part("key", key),
        schema=part("schema", schema),
    )


def table(topic: str, *, at: str = "shop.py:3") -> NodePrint:
    return node(f"{topic}/table", topic, stateful=True, at=at)


def filtered(name: str, feeder: str, predicate: str, *, at: str = "shop.py:5") -> NodePrint:
    return node(name, feeder, at=at, predicate=part("expression", predicate))


def grouped(name: str, feeder: str, by: str, result: str, *, at: str = "shop.py:7") -> NodePrint:
    return node(name, feeder, stateful=True, at=at, by=part("grouping", by), results=part("expression", result))


def output(topic: str, feeder: str, *, at: str = "shop.py:9") -> NodePrint:
    return node(f"{topic}/output", feeder, at=at, topic=part("topic", topic), format=part("parameter", "json"))


def unit(topic: str, *nodes: NodePrint, **others) -> UnitPrint:
    """An output with these nodes; the output's own node is put last."""
    kind = others.pop("kind", "table")
    return read(UnitPrint("shop", topic, kind, (*nodes, output(topic, nodes[-1].name)), **others))


def read(written: UnitPrint) -> UnitPrint:
    """A print as it is read if it was stored without kinds and traits, which those made by hand do not have."""
    known = json.loads(written.to_json())
    for entry in known["nodes"]:
        del entry["kind"], entry["traits"]
    return UnitPrint.from_json(json.dumps(known))


def totals(*, predicate: str = "amount > 0", by: str = "customer", result: str = "sum(amount)", **others) -> UnitPrint:
    """orders, filtered and grouped: the usual example."""
    return unit(
        "totals",
        source("orders"),
        table("orders"),
        filtered("orders/filter", "orders/table", predicate),
        grouped("totals/aggregate", "orders/filter", by, result),
        **others,
    )


def clicks(*, predicate: str = "amount > 0") -> UnitPrint:
    """The same on a stream, where nothing is ever taken back."""
    return unit(
        "totals",
        source("orders"),
        filtered("orders/filter", "orders", predicate),
        grouped("totals/aggregate", "orders/filter", "customer", "sum(amount)"),
    )


def seen(*, stateful: bool = True, kind: str = "stream", **others) -> UnitPrint:
    """clicks as a stream, by default through a function with state."""
    step = node("clicks/stateful", "clicks", stateful=True, at="shop.py:6", fn=part("function", "count"))
    return unit("seen", source("clicks"), *([step] if stateful else []), kind=kind, **others)


def vips(*, predicate: str = "total > 1000", **others) -> UnitPrint:
    """A table made of the output of `totals`."""
    return unit(
        "vips",
        source("totals", at="shop.py:12"),
        table("totals", at="shop.py:12"),
        filtered("totals/filter", "totals/table", predicate, at="shop.py:13"),
        **others,
    )
