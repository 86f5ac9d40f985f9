"""Whether an output is still the one that built its state: a digest of what its nodes say.

The digest covers operations and their parameters, expressions, schemas, source topics and the code of user functions
with their defaults and closures. Names of local variables and line numbers do not enter it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from types import CodeType
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
    return hashlib.sha256(json.dumps(plain, sort_keys=True, default=repr).encode()).hexdigest()


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


def _function(call: Any) -> Any:
    code = getattr(call, "__code__", None)
    if code is None:
        return repr(type(call))
    closure = [repr(cell.cell_contents) for cell in (call.__closure__ or ())]
    return {
        "code": _code(code),
        "defaults": repr(call.__defaults__),
        "keywords": repr(call.__kwdefaults__),
        "closure": closure,
    }


def _code(code: CodeType) -> list[Any]:
    constants = [_code(part) if isinstance(part, CodeType) else repr(part) for part in code.co_consts]
    return [code.co_code.hex(), constants, list(code.co_names)]
