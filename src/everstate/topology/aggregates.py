"""Aggregate calls: what `agg()` understands of a Polars expression.

`agg(total=col("amount").sum() / es.count())` is taken apart: each aggregate call becomes a *leaf* with its input
expression, and what remains is an expression over the leaves' results.
"""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from everstate.errors import UnsupportedError
from everstate.topology.expressions.python_text import python_text
from everstate.topology.expressions.refusals import call_of, refusal
from everstate.topology.expressions.rows import offence
from everstate.topology.expressions.trees import columns_of

if TYPE_CHECKING:
    from everstate.location import Location

#: Aggregates whose accumulator can take a contribution back; the others keep contributions on tables.
REVERSIBLE = frozenset({"len", "count", "sum", "mean", "var", "std"})
#: Aggregates of a stream that need no more than one value a group.
INCREMENTAL = REVERSIBLE | {"min", "max", "first", "last"}
#: Aggregates that go by time and position of rows.
ORDERING = frozenset({"first", "last", "collect", "top_k"})
#: All that `agg()` understands.
KINDS = INCREMENTAL | {"n_unique", "collect", "top_k", "median", "quantile"}

_HINT = (
    "agg() understands es.count(), es.collect(e), es.top_k(e, k, by=None), es.median(e), es.quantile(e, q) and Polars' "
    "sum, mean, min, max, first, last, n_unique, count, var, std; for anything else use aggregate(init, add, remove)."
)


@dataclass(frozen=True, eq=False)
class Leaf:
    """One aggregate call.

    Attributes:
        kind: One of `KINDS`.
        column: The column that holds its result (`$a0`, ...); inputs are `$i0` and, for `top_k(by=)`, `$b0`.
        input: The row expression it is fed with; None for `es.count()`.
        by: The ordering expression of `top_k(by=)`.
        k: How many, for `top_k`.
        q: Which quantile.
        ddof: Delta degrees of freedom, for `var` and `std`.
    """

    kind: str
    column: str
    input: pl.Expr | None
    by: pl.Expr | None = None
    k: int = 0
    q: float = 0.0
    ddof: int = 1

    @property
    def orders_rows(self) -> bool:
        """Whether its result depends on time and position of the rows."""
        return self.kind in ORDERING

    @property
    def input_column(self) -> str:
        """The column that carries the input's value."""
        return self.column.replace("$a", "$i")

    @property
    def by_column(self) -> str:
        """The column that carries the ordering value of `top_k(by=)`."""
        return self.column.replace("$a", "$b")


def leaf_dtype(
    leaf: Leaf,
    input_dtype: pl.DataType | None,
    by_dtype: pl.DataType | None = None,
    *,
    location: Location | None = None,
) -> pl.DataType:
    """The type of a leaf's result.

    Args:
        leaf: The aggregate call.
        input_dtype: The type of its input; None for `es.count()`.
        by_dtype: The type of the ordering expression of `top_k(by=)`.
        location: Where the user wrote it, for the error.

    Raises:
        UnsupportedError: If there is no such aggregate of this type.
    """
    if input_dtype is None or leaf.kind in {"len", "count", "n_unique"}:
        return pl.Int64()
    if leaf.kind in {"first", "last"}:
        return input_dtype
    if leaf.kind in {"min", "max", "top_k"}:
        for dtype in (input_dtype,) if by_dtype is None else (by_dtype,):
            if dtype.is_nested() or dtype == pl.Null:
                raise _refused(leaf, dtype, "Apply it to a number, a text or a time inside.", location)
        return input_dtype if leaf.kind != "top_k" else pl.List(input_dtype)
    if leaf.kind == "collect":
        return pl.List(input_dtype)
    return _number_dtype(leaf, input_dtype, location)


def _number_dtype(leaf: Leaf, dtype: pl.DataType, location: Location | None) -> pl.DataType:
    """The result's type for aggregates that calculate."""
    if leaf.kind == "sum" and isinstance(dtype, (pl.Decimal, pl.Duration)):
        # Sums get all the digits there are, since the input's digits would be too few for them.
        return pl.Decimal(38, dtype.scale) if isinstance(dtype, pl.Decimal) else dtype
    if isinstance(dtype, pl.Duration):
        raise _refused(leaf, dtype, "Apply it to a number, such as .dt.total_milliseconds().", location)
    if not (dtype.is_numeric() or dtype == pl.Boolean):
        raise _refused(leaf, dtype, "Apply it to a number.", location)
    return pl.Int64() if leaf.kind == "sum" and not dtype.is_float() else pl.Float64()


def _refused(leaf: Leaf, dtype: pl.DataType, hint: str, location: Location | None) -> UnsupportedError:
    return UnsupportedError(f"there is no {leaf.kind} of {dtype}", location=location, hint=hint)


#: Parts of a tree that hold no aggregate of the group: constants, and what happens to the items of one list.
_OPAQUE = frozenset({"Literal", "evaluation"})


def _any_type(tree: Any) -> list[pl.DataType]:
    """Types are looked at when the leaves' are known; here every part may be a list."""
    del tree
    return [pl.List(pl.Null)]


