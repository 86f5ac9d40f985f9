"""Whether an expression gives each row's value out of that row alone.

A micro-batch is cut where it happens to be cut. An expression that looks at other rows gives another result for another
cut, so its whole tree is walked, node by node, against what is known to work row by row. Inside of `list.eval` and its
like the items of one list are in question, and there aggregates and orders are fine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import polars as pl

from everstate.errors import UnknownColumnError
from everstate.topology.expressions import allowed, trees
from everstate.topology.expressions.refusals import refusal

if TYPE_CHECKING:
    from everstate.location import Location

#: The types that an expression gives on the columns at hand; None where Polars cannot say.
Types: TypeAlias = Callable[[Any], list[pl.DataType] | None]

_CATEGORICAL: Final = "categorical"

_DIVISIONS: Final = frozenset({"TrueDivide", "FloorDivide", "Modulus", "TruncDivide"})
_CHOICE: Final = re.compile('"(Ternary|FillNull|Coalesce|Replace)')

#: Nodes that are as good as their parts.
_PARTS: Final[dict[str, Callable[[Any], list[Any]]]] = {
    "Alias": lambda body: [body[0]],
    "BinaryExpr": lambda body: [body["left"], body["right"]],
    "Column": lambda _: [],
    "KeepName": lambda body: [body],
    "Selector": lambda _: [],
    "Ternary": lambda body: [body["predicate"], body["truthy"], body["falsy"]],
}

#: The same among the items of a list.
_PARTS_IN_LISTS: Final[dict[str, Callable[[Any], list[Any]]]] = {
    "Filter": lambda body: [body["input"], body["by"]],
    "Gather": lambda body: [body["expr"], *([] if trees.is_constant(body["idx"]) else [body["idx"]])],
    "Slice": lambda body: [body["input"], body["offset"], body["length"]],
    "Sort": lambda body: [body["expr"]],
    "SortBy": lambda body: [body["expr"], *body["by"]],
}


@dataclass(frozen=True)
class Offence:
    """The part of an expression that does not work row by row.

    Attributes:
        reason: A function's name, as in `allowed`, or a word for what is wrong.
        tree: That part.
    """

    reason: str
    tree: Any


def check(expression: pl.Expr, schema: Mapping[str, pl.DataType], location: Location | None) -> None:
    """Refuse an expression that does not work row by row, or names a column that is not there.

    Raises:
        UnknownColumnError: A column is not there.
        UnsupportedError: It does not work row by row; the message names the part, the hint what to write instead.
    """
    tree = trees.tree_of(expression, location)
    for name in trees.columns_of(tree):
        if name not in schema:
            raise UnknownColumnError(name, list(schema), location=location)
    found = offence(tree, _types(schema))
    if found is not None:
        raise refusal(found.reason, found.tree, expression, location)


def offence(tree: Any, types: Types) -> Offence | None:
    """The first part of a tree that does not work row by row.

    Args:
        tree: An expression as Polars writes it.
        types: Gives the types of parts.
    """
    try:
        return _Walk(types).node(tree)
    except (AttributeError, LookupError, TypeError, ValueError):
        # Another version of Polars may write a node in another form, of which nothing is known.
        return Offence("form", tree)


def _types(schema: Mapping[str, pl.DataType]) -> Types:
    def found(tree: Any) -> list[pl.DataType] | None:
        expression = trees.expression_of(tree)
        if expression is None:
            return None
        try:
            return list(pl.LazyFrame(schema=dict(schema)).select(expression).collect_schema().values())
        except pl.exceptions.PolarsError:
            return None

    return found


class _Walk:
    """One walk down a tree.

    Args:
        types: Gives the types of parts; None inside a list, whose items have no name.
        fields: Whether `pl.field()` has a meaning here.
    """

    def __init__(self, types: Types | None, *, fields: bool = False) -> None:
        self._types = types
        self._in_list = types is None
        self._fields = fields
        self._judges: dict[str, Callable[[Any, Any], Offence | None]] = {
            "Agg": self._aggregate,
            "Cast": self._cast,
            "Eval": self._within_lists,
            "Function": self._function,
            "Literal": self._literal,
            "RenameAlias": self._renaming,
            "StructEval": self._within_structs,
        }

    def node(self, tree: Any) -> Offence | None:
        """What is wrong with a tree."""
        kind, body = trees.kind_of(tree)
        if kind in self._judges:
            return self._judges[kind](tree, body)
        if kind == "BinaryExpr" and self._in_list and body["op"] in _DIVISIONS and _is_chosen(body):
            return Offence("chosen", tree)
        if kind in _PARTS:
            return self.nodes(_PARTS[kind](body))
        if kind in _PARTS_IN_LISTS and self._in_list and _is_stable(body):
            return self.nodes(_PARTS_IN_LISTS[kind](body))
        placed = (kind == "Field" and self._fields) or (kind in ("Element", "Len") and self._in_list)
        return None if placed else Offence(kind, tree)

    def nodes(self, parts: Iterable[Any]) -> Offence | None:
        """What is wrong with the first of some trees that is."""
        return next((found for part in parts if (found := self.node(part))), None)

    def _cast(self, tree: Any, body: Any) -> Offence | None:
        return Offence(_CATEGORICAL, tree) if trees.names_categorical(body["dtype"]) else self.node(body["expr"])

    def _renaming(self, tree: Any, body: Any) -> Offence | None:
        name, _ = trees.kind_of(body["function"])
        return self.node(body["expr"]) if name in allowed.RENAMINGS else Offence("python", tree)

    def _literal(self, tree: Any, body: Any) -> Offence | None:
        del body
        values = trees.constant_values(tree)
        if values is not None and trees.is_series(tree) and values.len() != 1:
            return Offence("series", tree)
        return _constant(tree)

    def _within_lists(self, tree: Any, body: Any) -> Offence | None:
        variant, _ = trees.kind_of(body["variant"])
        if variant not in allowed.IN_LISTS:
            return Offence(f"Eval.{variant}", tree)
        return self.node(body["expr"]) or _Walk(None).node(body["evaluation"])

    def _within_structs(self, tree: Any, body: Any) -> Offence | None:
        del tree
        return self.node(body["expr"]) or _Walk(self._types, fields=True).nodes(body["evaluation"])

    def _aggregate(self, tree: Any, body: Any) -> Offence | None:
        ((name, rest),) = body.items()
        if not self._in_list or f"Agg.{name}" not in allowed.BY_LIST:
            return Offence(f"Agg.{name}", tree)
        inner = rest["input"] if isinstance(rest, dict) and "input" in rest else rest
        return self.node(inner[0] if isinstance(inner, list) else inner)

    def _function(self, tree: Any, body: Any) -> Offence | None:
        name, options = trees.function_name(body["function"])
        known = name in allowed.BY_ROW or (self._in_list and name in allowed.BY_LIST)
        if not known or not _settled(name, options):
            return Offence(name, tree)
        if trees.names_categorical(options):
            return Offence(_CATEGORICAL, tree)
        fixed, shared = allowed.CONSTANTS.get(name, ()), allowed.COLLECTIONS.get(name, ())
        for place, part in enumerate(body["input"]):
            found = self.node(part)
            if place in fixed or place in shared:
                if trees.is_constant(part):
                    found = _constant(part)
                elif place in fixed or not self._is_list(part):
                    found = Offence(f"set of {name}", tree)
            if found is not None:
                return found
        return None

    def _is_list(self, tree: Any) -> bool:
        types = None if self._types is None else self._types(tree)
        return types is not None and all(isinstance(dtype, (pl.List, pl.Array)) for dtype in types)


def _constant(tree: Any) -> Offence | None:
    """What is wrong with a literal, or with what is made of one."""
    kind, body = trees.kind_of(tree)
    while kind != "Literal":
        tree = body[0] if kind == "Alias" else body["expr"] if kind == "Cast" else body["Implode"]["input"]
        if kind == "Cast" and trees.names_categorical(body["dtype"]):
            return Offence(_CATEGORICAL, tree)
        kind, body = trees.kind_of(tree)
    values = trees.constant_values(tree)
    return Offence(_CATEGORICAL, tree) if values is not None and "Categorical" in str(values.dtype) else None


def _is_chosen(parts: Any) -> bool:
    """Whether a value is one of several, so that it may happen to be the same for all lists of a batch.

    Polars divides by one value in another way than by several, and among the items of lists that cannot be helped.
    """
    return _CHOICE.search(json.dumps(parts)) is not None


def _is_stable(body: Any) -> bool:
    """Whether a sort says which comes first of items that are equal in what they are sorted by."""
    options = body.get("sort_options")
    return options is None or bool(options["maintain_order"])


def _settled(name: str, options: Any) -> bool:
    """Whether options leave nothing to be worked out from the data, nor to chance."""
    if name == "StringExpr.Strptime":
        return bool(options[1]["format"])
    if name == "Rank":
        return str(options["options"]["method"]) != "Random"
    if name == "Mode":
        return bool(options["maintain_order"])
    return True
