"""Where a text shows the address of an object: what `repr` says of objects whose class does not say otherwise."""

from __future__ import annotations

import ast
import types
from typing import TYPE_CHECKING, Any, Final

from everstate.fingerprints.code.slots import MISSING
from everstate.fingerprints.code.sources import once
from everstate.fingerprints.outside import origins

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.fingerprints.code.sources import FunctionNode
    from everstate.fingerprints.outside.meanings import Meanings

_SHOWING: Final = frozenset({"str", "repr", "ascii", "format", "pformat", "saferepr"})
_REPR: Final = ord("r")
_CALLABLES: Final = (
    types.FunctionType,
    types.MethodType,
    types.ModuleType,
    types.GeneratorType,
    types.MethodWrapperType,
)


def addresses(node: FunctionNode, meanings: Meanings) -> Iterator[tuple[int, str]]:
    """The lines in which an address is made a text, and of what."""
    for given, plain in _all_shown(node):
        for source in meanings.sources(given):
            what = _addressed(source, meanings, plain=plain)
            if what:
                yield given.lineno, what


@once
def _all_shown(node: FunctionNode) -> list[tuple[ast.expr, bool]]:
    return [shown for part in ast.walk(node) for shown in _shown(part)]


def _shown(node: ast.AST) -> list[tuple[ast.expr, bool]]:
    """What an expression makes a text of, and whether it asks for `str` rather than `repr`."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="format")):
            return [(given, True) for given in (*node.args, *(word.value for word in node.keywords))]
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[first, *_]) if name in _SHOWING:
            return [(first, name in ("str", "format"))]
        case ast.FormattedValue(value=value, conversion=conversion):
            return [(value, conversion != _REPR)]
        case ast.BinOp(op=ast.Mod(), left=ast.Constant(value=str()), right=right):
            return [(given, True) for given in (right.elts if isinstance(right, ast.Tuple) else [right])]
    return []


def _addressed(node: ast.expr, meanings: Meanings, *, plain: bool) -> str:
    """What it is whose address would show; empty if none would."""
    if isinstance(node, ast.Lambda):
        return "the text of a function"
    if isinstance(node, ast.Call):
        made = meanings.called(node)
        return _of_kind(made, plain=plain) if isinstance(made, type) else ""
    value: Any = meanings.value(node)
    if value is MISSING or isinstance(value, type):
        return ""
    if isinstance(value, _CALLABLES):
        return "the text of a function"
    return _of_kind(type(value), plain=plain)


def _of_kind(kind: type, *, plain: bool) -> str:
    if kind is not object and origins.of_object(kind).kind != "user":
        return ""
    names = ("__repr__", "__str__", "__format__") if plain else ("__repr__",)
    silent = all(getattr(kind, name) is getattr(object, name) for name in names)
    return f"the text of a {kind.__name__}" if silent else ""