class Leaves:
    """Collects the leaves of several expressions; equal calls share one leaf."""

    def __init__(self, location: Location | None) -> None:
        self.location = location
        self.leaves: list[Leaf] = []
        self._seen: dict[str, Leaf] = {}

    def take_apart(self, expression: pl.Expr) -> pl.Expr:
        """The expression with each aggregate call replaced by the column of its leaf."""
        tree = json.loads(_serialise(expression, self.location))
        rest = self._walk(tree)
        stray = [name for name in columns_of(rest) if not name.startswith("$a")]
        stray += ["a selector"] if '"Selector"' in json.dumps(rest) else []
        found = offence(rest, _any_type)
        if stray or found is not None:
            why = f"{call_of(found.reason)} needs other groups" if found else f"{stray[0]!r} is not in an aggregate"
            raise UnsupportedError(
                f"agg() cannot keep this up to date, {why}: {python_text(expression)}",
                location=self.location,
                hint=_HINT,
            )
        return _expression(rest)

    def _walk(self, tree: Any) -> Any:
        call = _call(tree, self.location)
        if call is not None:
            return {"Column": self._leaf(tree, *call).column}
        if isinstance(tree, dict):
            return {name: part if name in _OPAQUE else self._walk(part) for name, part in tree.items()}
        if isinstance(tree, list):
            return [self._walk(part) for part in tree]
        return tree

    def _leaf(self, tree: Any, kind: str, source: Any, options: dict[str, Any]) -> Leaf:
        signature = json.dumps(tree, sort_keys=True)
        if signature not in self._seen:
            by = options.pop("by", None)
            leaf = Leaf(
                kind,
                f"$a{len(self.leaves)}",
                None if source is None else self._row_expression(source),
                None if by is None else self._row_expression(by),
                **options,
            )
            self._seen[signature] = leaf
            self.leaves.append(leaf)
        return self._seen[signature]

    def _row_expression(self, tree: Any) -> pl.Expr:
        expression = _expression(tree)
        found = offence(tree, _any_type)
        if found is None:
            return expression
        refused = refusal(found.reason, found.tree, expression, self.location)
        if found.reason == "Filter":
            refused.hint = 'Give null to the rows that do not count: pl.when(col("y") > 0).then(col("x")).sum().'
        refused.message = f"the input of an aggregate must be computed row by row; {refused.message}"
        raise refused


def _call(tree: Any, location: Location | None) -> tuple[str, Any, dict[str, Any]] | None:
    """(kind, input, options) if the tree is an aggregate call; None if it is another expression."""
    if tree == "Len":
        return "len", None, {}
    if not isinstance(tree, dict) or len(tree) != 1:
        return None
    if "Agg" in tree:
        (name, body), *_ = tree["Agg"].items()
        return _agg(name, body, location)
    if "Function" in tree:
        return _function(tree["Function"], location)
    if "Window" in tree or "Over" in tree:
        raise UnsupportedError("over() cannot be used inside agg()", location=location, hint=_HINT)
    return None


def _agg(name: str, body: Any, location: Location | None) -> tuple[str, Any, dict[str, Any]]:
    plain = {"Sum": "sum", "Mean": "mean", "First": "first", "Last": "last", "NUnique": "n_unique", "Median": "median"}
    if name in plain:
        return plain[name], body, {}
    if name in {"Min", "Max"} and not body["propagate_nans"]:
        return name.lower(), body["input"], {}
    if name in {"Var", "Std"}:
        return name.lower(), body[0], {"ddof": body[1]}
    if name == "Count":
        return ("len", None, {}) if body["include_nulls"] else ("count", body["input"], {})
    if name == "Implode":
        return "collect", body["input"], {}
    raise UnsupportedError(f"the aggregate {name.lower()!r} is not supported", location=location, hint=_HINT)


def _function(body: dict[str, Any], location: Location | None) -> tuple[str, Any, dict[str, Any]] | None:
    function, inputs = body["function"], body["input"]
    name = function if isinstance(function, str) else next(iter(function))
    if name == "Quantile":
        if function["Quantile"]["method"] != "Linear":
            raise UnsupportedError("use es.quantile(e, q): it interpolates linearly", location=location, hint=_HINT)
        return "quantile", inputs[0], {"q": float(_literal(inputs[1], location))}
    if name == "TopK":
        _refuse_descending([function["TopK"]["descending"]], location)
        return "top_k", inputs[0], {"k": int(_literal(inputs[1], location))}
    if name == "TopKBy":
        _refuse_descending(function["TopKBy"]["descending"], location)
        if len(inputs) != 3:
            raise UnsupportedError("top_k takes one by= expression", location=location, hint=_HINT)
        return "top_k", inputs[0], {"k": int(_literal(inputs[1], location)), "by": inputs[2]}
    return None


def _refuse_descending(flags: list[bool], location: Location | None) -> None:
    if any(flags):
        raise UnsupportedError(
            "top_k takes the largest; negate the value for the smallest", location=location, hint=_HINT
        )


def _literal(tree: Any, location: Location | None) -> Any:
    try:
        return pl.select(_expression(tree)).item()
    except pl.exceptions.PolarsError:
        raise UnsupportedError("k and q must be plain numbers", location=location, hint=_HINT) from None


_NOT_FINITE = re.compile(r'\{"Float(32|64)?":null\}')


def _serialise(expression: pl.Expr, location: Location | None) -> str:
    try:
        text = expression.meta.serialize(format="json")
    except pl.exceptions.PolarsError:
        raise UnsupportedError(
            f"this expression holds a Python function: {python_text(expression)}",
            location=location,
            hint="Use map(fn) before group_by(), or aggregate(init, add, remove).",
        ) from None
    if _NOT_FINITE.search(text):
        # JSON has no word for them, so the expression could not be put together again.
        raise UnsupportedError(
            f"agg() cannot hold NaN or infinity as a constant: {python_text(expression)}",
            location=location,
            hint="Add it as a column before group_by(), or in a select() after agg().",
        )
    return text


def _expression(tree: Any) -> pl.Expr:
    return pl.Expr.deserialize(io.StringIO(json.dumps(tree)), format="json")
