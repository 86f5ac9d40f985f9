"""Functions in the one form that all ways to write them have in common, where it can be proven that they do the same.

A helper that was extracted, a constant that got a name, a variable for a part of an expression, arguments in another
order: none of them is a change. What is not proven stays as it is written, and then counts as a change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from everstate.topology.fingerprints.blocks import settled
from everstate.topology.fingerprints.evaluation import Usage
from everstate.topology.fingerprints.holes import UNKNOWN, Hole, is_single
from everstate.topology.fingerprints.inlining import LARGE, Form, Inlining, is_call, size
from everstate.topology.fingerprints.slots import Surroundings
from everstate.topology.fingerprints.templates import Open, Template
from everstate.topology.fingerprints.tree import Tree, atom

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FunctionType

_REST: Final = 0x04 | 0x08  # flags of code: it takes *arguments or **arguments
_LATER: Final = 0x20 | 0x80 | 0x200  # flags of code: a generator, a coroutine, an asynchronous generator


class Forms:
    """The forms of the functions that a part reaches.

    Attributes:
        looks: Something that was met may see how functions are written: as they are called, or what lives how long.
        plain: Functions are taken as they are written.
    """

    def __init__(self, template_of: Callable[[FunctionType], Template | None], *, plain: bool = False) -> None:
        self.looks = False
        self.plain = plain
        self._template_of = template_of
        self._known: dict[int, Form | None] = {}
        self._kept: list[FunctionType] = []
        self._open: list[int] = []
        self._circular: set[int] = set()

    def form(self, call: FunctionType, template: Template) -> Form:
        """A function in its one form, with holes."""
        around = Surroundings(call)
        holes = [Hole(slot, around) for slot in template.slots]
        tree = _opened(template.tree, holes)
        self.looks |= template.looks or _compares_identity(tree)
        if self.plain or self.looks:
            return Form(tree, included=[call])
        tree = _with_constants(tree)
        inlining = Inlining(self._helper)
        self._open.append(id(call))
        try:
            tree = inlining.applied(tree)
        finally:
            self._open.pop()
        tree = settled(tree, Usage.of(tree))
        merges = id(call) not in self._circular and _merges(call, template) and size(tree) < LARGE
        return Form(tree, merges, [call, *inlining.included])

    def _helper(self, call: FunctionType) -> Form | None:
        if id(call) in self._open:
            # Those between the two calls lead back to themselves.
            self._circular.update(self._open[self._open.index(id(call)) :])
            return None
        if id(call) not in self._known:
            self._kept.append(call)
            template = self._template_of(call)
            self._known[id(call)] = None if template is None else self.form(call, template)
        return self._known[id(call)]


def _merges(call: FunctionType, template: Template) -> bool:
    """Whether a function does nothing but what its body says, wherever that is written."""
    flags = call.__code__.co_flags
    return not (
        flags & (_REST | _LATER)
        or vars(call)
        or template.rebinds
        or template.private
        or template.tree[3]  # something acts on its annotations
        or "__class__" in call.__code__.co_freevars
    )


def _opened(tree: Tree, holes: list[Hole]) -> Tree:
    if isinstance(tree, Open):
        return holes[tree.number]
    return [_opened(part, holes) for part in tree] if isinstance(tree, list) else tree


def _compares_identity(tree: Tree) -> bool:
    """Whether `is` may be asked of a constant, which may or may not be the same object as an equal one."""
    if not isinstance(tree, list):
        return False
    if tree[:1] == ["Compare"] and any(op in (["Is"], ["IsNot"]) for op in tree[2][1]):
        sides = [tree[1][1], *tree[3][1]]
        if len(sides) > 2 or not any(map(_is_unique, sides)):
            return True
    return any(map(_compares_identity, tree))


def _is_unique(side: Tree) -> bool:
    """Whether there is only one of it, or it is no constant."""
    if not isinstance(side, Hole):
        return is_single(side)
    if side.constant is not None or side.attribute is not None or side.thing is UNKNOWN:
        return side.constant is not None and is_single(side.constant)
    return atom(side.thing) is None and (not side.rest or isinstance(side.thing, type))


def _with_constants(tree: Tree) -> Tree:
    """Names of constants as the constants; `dict(a=1)` as `{"a": 1}`."""
    if isinstance(tree, Hole):
        return tree if tree.constant is None else tree.constant
    if not isinstance(tree, list):
        return tree
    tree = [_with_constants(part) for part in tree]
    if is_call(tree) and isinstance(tree[1], Hole) and tree[1].is_steady and tree[1].thing is dict:
        _, _, values, named = tree
        if named and not values and all(name is not None for name, _ in named):
            keys = [atom(name, written=True) for name, _ in named]
            return ["Dict", ["keys", keys], ["values", [value for _, value in named]]]
    return tree
