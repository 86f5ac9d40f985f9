"""Prints as they were stored by earlier versions, with what those left out.

The first prints had neither kinds nor traits, and columns only as text. The operations of that time are known, and what
they were is told by the classes that they still have; so whoever reads a print need not ask who wrote it.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final

from everstate.topology import nodes
from everstate.topology.names import step_text
from everstate.topology.nodes import Kind
from everstate.topology.traits import Need, Traits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: What the words of those operations stood for that had a word for themselves.
_OPERATIONS: Final[dict[str, type[nodes.Node]]] = {
    "source": nodes.Source,
    "table": nodes.Latest,
    "filter": nodes.Filter,
    "select": nodes.Project,
    "with_columns": nodes.Project,
    "rename": nodes.Project,
    "drop": nodes.Project,
    "map": nodes.Map,
    "flat_map": nodes.FlatMap,
    "merge": nodes.Merge,
    "join": nodes.Join,
    "foreign-key join": nodes.ForeignJoin,
    "stateful": nodes.Stateful,
    "output": nodes.Output,
}


def completed(stored: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The stored nodes of a print, in topological order, each with its kind, its traits and typed columns.

    Args:
        stored: As JSON has them.
    """
    kinds: dict[str, str] = {}
    for node in stored:
        operation = _operation(node)
        supplied = operation.traits if operation is not None else Traits(keeps_state=node["stateful"])
        kind = node.get("kind") or _kind(node, supplied, kinds)
        kinds[node["name"]] = kind
        on_tables = all(kinds[name] == Kind.TABLE for name in node["inputs"])
        traits = {
            **vars(replace(supplied, need=supplied.need if on_tables or supplied.holds_source else Need.ALL)),
            "order_sensitive": supplied.order_sensitive and not on_tables,
            **node.get("traits", {}),
        }
        columns = [column if isinstance(column, dict) else _column(column) for column in node.get("columns", ())]
        yield {**node, "kind": kind, "traits": _traits(traits), "columns": columns}


def earlier_step(operation: str, location: str) -> str:
    """What dead letters called a step before they had its name: the operation and the user's line."""
    known = _OPERATIONS.get(operation)
    return step_text(known.operation if known is not None else operation, location)


def step_operation(step: str, topic: str) -> str:
    """The operation of the step in a dead letter, whichever version wrote it.

    Args:
        step: What the letter calls it: `orders/filter#2 at shop.py:3`, or `filter at shop.py:3` in earlier ones.
        topic: Where its record comes from: the source has that name.

    Example:
        >>> [step_operation(step, "orders") for step in ("orders at a.py:1", "orders/drop#2 at a.py:3", "select")]
        ['source', 'select', 'select']
    """
    name = step.partition(" at ")[0].partition("#")[0]
    word = "source" if name == topic else name.rpartition("/")[2].replace("-", " ")
    found = _OPERATIONS.get(word) or _OPERATIONS.get(word.replace("foreign key", "foreign-key"))
    return found.operation if found is not None else word


def _operation(node: Mapping[str, Any]) -> type[nodes.Node] | None:
    if node["operation"] == "aggregate":
        return nodes.Fold if "add" in node["parts"] else nodes.Aggregate
    if node["operation"] == "rekey":
        return nodes.RekeyTable if node["stateful"] else nodes.RekeyStream
    return _OPERATIONS.get(node["operation"])


def _kind(node: Mapping[str, Any], traits: Traits, kinds: Mapping[str, str]) -> str:
    """A source says it; a step gives a table if it holds one, or if all that feeds it are tables."""
    if not node["inputs"]:
        said = node["parts"].get("kind")
        return str(said["text"]) if said is not None else str(Kind.STREAM)
    table = traits.holds_results or all(kinds[name] == Kind.TABLE for name in node["inputs"])
    return str(Kind.TABLE if table else Kind.STREAM)


def _traits(known: Mapping[str, Any]) -> Traits:
    """Traits from plain values; those that this version does not know, a later one has added."""
    given = {field.name: known[field.name] for field in fields(Traits)}
    ports = {name: tuple(given[name]) for name in ("rekeys_input", "looked_up", "everywhere")}
    return Traits(**{**given, "need": Need(given["need"]), **ports})


def _column(text: str) -> dict[str, Any]:
    """A column from "name: type? = default"; its exact type was not stored."""
    name, _, rest = text.partition(": ")
    shown, _, default = rest.partition(" = ")
    return {
        "name": name,
        "type": shown.removesuffix("?"),
        "nullable": shown.endswith("?"),
        "default": default or None,
    }
