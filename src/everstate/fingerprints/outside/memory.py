"""Where a function counts on from call to call: in a global, a closure, or an object outside of it.

Such a value is kept by the process that happens to run the function. It begins again in every worker and at every
start, so results would depend on shards and on how the input was cut.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from everstate.fingerprints.code.slots import MISSING
from everstate.fingerprints.code.sources import once

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everstate.fingerprints.code.sources import FunctionNode
    from everstate.fingerprints.outside.meanings import Meanings

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def kept(node: FunctionNode, meanings: Meanings) -> Iterator[tuple[int, str]]:
    """The lines in which something outside the function is counted on, and its name."""
    for line, name, is_rebound in _counting(node):
        if is_rebound or meanings.named(name) is not MISSING:
            yield line, name


@once
def _counting(node: FunctionNode) -> list[tuple[int, str, bool]]:
    """The lines in which something that has a name is counted on, and whether that is rebound or a part of it is."""
    return list(_counted(node))


def _counted(node: FunctionNode) -> Iterator[tuple[int, str, bool]]:
    outer = _rebound(node)
    for part in ast.walk(node):
        if isinstance(part, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            again = outer if isinstance(part, ast.AugAssign) else outer & _read(part.value)
            # What is only filled once, such as a table that is made when it is first needed, is the same everywhere.
            yield from ((part.lineno, name, True) for target in targets for name in _names(target) if name in again)
        if isinstance(part, ast.AugAssign) and not isinstance(part.target, ast.Name):
            root = _root(part.target)
            if root is not None and root not in outer:
                yield part.lineno, root, False


def _rebound(node: FunctionNode) -> set[str]:
    """Globals that the function or one inside of it rebinds, and variables of functions around it that it does."""
    found = {name for part in ast.walk(node) if isinstance(part, ast.Global) for name in part.names}
    return found | {name for part in _own(node) if isinstance(part, ast.Nonlocal) for name in part.names}


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a function without those of functions inside of it, whose `nonlocal` may name its own variables."""
    for part in ast.iter_child_nodes(node):
        if not isinstance(part, _FUNCTIONS):
            yield part
            yield from _own(part)


def _names(target: ast.expr) -> Iterator[str]:
    """The names that an assignment binds; subscripts and attributes bind none."""
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for part in target.elts:
            yield from _names(part)
    elif isinstance(target, ast.Starred):
        yield from _names(target.value)


def _read(value: ast.expr | None) -> set[str]:
    """The names that an expression reads."""
    return {part.id for part in ast.walk(value) if isinstance(part, ast.Name)} if value is not None else set()


def _root(target: ast.expr) -> str | None:
    """The name at which a chain of attributes and subscripts begins."""
    while isinstance(target, (ast.Attribute, ast.Subscript)):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None
