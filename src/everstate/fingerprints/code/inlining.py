"""Helpers written where they are called.

A call of a function evaluates the arguments, binds them, and runs the body. The same is written in its place: directly,
where each argument is then evaluated as often and in the same order, else as assignments before the statement.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from everstate.fingerprints.code.blocks import NOTHING, put
from everstate.fingerprints.code.evaluation import (
    Usage,
    blocks,
    bound_in,
    free_in,
    head,
    is_bound_before_use,
    is_function,
    reads,
    steps,
)
from everstate.fingerprints.code.holes import Hole, constant
from everstate.fingerprints.code.templates import Local, is_constant
from everstate.fingerprints.outside import origins

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from everstate.fingerprints.code.slots import Surroundings
    from everstate.fingerprints.code.templates import Template
    from everstate.fingerprints.tree import Tree

#: Parts of a tree from which on a helper stays a function: what is written twice is compared twice.
_LARGE: Final = 300


@dataclass(eq=False)
class Form:
    """A function in its one form.

    Attributes:
        tree: It, with holes.
        merges: It does nothing but what its body says, wherever that is written.
        included: The functions whose bodies are in it, itself first, with their templates and surroundings.
    """

    tree: Tree
    merges: bool = False
    included: list[tuple[FunctionType, Template, Surroundings]] = field(default_factory=list)

    @cached_property
    def is_written_where_called(self) -> bool:
        """Whether it can be written where it is called, and is not too large for that."""
        return self.merges and _size(self.tree) < _LARGE


@dataclass(eq=False)
class Inlining:
    """The calls of one function.

    Attributes:
        form_of: The form of a function that is called; None if that is not known, or leads back here.
        included: The functions whose bodies were written here, with their templates and surroundings.
    """

    form_of: Callable[[FunctionType], Form | None]
    included: list[tuple[FunctionType, Template, Surroundings]] = field(default_factory=list)

    def applied(self, function: Tree) -> Tree:
        """A function with its helpers written in it."""
        if not self._calls_any(function):
            return function
        self._usage = Usage.of(function)
        kind, parameters, defaults, hints, body = function
        body = self._expressions(body)
        self._usage = Usage.of([kind, parameters, defaults, hints, body])
        return [kind, parameters, defaults, hints, self._block(body)]

    def _calls_any(self, tree: Tree) -> bool:
        waiting = [tree]
        while waiting:
            part = waiting.pop()
            if is_call(part) and self._form(part) is not None:
                return True
            waiting += [inner for inner in part if type(inner) is list]
        return False

    def _expressions(self, tree: Tree) -> Tree:
        """Calls of functions that are one expression, the innermost first."""
        if not isinstance(tree, list) or tree[:1] == ["class"]:
            return tree
        tree = [self._expressions(part) for part in tree]
        found = self._called(tree)
        if found is None or len(found[0][4]) != 1 or found[0][4][0][0] != "Return":
            return tree
        function, arguments, form = found
        result = self._written(function[4][0][1], arguments)
        if result is None:
            return tree
        self.included += form.included
        return result

    def _form(self, tree: Tree) -> Form | None:
        """The helper that is called, if it can be written here."""
        if not isinstance(tree[1], Hole) or not tree[1].is_steady or not isinstance(tree[1].thing, FunctionType):
            return None
        if origins.of_globals(tree[1].thing.__globals__).kind != "user":
            return None
        form = self.form_of(tree[1].thing)
        return form if form is not None and form.is_written_where_called else None

    def _called(self, tree: Tree) -> tuple[Tree, list[tuple[Local, Tree]], Form] | None:
        """The helper that is called, with variables of its own, and its arguments in the order of evaluation."""
        form = self._form(tree) if is_call(tree) else None
        if form is None:
            return None
        call = tree[1].thing
        given = bound_arguments(call, tree)
        function = renewed(form.tree)
        locals_ = list(bound_in(function[1]))
        if given is None or len(locals_) != parameter_count(call):
            return None
        for number in range(len(locals_)):
            if number not in dict(given):
                value = default_of(call, number)
                if value is None:
                    return None
                given.append((number, value))
        return function, [(locals_[number], value) for number, value in given], form

    def _written(self, result: Tree, arguments: list[tuple[Local, Tree]]) -> Tree | None:
        """A result with the arguments in it; None if they would be evaluated in another order or number."""
        usage, counts = self._usage, reads(result)
        captured = captured_in(result)
        if _binds(result):
            return None
        binds = any(_binds(value) for _, value in arguments)
        quiet = {local for local, value in arguments if usage.is_inert(value) or (usage.is_still(value) and not binds)}
        passed: set[Any] = set()
        for local, value in arguments:
            if local in quiet:
                if local in captured and not is_constant(value) and not isinstance(value, Hole):
                    return None
                passed.add(local)
        for local, _ in arguments:
            if local not in quiet:
                if counts[local] != 1 or not usage.comes_first(result, local, frozenset(passed)):
                    return None
                passed.add(local)
        for local, value in arguments:
            result = put(result, local, value)
        return result

    def _block(self, statements: list[Tree]) -> list[Tree]:
        found: list[Tree] = []
        for statement in statements:
            before = self._hoisted(statement)
            found += before if before is not None else [self._inside(statement)]
        return found

    def _inside(self, statement: Tree) -> Tree:
        if statement[0] == "define" and is_function(statement[3]):
            return [*statement[:3], [*statement[3][:4], self._block(statement[3][4])]]
        for number in range(len(list(blocks(statement)))):
            block = list(blocks(statement))[number]
            statement = put(statement, block, self._block(block))
        return statement

    def _hoisted(self, statement: Tree) -> list[Tree] | None:
        """A statement after the body of the helper that it calls first; None if it calls none."""
        call = self._first_call(head(statement))
        found = None if call is None else self._called(call)
        if call is None or found is None:
            return None
        function, arguments, form = found
        if captured_in(function[4]) or not is_bound_before_use(function, Usage.of(function)):
            return None  # in a loop, a function would see the variable of another round
        binding = [["Assign", [["to", local]], value] for local, value in arguments]
        body = function[4] if function[4] and _ends(function[4]) else [*function[4], NOTHING]
        if statement[0] == "Return" and statement[1] is call:
            after = body
        elif call is head(statement) and statement[0] in ("Expr", "Assign") and _returns_last(body):
            after = _continued(body, statement)
        elif len(body) and body[-1][0] == "Return" and not any(map(_has_return, body[:-1])):
            after = [*body[:-1], *self._block([put(statement, call, body[-1][1])])]
        else:
            return None
        self.included += form.included
        return [*self._block(binding), *after]

    def _first_call(self, tree: Tree) -> Tree | None:
        """The call of a helper before which nothing that can be noticed is evaluated in an expression."""
        return next(
            (call for call in _calls(tree) if self._usage.comes_first(tree, call) and self._called(call) is not None),
            None,
        )


def _calls(tree: Tree) -> Iterator[Tree]:
    """The calls in an expression, the outermost first."""
    if is_call(tree):
        yield tree
    for part in steps(tree):
        yield from _calls(part)


def is_call(tree: Tree) -> bool:
    """Whether a tree is that of a call."""
    return isinstance(tree, list) and len(tree) == 4 and tree[0] == "call" and isinstance(tree[3], list)


def parameter_count(call: FunctionType) -> int:
    """How many parameters a function has, those aside that take the rest."""
    return call.__code__.co_argcount + call.__code__.co_kwonlyargcount


def bound_arguments(call: FunctionType, tree: Tree) -> list[tuple[int, Tree]] | None:
    """The arguments of a call in the order of evaluation, each with the number of its parameter; None if unclear."""
    code = call.__code__
    names = code.co_varnames[: parameter_count(call)]
    values, named = tree[2], tree[3]
    if len(values) > code.co_argcount or any(isinstance(value, list) and value[:1] == ["Starred"] for value in values):
        return None
    found = list(enumerate(values))
    for name, value in named:
        if name not in names[code.co_posonlyargcount :] or names.index(name) in dict(found):
            return None
        found.append((names.index(name), value))
    return found


def default_of(call: FunctionType, number: int) -> Tree | None:
    """The default of a parameter, if it is a constant."""
    code = call.__code__
    if number >= code.co_argcount:
        named = call.__kwdefaults__ or {}
        return constant(named[code.co_varnames[number]]) if code.co_varnames[number] in named else None
    defaults = call.__defaults__ or ()
    place = number - code.co_argcount + len(defaults)
    return constant(defaults[place]) if place >= 0 else None


def renewed(tree: Tree) -> Tree:
    """A tree with variables of its own."""
    known: dict[Local, Local] = {}

    def copied(part: Tree) -> Tree:
        if isinstance(part, Local):
            return known.setdefault(part, Local(part.name))
        return [copied(inner) for inner in part] if isinstance(part, list) else part

    return copied(tree)


def captured_in(tree: Tree) -> set[Local]:
    """Variables that functions in a tree use, which may run later."""
    if not isinstance(tree, list):
        return set()
    if is_function(tree) or tree[:1] in (["class"], ["GeneratorExp"]):
        return free_in(tree)
    return {local for part in tree for local in captured_in(part)}


def _binds(tree: Tree) -> bool:
    """Whether an expression binds a variable of the function around it."""
    return isinstance(tree, list) and (tree[:1] == ["NamedExpr"] or any(map(_binds, tree)))


def _size(tree: Tree) -> int:
    """The number of parts of a tree."""
    return 1 + sum(map(_size, tree)) if isinstance(tree, list) else 1


def _ends(statements: list[Tree]) -> bool:
    last = statements[-1]
    return last[0] in ("Return", "Raise") or (
        last[0] == "If" and all(block and _ends(block) for block in (last[2], last[3]))
    )


def _has_return(tree: Tree) -> bool:
    """Whether a statement returns, functions in it aside."""
    if not isinstance(tree, list) or is_function(tree):
        return False
    return tree[:1] == ["Return"] or any(map(_has_return, tree))


def _returns_last(statements: list[Tree]) -> bool:
    *before, last = statements
    if any(map(_has_return, before)):
        return False
    if last[0] == "If":
        return all(block and _returns_last(block) for block in (last[2], last[3]))
    return last[0] in ("Return", "Raise") or not _has_return(last)


def _continued(statements: list[Tree], statement: Tree) -> list[Tree]:
    """Statements that do with their result what a statement did with the call."""
    *before, last = statements
    if last[0] == "If":
        return [*before, ["If", last[1], _continued(last[2], statement), _continued(last[3], statement)]]
    return [*before, [*statement[:-1], last[1]]] if last[0] == "Return" else statements
