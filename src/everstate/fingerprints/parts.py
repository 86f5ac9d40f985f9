"""The parts of a node: each thing about it that can change results."""

from __future__ import annotations

import ast
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, cast

import polars as pl

from everstate.errors import FingerprintError
from everstate.fingerprints.code.sources import once, syntax_of
from everstate.fingerprints.expressions import expression
from everstate.fingerprints.reach import Reach
from everstate.fingerprints.tree import Tree, atom
from everstate.formats.values import meaning
from everstate.schema.keys import KeySpec
from everstate.schema.schema import Schema
from everstate.topology.expressions.python_text import python_text
from everstate.topology.functions import Function
from everstate.topology.nodes import Keying

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from everstate.fingerprints.code.sources import FunctionNode
    from everstate.fingerprints.prints import PartKind
    from everstate.location import Location
    from everstate.topology.aggregates import Leaf
    from everstate.topology.nodes import Aggregate, Exit, KeptState, Node

#: How the calls in an aggregate work, as for the semantics of a node; those that are not here always worked so.
_CALLS: Final[dict[str, int]] = {"mean": 2, "var": 2, "std": 2}

#: Fields that other parts tell, or that change no result: where something was written, what feeds it, how the topic
#: is made, how state of an earlier version is converted; the calls of an aggregate stand in its results.
_ASIDE: Final = frozenset(
    {"inputs", "location", "kind", "key", "schema", "key_in_value", "word", "partitions", "migrate", "leaves"}
)
_TEXT: Final = 120


@dataclass(frozen=True)
class RawPart:
    """A part before it is hashed.

    Attributes:
        name: Unique in its node.
        kind: As in a print.
        tree: Its meaning.
        text: For people.
        keywords: Names by which functions in it pass arguments; None if they cannot be told.
        location: Where it is written, if not where its node is.
    """

    name: str
    kind: PartKind
    tree: Tree
    text: str
    keywords: frozenset[str] | None = frozenset()
    location: Location | None = None


class PartReader:
    """Takes nodes apart, and notes the packages that their functions reach."""

    def __init__(self) -> None:
        self.packages: dict[str, str] = {}
        self._location: Location | None = None

    def parts(self, node: Node) -> list[RawPart]:
        """All parts of a node."""
        self._location = node.location
        found = [RawPart("semantics", "semantics", node.traits.semantics, node.verb)]
        found += self._key_and_schema(node)
        if not node.traits.passes:
            for field in fields(node):
                if field.name not in _ASIDE:
                    found += self._field(node, field.name)
        return found

    def _key_and_schema(self, node: Node) -> Iterator[RawPart]:
        if not node.inputs:
            yield self._key("key", node.key)
            yield RawPart("kind", "parameter", str(node.kind), str(node.kind))
            return
        key = [[name, str(dtype)] for name, dtype in zip(node.key.names, node.key.dtypes, strict=True)]
        key += [["written", node.key.form]] if node.key.form != "text" else []
        tree = [str(node.kind), key, node.record.to_json(), node.key_in_value]
        yield RawPart("schema", "schema", tree, str(node.record))

    def _field(self, node: Node, name: str) -> Iterator[RawPart]:
        value = getattr(node, name)
        written_to = name == "topic" and node.inputs
        if value is None or (isinstance(value, tuple) and not value) or written_to:
            return
        if name == "topic":
            yield RawPart("topic", "topic", atom(value), value)
        elif name in _PROCESSOR:
            yield from _PROCESSOR[name](value)
        elif name == "format":
            yield RawPart("format", "schema", meaning(node.record, value), str(value))
        elif name == "declared":
            yield RawPart("schema", "schema", value.to_json(), str(value))
        elif name == "results":
            yield from self._aggregates(cast("Aggregate", node))
        elif name == "columns":
            for place, column in enumerate(value):
                yield self._expression(_column_name(column, place), "expression", column)
        elif name in node.labelled:
            yield RawPart(name, "parameter", atom(value), f"{name}={value}")
        else:
            yield from self._any("grouping" if isinstance(value, Keying) else name, value)

    def _any(self, name: str, value: Any) -> Iterator[RawPart]:
        """A part by the type of its value, so that operations to come need no line here."""
        match value:
            case pl.Expr():
                yield self._expression(name, "expression", value)
            case Function():
                yield self._function(name, "function", value)
            case Schema():
                yield RawPart(name, "schema", value.to_json(), str(value))
            case KeySpec():
                yield self._key(name, value)
            case Keying():
                yield self._keying(name, value)
            case tuple() if value and all(isinstance(part, (pl.Expr, Function, Keying)) for part in value):
                for place, part in enumerate(value):
                    yield from self._any(f"{name} {place + 1}", part)
            case _:
                reach = Reach(self._location)
                yield RawPart(name, "parameter", reach.tree(value), _shortened(str(value)))

    def _key(self, name: str, key: KeySpec) -> RawPart:
        tree = [[atom(part), str(dtype)] for part, dtype in zip(key.names, key.dtypes, strict=True)]
        tree += [[atom("written"), key.form]] if key.form != "text" else []
        return RawPart(name, "key", tree, ", ".join(key.names))

    def _keying(self, name: str, keying: Keying) -> RawPart:
        key = self._key(name, keying.key)
        if keying.fn is not None:
            made = self._function(name, "grouping", keying.fn)
            return RawPart(name, "grouping", [key.tree, made.tree], made.text, made.keywords, made.location)
        by = [self._expression(name, "grouping", part) for part in keying.by]
        return RawPart(name, "grouping", [key.tree, [part.tree for part in by]], ", ".join(part.text for part in by))

    def _aggregates(self, node: Aggregate) -> Iterator[RawPart]:
        """One part a result, in which the calls stand where the user wrote them: another result changes none of it."""
        leaves = {leaf.column: self._leaf(leaf) for leaf in node.leaves}
        for name, result in node.results:
            tree = _with_leaves(expression(result, node.location, self._package), leaves)
            text = python_text(result)
            for leaf in sorted(node.leaves, key=lambda leaf: -len(leaf.column)):
                text = text.replace(f'col("{leaf.column}")', _leaf_text(leaf))
            yield RawPart(f"column {name}", "expression", tree, _shortened(text))

    def _leaf(self, leaf: Leaf) -> Tree:
        inner = [
            None if part is None else expression(part, self._location, self._package) for part in (leaf.input, leaf.by)
        ]
        kind = leaf.kind if leaf.kind not in _CALLS else f"{leaf.kind} {_CALLS[leaf.kind]}"
        return ["aggregate", kind, *inner, *(atom(part) for part in (leaf.k, leaf.q, leaf.ddof))]

    def _expression(self, name: str, kind: PartKind, given: pl.Expr) -> RawPart:
        return RawPart(name, kind, expression(given, self._location, self._package), _shortened(python_text(given)))

    def _function(self, name: str, kind: PartKind, given: Function) -> RawPart:
        reach = Reach(given.location or self._location)
        try:
            tree = reach.tree(given.call)
        except FingerprintError as error:
            raise FingerprintError(f"{given.name}: {error.message}", location=error.location, hint=error.hint) from None
        self.packages.update(reach.packages)
        keywords = None if reach.spreads else frozenset(reach.keywords)
        return RawPart(name, kind, tree, _function_text(given), keywords, given.location)

    def _package(self, name: str) -> None:
        reach = Reach(self._location)
        reach.package(name)
        self.packages.update(reach.packages)


