"""A function's syntax with the values of constants where their names are read.

What a call does may depend on whether an argument is a literal: `getattr(x, "a")` takes one attribute, and
`getattr(x, name)` any. A name that always stands for one plain value is as good as the literal, so those who judge by
literals are shown the value, wherever it is written.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from everstate.fingerprints.code.holes import Hole
from everstate.fingerprints.code.scopes import COMPREHENSIONS, FUNCTIONS, imported_names
from everstate.fingerprints.code.sources import imports_of, once, syntax_of
from everstate.fingerprints.code.templates import Slot
from everstate.fingerprints.outside import origins

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from everstate.fingerprints.code.slots import Surroundings
    from everstate.fingerprints.code.sources import FunctionNode

#: A name, or a chain of attributes that begins with one.
Chain: TypeAlias = tuple[str, ...]
_PLAIN: Final = (str, int, float, bool, bytes, complex, type(None), tuple)
_SCOPES: Final = (*FUNCTIONS, *COMPREHENSIONS, ast.ClassDef)


@dataclass(frozen=True, eq=False)
class _Names:
    """The names of a function.

    Attributes:
        outside: Names that it reads and does not bind, with the attributes that are taken of them.
        inside: Assignments of literals to variables that nothing else binds.
    """

    outside: tuple[Chain, ...]
    inside: dict[str, ast.Assign | ast.AnnAssign]


_spelled: dict[tuple[int, tuple[Any, ...]], FunctionNode] = {}


def spelled(around: Surroundings) -> FunctionNode | None:
    """The syntax of a function with its constants as literals; None if there is no source of it."""
    node = syntax_of(around.call.__code__, around.globals)
    if node is None:
        return None
    names = _names_of(node)
    known = {chain: value for chain in names.outside for value in _constant(around, chain)}
    if not known and not names.inside:
        return node
    place = (id(node), tuple((chain, _key(value)) for chain, value in known.items()))
    if place not in _spelled:
        _spelled[place] = _Writing(known, names.inside).written(node)
    return _spelled[place]


def _constant(around: Surroundings, chain: Chain) -> Iterator[Any]:
    """The value that a name outside a function always stands for, if it is a plain one of the user's."""
    thing = around.named(chain[0])
    if chain[0].startswith("__") or not isinstance(thing, _PLAIN if len(chain) == 1 else ModuleType):
        return
    # What is taken from modules of others, such as `from sys import argv`, is judged by its name.
    module, _ = imports_of(around.file).get(chain[0], ("", ""))
    if module and len(chain) == 1 and not _is_users(sys.modules.get(module)):
        return
    for name in chain[1:]:
        if not _is_users(thing):
            return
        thing = vars(thing).get(name)
    if isinstance(thing, _PLAIN):
        hole = Hole(Slot(chain[0], chain[1:], 0), around)
        if hole.constant is not None:
            yield hole.thing


def _is_users(module: Any) -> bool:
    return isinstance(module, ModuleType) and origins.of_loaded(module).kind == "user"


def _key(value: Any) -> tuple[Any, ...]:
    """Different for values that are equal and yet not the same, such as 1 and True."""
    return (type(value), tuple(map(_key, value)) if type(value) is tuple else value)


@once
def _names_of(node: FunctionNode) -> _Names:
    bound = Counter(name for part in ast.walk(node) for name in _bound_by(part))
    chains: dict[Chain, None] = {}
    inside: dict[str, ast.Assign | ast.AnnAssign] = {}
    for part in ast.walk(node):
        chain = _chain(part)
        if chain is not None and chain[0] not in bound:
            chains[chain] = None
        if isinstance(part, FUNCTIONS) and not isinstance(part, ast.Lambda):
            inside.update((name, given) for name, given in _assigned(part) if bound[name] == 1)
    return _Names(tuple(chains), inside)


def _bound_by(node: ast.AST) -> Iterator[str]:
    """The names that a part of a function binds, deletes or declares."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names * 2  # it is bound elsewhere as well
        case ast.Import() | ast.ImportFrom():
            yield from (name for name, _ in imported_names(node))
        case ast.MatchMapping(rest=str(name)):
            yield name
        case (
            ast.FunctionDef(name=name)
            | ast.AsyncFunctionDef(name=name)
            | ast.ClassDef(name=name)
            | ast.ExceptHandler(name=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
        ):
            yield name


def _chain(node: ast.AST) -> Chain | None:
    """The name that is read here, with the attributes that are taken of it; None if it begins with something else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
        return None
    return (node.id, *reversed(names))


def _assigned(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, ast.Assign | ast.AnnAssign]]:
    """The variables of a function itself to which a statement assigns a literal."""
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        part = waiting.pop()
        match part:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_literal(value):
                yield name, part
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if _is_literal(value):
                yield name, part
        if not isinstance(part, _SCOPES):
            waiting.extend(ast.iter_child_nodes(part))


def _is_literal(node: ast.expr | None) -> bool:
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() | complex())):
            return True
        case ast.Tuple(elts=parts):
            return all(map(_is_literal, parts))
    return False


def _literal(value: Any) -> ast.expr:
    """A value as it would be written."""
    if type(value) is tuple:
        return ast.Tuple([_literal(part) for part in value], ast.Load())
    if type(value) in (int, float) and value < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)


@dataclass(frozen=True, eq=False)
class _Writing:
    """Writes constants where they are read.

    Attributes:
        outside: Values of names outside the function.
        inside: Assignments of literals inside of it.
    """

    outside: Mapping[Chain, Any]
    inside: Mapping[str, ast.Assign | ast.AnnAssign]

    def written(self, node: FunctionNode) -> FunctionNode:
        return self._copied(node, frozenset())  # type: ignore[no-any-return]  # it is of the same type

    def _part(self, node: Any, seen: frozenset[str]) -> Any:
        """A part of the function, the very same if there is nothing to write in it."""
        if isinstance(node, list):
            parts = [self._part(part, seen) for part in node]
            return parts if any(new is not old for new, old in zip(parts, node, strict=True)) else node
        if not isinstance(node, ast.AST):
            return node
        if any(node is done for done in self.inside.values()):
            return ast.copy_location(ast.Pass(), node)
        value = self._value(node, seen)
        return self._copied(node, seen) if value is None else _placed(value, node)

    def _value(self, node: ast.AST, seen: frozenset[str]) -> ast.expr | None:
        chain = _chain(node)
        if chain is None:
            return None
        if chain in self.outside:
            return _literal(self.outside[chain])
        return self.inside[chain[0]].value if len(chain) == 1 and chain[0] in seen else None

    def _copied(self, node: ast.AST, seen: frozenset[str]) -> Any:
        own = seen
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and self.inside:
            own = seen | {name for name, given in _assigned(node) if self.inside.get(name) is given}
        # Decorators and defaults are evaluated outside of the function.
        fields = {name: self._part(part, own if name == "body" else seen) for name, part in ast.iter_fields(node)}
        if all(part is getattr(node, name) for name, part in fields.items()):
            return node
        return ast.copy_location(type(node)(**fields), node)


def _placed(value: Any, place: ast.AST) -> Any:
    """A copy of a literal, with all of its parts, in a place."""
    fields = {
        name: [_placed(inner, place) for inner in part] if isinstance(part, list) else part
        for name, part in ast.iter_fields(value)
    }
    if "operand" in fields:
        fields["operand"] = _placed(fields["operand"], place)
    return ast.copy_location(type(value)(**fields), place)
