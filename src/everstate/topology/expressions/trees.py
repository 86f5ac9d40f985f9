"""Expressions as the trees that Polars writes to JSON: reading them, naming their functions, finding their parts."""

from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from everstate.errors import UnsupportedError
from everstate.topology.expressions.allowed import FAMILIES
from everstate.topology.expressions.python_text import python_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.location import Location

#: Where a family keeps the name of its member, if not as the only key.
_MEMBERS: Final = {"RollingExpr": "function", "RollingExprBy": "function_by", "Random": "method"}
#: Literals that Polars writes as bytes in a format of its own.
_FROZEN: Final = frozenset({"List", "Array", "Struct", "Categorical", "CategoricalOwned"})
_CATEGORICAL: Final = re.compile(r'"Categorical')


def tree_of(expression: pl.Expr, location: Location | None) -> Any:
    """The expression as Polars writes it.

    Raises:
        UnsupportedError: There is a Python function in it.
    """
    try:
        return json.loads(expression.meta.serialize(format="json"))
    except (pl.exceptions.PolarsError, ValueError, TypeError):
        # A function is pickled, which needs a library that need not be there, and cannot be done with every function.
        raise holds_python(python_text(expression), location) from None


def holds_python(text: str, location: Location | None) -> UnsupportedError:
    """The refusal of an expression with a Python function inside."""
    return UnsupportedError(
        f"this expression holds a Python function: {text}",
        location=location,
        hint="Pass the function itself: map(fn) or filter(fn). Columns are renamed with alias(), prefix() or rename().",
    )


def expression_of(tree: Any) -> pl.Expr | None:
    """The expression that a tree stands for; None where JSON does not say enough, as of NaN and infinities."""
    try:
        return pl.Expr.deserialize(io.StringIO(json.dumps(tree)), format="json")
    except (pl.exceptions.PolarsError, ValueError):
        return None


def kind_of(tree: Any) -> tuple[str, Any]:
    """A node's kind, and what it holds."""
    if isinstance(tree, str):
        return tree, None
    ((kind, body),) = tree.items()
    return kind, body


def function_name(function: Any) -> tuple[str, Any]:
    """A function's name, `Abs` or `StringExpr.Contains`, and its options."""
    if isinstance(function, str):
        return function, None
    ((name, options),) = function.items()
    if name not in FAMILIES:
        return name, options
    member = options[_MEMBERS[name]] if name in _MEMBERS else options
    if isinstance(member, str):
        return f"{name}.{member}", options
    ((inner, rest),) = member.items()
    return f"{name}.{inner}", rest


def columns_of(tree: Any) -> Iterator[str]:
    """The columns of the frame that a tree names; not the items of lists, nor what selectors find."""
    if isinstance(tree, dict):
        for kind, body in tree.items():
            if kind == "Column":
                yield body
            elif kind == "Eval":
                yield from columns_of(body["expr"])
            elif kind not in ("Literal", "Selector"):
                yield from columns_of(body)
    elif isinstance(tree, list):
        for part in tree:
            yield from columns_of(part)


def is_constant(tree: Any) -> bool:
    """Whether a tree gives the same for every row: literals, whatever is done to them."""
    kind, body = kind_of(tree)
    if kind == "Literal":
        return True
    if kind == "Alias":
        return is_constant(body[0])
    if kind == "Cast":
        return is_constant(body["expr"])
    if kind == "Agg" and "Implode" in body:
        return is_constant(body["Implode"]["input"])
    return False


def names_categorical(part: Any) -> bool:
    """Whether a data type, or what holds one, is categorical anywhere inside."""
    return _CATEGORICAL.search(json.dumps(part)) is not None


def constant_values(tree: Any) -> pl.Series | None:
    """The values of a literal that holds several, a series or a list; None of a single value."""
    ((form, content),) = tree["Literal"].items()
    if form != "Series" and not (isinstance(content, dict) and _FROZEN.intersection(content)):
        return None
    expression = expression_of(tree)
    return None if expression is None else pl.select(expression).to_series()


def is_series(tree: Any) -> bool:
    """Whether a literal is a series, which is laid beside the rows."""
    return "Series" in tree["Literal"]
