"""Whether an output is still the one that built its state: a digest of what its nodes say.

The digest covers operations and their parameters, expressions, schemas, source topics and the code of user functions
with their defaults and closures. Names of local variables and line numbers do not enter it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from datetime import date, timedelta
from decimal import Decimal
from types import CellType, CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import polars as pl

from everstate.topology.aggregates import Leaf
from everstate.topology.functions import Function
from everstate.topology.keys import KeySpec
from everstate.topology.nodes import Keying, Node
from everstate.topology.schema import Schema

if TYPE_CHECKING:
    from everstate.topology.unit import Unit

#: Parts of a node that say where it was written or what feeds it, not what it does.
_ASIDE = frozenset({"inputs", "location"})


def fingerprint(unit: Unit) -> str:
    """The digest of an output."""
    edges = [(edge.source, edge.target, edge.port) for edge in unit.edges]
    plain = {"edges": edges, "nodes": [_node(node) for node in unit.nodes]}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _node(node: Node) -> dict[str, Any]:
    parts = {part.name: _plain(getattr(node, part.name)) for part in fields(node) if part.name not in _ASIDE}
    return {"operation": node.operation, **parts}


def _plain(value: Any) -> Any:
    match value:
        case pl.Expr():
            return _expression(value)
        case Function():
            return _function(value.call)
        case Schema():
            return value.to_json()
        case KeySpec():
            return [list(value.names), [str(dtype) for dtype in value.dtypes]]
        case Keying() | Leaf():
            return {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
        case tuple() | list():
            return [_plain(part) for part in value]
    return value


def _expression(expression: pl.Expr) -> str:
    try:
        return expression.meta.serialize(format="json")
    except pl.exceptions.PolarsError:
        return str(expression)


def _function(call: Any, seen: frozenset[int] = frozenset()) -> Any:
    """A function by its code, defaults and what it closes over; other callables by their class and attributes."""
    code = getattr(call, "__code__", None)
    if code is None:
        return _value(call, seen)
    if id(call) in seen:
        return "itself"
    seen |= {id(call)}
    cells = [cell.cell_contents for cell in (call.__closure__ or ()) if _filled(cell)]
    return {
        "code": _code(code),
        "defaults": [_value(call.__defaults__, seen), _value(call.__kwdefaults__, seen)],
        "closure": [_value(content, seen) for content in cells],
    }


def _filled(cell: CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _value(value: Any, seen: frozenset[int]) -> Any:
    """A value by its content; never by its address, which differs in every process."""
    if value is None or isinstance(value, (str, bytes, int, float, complex, Decimal, date, timedelta)):
        return repr(value)
    if id(value) in seen:
        return "itself"
    inner = seen | {id(value)}
    if isinstance(value, FunctionType):
        return _function(value, seen)
    if isinstance(value, dict):
        return ["dict", *([_value(key, inner), _value(part, inner)] for key, part in value.items())]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *(_value(part, inner) for part in value)]
    if isinstance(value, (set, frozenset)):
        return ["set", *sorted(json.dumps(_value(part, inner)) for part in value)]
    if isinstance(value, pl.Expr):
        return _expression(value)
    named = value if hasattr(value, "__qualname__") else type(value)
    attributes = {} if named is value else getattr(value, "__dict__", {})
    return [getattr(named, "__module__", ""), named.__qualname__, _value(dict(attributes), inner)]


def _code(code: CodeType) -> list[Any]:
    constants = [_code(part) if isinstance(part, CodeType) else _value(part, frozenset()) for part in code.co_consts]
    return [code.co_code.hex(), constants, list(code.co_names)]
