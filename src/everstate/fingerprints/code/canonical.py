"""Functions in the one form that all ways to write them have in common, where it can be proven that they do the same.

A helper that was extracted, a constant that got a name, a variable for a part of an expression, arguments in another
order: none of them is a change. What is not proven stays as it is written, and then counts as a change.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Final

from everstate.fingerprints.code.blocks import settled
from everstate.fingerprints.code.evaluation import Usage
from everstate.fingerprints.code.holes import UNKNOWN, Hole, is_single
from everstate.fingerprints.code.inlining import Form, Inlining, is_call
from everstate.fingerprints.code.slots import Surroundings
from everstate.fingerprints.code.templates import Open, Template
from everstate.fingerprints.tree import Tree, atom

if TYPE_CHECKING:
    from collections.abc import Callable

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
        self._known: dict[int, Form] = {}
        self._kept: list[FunctionType] = []
        self._open: list[int] = []
        self._circular: set[int] = set()

    def form(self, call: FunctionType, template: Template) -> Form:
        """A function in its one form, with holes."""
        if id(call) not in self._known:
            self._kept.append(call)
            self._known[id(call)] = self._made(call, template)
        return self._known[id(call)]

    def _made(self, call: FunctionType, template: Template) -> Form:
        around = Surroundings(call)
        included = [(call, template, around)]
        opening = _Opening([Hole(slot, around) for slot in template.slots], plain=self.plain or template.looks)
        tree = opening.tree(template.tree)
        self.looks |= template.looks or opening.asks
        if self.plain or self.looks:
            return Form(tree, included=included)
        inlining = Inlining(self._helper)
        if opening.calls:
            self._open.append(id(call))
            try:
                tree = inlining.applied(tree)
            finally:
                self._open.pop()
        if len(tree[4]) != 1 or tree[4][0][0] != "Return":  # one expression has one form already
            tree = settled(tree, Usage.of(tree))
        merges = _merges(call, template) and id(call) not in self._circular
        return Form(tree, merges, included + inlining.included)

    def _helper(self, call: FunctionType) -> Form | None:
        if id(call) in self._open:
            # Those between the two calls lead back to themselves.
            self._circular.update(self._open[self._open.index(id(call)) :])
            return None
        template = self._template_of(call) if id(call) not in self._known else None
        if template is not None:
            return self.form(call, template)
        return self._known.get(id(call))


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


@dataclass(eq=False)
class _Opening:
    """A template with its holes, in which constants are what they are.

    Attributes:
        holes: By the number of their slot.
        plain: Constants stay names.
        asks: `is` is asked of what may be a constant, which may or may not be the same object as an equal one.
        calls: A function that is written in Python is called by its name.
    """

    holes: list[Hole]
    plain: bool
    asks: bool = False
    calls: bool = False

    def tree(self, part: Tree) -> Tree:
        if type(part) is Open:
            hole = self.holes[part.number]
            return hole if self.plain or hole.constant is None else hole.constant
        if type(part) is not list:
            return part
        part = [self.tree(inner) for inner in part]
        if not self.plain and part:
            if part[0] == "Compare":
                self.asks |= _asks_identity(part)
            elif part[0] == "call" and is_call(part):
                self.calls |= isinstance(part[1], Hole) and isinstance(part[1].thing, FunctionType)
                return _as_dict(part)
        return part


def _asks_identity(compare: Tree) -> bool:
    if not any(op in (["Is"], ["IsNot"]) for op in compare[2][1]):
        return False
    sides = [compare[1][1], *compare[3][1]]
    return len(sides) > 2 or not any(map(_is_unique, sides))


def _is_unique(side: Tree) -> bool:
    """Whether there is only one of it, or it is no constant."""
    if not isinstance(side, Hole):
        return is_single(side)
    if side.constant is not None or side.attribute is not None or side.thing is UNKNOWN:
        return side.constant is not None and is_single(side.constant)
    return atom(side.thing) is None and (not side.rest or isinstance(side.thing, type))


def _as_dict(call: Tree) -> Tree:
    """`dict(a=1)` as `{"a": 1}`."""
    _, called, values, named = call
    builtin = isinstance(called, Hole) and called.is_steady and called.thing is dict
    if not builtin or values or not named or any(name is None for name, _ in named):
        return call
    keys = [atom(name, written=True) for name, _ in named]
    return ["Dict", ["keys", keys], ["values", [value for _, value in named]]]
