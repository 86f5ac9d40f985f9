"""Expressions whose digits do not depend on whether a column happens to hold one value for all rows of a batch.

Polars keeps a result that is the same for all rows as one value: `pl.when(c).then(7.0).otherwise(3.0)`, where `c` is
true for the whole batch. It divides by one value by multiplying with its reciprocal, which gives another last digit
than a division. So what goes into a division, a power or a logarithm passes through a struct together with a true
column, which lays it out row by row.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from everstate.topology.expressions.trees import expression_of, function_name, is_constant, kind_of

if TYPE_CHECKING:
    import polars as pl

#: A column of the frame that is evaluated, true in every row.
MASK: Final = "$mask"
_DIVISIONS: Final = frozenset({"TrueDivide", "FloorDivide", "Modulus", "TruncDivide"})
_FUNCTIONS: Final = frozenset({"Pow.Generic", "Log", "Sql.Binary"})
_MOST: Final = 512
_known: dict[int, tuple[pl.Expr, pl.Expr]] = {}


def hardened(expression: pl.Expr) -> pl.Expr:
    """An expression of the same meaning and name, with `MASK` in it where that is needed."""
    # By identity, since an expression has no hash; the expression is kept, so that no other can have its identity.
    known = _known.get(id(expression))
    if known is None:
        if len(_known) >= _MOST:
            _known.clear()
        known = _known[id(expression)] = (expression, _hardened(expression))
    return known[1]


def _hardened(expression: pl.Expr) -> pl.Expr:
    written = json.loads(expression.meta.serialize(format="json"))
    if '"Selector"' in json.dumps(written):
        return expression  # of several columns, which one struct cannot take
    tree = _walk(written)
    if tree == written:
        return expression
    found = expression_of(tree)
    return expression if found is None else found.alias(expression.meta.output_name())


def _walk(tree: Any) -> Any:
    if isinstance(tree, list):
        return [_walk(part) for part in tree]
    if not isinstance(tree, dict):
        return tree
    walked = {
        name: part if name in ("Literal", "evaluation", "function") else _walk(part) for name, part in tree.items()
    }
    if "BinaryExpr" in walked and walked["BinaryExpr"]["op"] in _DIVISIONS:
        body = walked["BinaryExpr"]
        return {"BinaryExpr": {**body, "left": _laid_out(body["left"]), "right": _laid_out(body["right"])}}
    if "Function" in walked and function_name(walked["Function"]["function"])[0] in _FUNCTIONS:
        body = walked["Function"]
        return {"Function": {**body, "input": [_laid_out(part) for part in body["input"]]}}
    return walked


def _laid_out(tree: Any) -> Any:
    """A value row by row, whatever it was calculated from; columns are, and constants never are."""
    if kind_of(tree)[0] in ("Column", "Field") or is_constant(tree):
        return tree
    struct = {"Function": {"input": [{"Alias": [tree, "value"]}, {"Column": MASK}], "function": "AsStruct"}}
    return {"Function": {"input": [struct], "function": {"StructExpr": {"FieldByName": "value"}}}}
