"""Where a function counts on from call to call: in a global, a closure, or an object outside of it.

Such a value is kept by the process that happens to run the function. It begins again in every worker and at every
start, so results would depend on shards and on how the input was cut.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from everstate.fingerprints.code.slots import MISSING
from everstate.fingerprints.code.sources import once
from everstate.fingerprints.outside.remembering import Remembering

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from everstate.fingerprints.code.sources import FunctionNode
    from everstate.fingerprints.outside.meanings import Meanings

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


#: What makes objects, or is asked for while they are made.
_MAKING: Final = frozenset(
    {"__init__", "__new__", "__post_init__", "__attrs_post_init__", "__attrs_pre_init__", "model_post_init"}
    | {"__setstate__", "__init_subclass__", "__set_name__", "__class_getitem__", "__prepare__", "__del__"}
)


@dataclass(eq=False)
class Memory:
    """The objects that outlive the calls of functions, and which methods are called while rows are processed.

    Attributes:
        objects: Objects of the user's classes that are reached as values, by the class that a method may be of.
        called: Methods that are reached as values.
    """

    objects: dict[tuple[str, str], list[object]] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)

    def keep(self, thing: object) -> None:
        """An object is reached as a value."""
        for base in type(thing).__mro__[:-1]:
            self.objects.setdefault((base.__module__, base.__qualname__), []).append(thing)

    def running(self, seen: Iterable[tuple[FunctionNode, Meanings]]) -> frozenset[str]:
        """The names of methods that may be called for a row, and not only while an object is made."""
        taken: dict[str, set[str]] = {}
        for node, meanings in seen:
            by = meanings.around.call.__name__
            for use in meanings.usage.uses:
                # What stands above a function, as its decorators, is called once.
                for name in use.attributes if use.line >= node.lineno else ():
                    taken.setdefault(name, set()).add(by)
        making, before = set(_MAKING), -1
        while before != len(making):
            before = len(making)
            making |= {name for name, users in taken.items() if users <= making | {name}}
        return frozenset((self.called | taken.keys()) - making)

    def kept(self, node: FunctionNode, meanings: Meanings, running: frozenset[str]) -> Iterator[tuple[int, str]]:
        """The lines in which something that outlives a call is changed, and its name."""
        for line, name, is_rebound in _counting(node):
            if is_rebound or meanings.named(name) is not MISSING:
                yield line, name
        call = meanings.around.call
        owner, _, name = call.__qualname__.rpartition(".")
        is_method = bool(owner) and not owner.endswith("<locals>")
        if is_method and (name in _MAKING or (name not in running and not name.startswith("__"))):
            return
        owners: tuple[object, ...] = tuple(self.objects.get((call.__module__, owner), ()))
        kind = meanings.around.globals.get(owner)
        if isinstance(kind, type) and isinstance(vars(kind).get(name), classmethod):
            owners = (kind,)
        yield from Remembering(node, meanings, frozenset(_rebound(node)), owners).found()


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