def _states(states: tuple[KeptState, ...]) -> Iterator[RawPart]:
    for state in states:
        yield RawPart(f"state {state.name}", "parameter", state.meaning, str(state))


def _exits(exits: tuple[Exit, ...]) -> Iterator[RawPart]:
    for side in exits:
        yield RawPart(f"side {side.name}", "schema", side.schema.to_json(), f"{side.name}: {side.schema}")


def _routes(routes: tuple[tuple[str, str], ...]) -> Iterator[RawPart]:
    for side, topic in routes:
        yield RawPart(f"side {side}", "parameter", [atom(side), atom(topic)], f"{side} to {topic}")


#: By field, the parts of processors and of where their sides go: each by its own name.
_PROCESSOR: Final[dict[str, Callable[[Any], Iterator[RawPart]]]] = {
    "states": _states,
    "exits": _exits,
    "routes": _routes,
}


def _with_leaves(tree: Tree, leaves: dict[str, Tree]) -> Tree:
    if isinstance(tree, list):
        if len(tree) == 2 and tree[0] == "Column" and getattr(tree[1], "text", None) in leaves:
            return leaves[tree[1].text]
        return [_with_leaves(part, leaves) for part in tree]
    return tree


def _leaf_text(leaf: Leaf) -> str:
    return f"{leaf.kind}({'' if leaf.input is None else python_text(leaf.input)})"


def _column_name(column: pl.Expr, place: int) -> str:
    try:
        return f"column {column.meta.output_name()}"
    except pl.exceptions.PolarsError:  # several columns, such as all()
        return f"columns {place + 1}"


def _function_text(given: Function) -> str:
    """A lambda as it is written, another function by its name."""
    code, names = getattr(given.call, "__code__", None), getattr(given.call, "__globals__", {})
    node = syntax_of(code, names) if code is not None else None
    return _shortened(_written(node) if isinstance(node, ast.Lambda) else given.name)


@once
def _written(node: FunctionNode) -> str:
    return ast.unparse(node)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TEXT else line[: _TEXT - 3] + "..."
