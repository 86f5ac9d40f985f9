"""The last step from a function's form to its tree: variables and slots by number, calls by parameter."""

from __future__ import annotations

import builtins
from dataclasses import dataclass, field
from functools import cached_property
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from everstate.fingerprints.code.blocks import NOTHING, without_last
from everstate.fingerprints.code.evaluation import Usage, is_function
from everstate.fingerprints.code.holes import Hole
from everstate.fingerprints.code.inlining import bound_arguments, is_call
from everstate.fingerprints.code.templates import Local, is_constant
from everstate.fingerprints.outside import origins
from everstate.fingerprints.tree import Atom

if TYPE_CHECKING:
    from everstate.fingerprints.tree import Tree

_NAMED_REST: Final = 0x08  # a flag of code: it takes **arguments
#: Functions in C that take arguments by name and do not see their order.
_ORDERLESS: Final = frozenset(
    getattr(builtins, name)
    for name in ("sorted", "max", "min", "sum", "round", "int", "str", "bytes", "enumerate", "zip", "pow", "complex")
)


@dataclass(eq=False)
class Assembly:
    """A function's tree as it is put together.

    Attributes:
        form: The function, with holes.
        plain: It is taken as it is written.
        holes: What its slots are, by number.
        keywords: Names by which it passes arguments to what is not known.
        spreads: It passes `**arguments`.
        takes: It takes plain values that are attributes of classes.
    """

    form: Tree
    plain: bool
    holes: list[Hole] = field(default_factory=list)
    keywords: set[str] = field(default_factory=set)
    spreads: bool = False
    takes: bool = False
    _places: dict[tuple[Any, ...], int] = field(default_factory=dict)
    _locals: dict[Local, int] = field(default_factory=dict)

    @cached_property
    def usage(self) -> Usage:
        """How its variables are used."""
        return Usage.of(self.form)

    def tree(self, part: Tree) -> Tree:
        """The tree of a part, in the order of the code."""
        if isinstance(part, Local):
            number = self._locals.setdefault(part, len(self._locals))
            return ["local", number, part.name] if part.name else ["local", number]
        if isinstance(part, Hole):
            return self._hole(part)
        if not isinstance(part, list):
            return part
        if len(part) == 2 and part[0] in ("to", "del") and isinstance(part[1], Local):
            return self.tree(part[1])
        if is_call(part):
            return self._call(part)
        if not self.plain and is_function(part):
            return [self.tree(inner) for inner in [*part[:4], without_last(part[4], NOTHING)]]
        found = [self.tree(inner) for inner in part]
        return found if self.plain else _folded(found)

    def _hole(self, hole: Hole) -> Tree:
        if not self.plain and hole.attribute is not None:
            self.takes = True
            return hole.attribute
        if hole.key not in self._places:
            self._places[hole.key] = len(self.holes)
            self.holes.append(hole)
        return ["slot", self._places[hole.key]]

    def _call(self, part: Tree) -> Tree:
        _, called, values, named = part
        if not self.plain and isinstance(called, Hole) and called.is_steady:
            numbered = _numbered(called.thing, part)
            if numbered is not None:
                return ["bound", self.tree(called), [[number, self.tree(v)] for number, v in self._sorted(numbered)]]
            if named and all(name is not None for name, _ in named) and _is_orderless(called.thing):
                named = self._sorted(named)
        for name, _ in named:
            self.spreads |= name is None
            self.keywords |= set() if name is None else {name}
        given = [[name, self.tree(value)] for name, value in named]
        return ["call", self.tree(called), [self.tree(value) for value in values], given]

    def _sorted(self, given: list[Any]) -> list[Any]:
        """Arguments whose evaluation can be noticed in their order, then the others by parameter."""
        if len(given) == 1:
            return given
        inert = [pair for pair in given if self.usage.is_inert(pair[1])]
        return [pair for pair in given if pair not in inert] + sorted(inert, key=lambda pair: pair[0])


def _folded(tree: Tree) -> Tree:
    """A tuple of constants and a negative number as the constants that they are, wherever their parts came from."""
    if tree[:1] == ["Tuple"] and len(tree) == 2 and tree[1][1] and all(map(is_constant, tree[1][1])):
        return ["tuple", tree[1][1]]
    if tree[:2] == ["UnaryOp", ["op", ["USub"]]] and isinstance(tree[2][1], Atom):
        leaf = tree[2][1]
        if leaf.kind == "int":
            return Atom("int", hex(-int(leaf.text, 16)), leaf.written)
        if leaf.kind == "float":
            return Atom("float", (-float.fromhex(leaf.text)).hex(), leaf.written)
    return tree


def _numbered(called: Any, call: Tree) -> list[tuple[int, Tree]] | None:
    """The arguments of a call of the user's function or class by the number of their parameter."""
    if isinstance(called, FunctionType):
        return bound_arguments(called, call) if origins.of_globals(called.__globals__).kind == "user" else None
    if not isinstance(called, type) or type(called).__call__ is not type.__call__:
        return None
    start: Any = getattr(called, "__init__", None)
    if getattr(called, "__new__", None) is not object.__new__ or not isinstance(start, FunctionType):
        return None
    found = bound_arguments(start, [call[0], call[1], [None, *call[2]], call[3]])
    return None if found is None else found[1:]


def _is_orderless(called: Any) -> bool:
    """Whether a function cannot see in which order it is given arguments by name."""
    if isinstance(called, FunctionType):
        return not called.__code__.co_flags & _NAMED_REST
    try:
        return called in _ORDERLESS
    except TypeError:  # it has no hash
        return False
