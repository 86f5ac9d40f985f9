"""Numbers that are written as calculations of literals: `24 * 60 * 60` is 86400, as it is to Python's compiler."""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_OPERATIONS: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
#: Larger numbers are left as they are written: a power may be larger than memory.
_LARGEST: Final = 2.0**63


def number(node: ast.AST) -> int | float | complex | None:
    """What an expression of nothing but numbers is; None if it is not one.

    Example:
        >>> import ast
        >>> number(ast.parse("24 * 60 * 60", mode="eval").body)
        86400
    """
    match node:
        case ast.Constant(value=int() | float() | complex() as value) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = number(operand)
            return None if inner is None else -inner
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            return _calculated(number(left), _OPERATIONS[type(op)], number(right))
    return None


def _calculated(left: Any, operation: Callable[[Any, Any], Any], right: Any) -> int | float | complex | None:
    if left is None or right is None:
        return None
    try:
        if operation is operator.pow and (abs(left) > 1024 or abs(right) > 6):
            return None
        result: int | float | complex = operation(left, right)
        return result if abs(result) <= _LARGEST else None
    except ArithmeticError:
        return None
